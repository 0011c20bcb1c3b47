// One turn on a new or existing thread: { url, text, threadId?, assistantId?, context?, streamMode? }
// → { threadId, messages, events: [{ event, data }] }
import { Client } from "@langchain/langgraph-sdk";

export default async function chat({ url, text, threadId, assistantId = "chat", context, streamMode = "values" }) {
  const client = new Client({ apiUrl: url });
  threadId = (await client.threads.create({ threadId, ifExists: "do_nothing" })).thread_id;
  const events = [];
  const input = { messages: [{ type: "human", content: text }] };
  for await (const { event, data } of client.runs.stream(threadId, assistantId, { input, context, streamMode })) {
    events.push({ event, data });
  }
  const { values } = await client.threads.getState(threadId);
  return { threadId, messages: values.messages, events };
}
