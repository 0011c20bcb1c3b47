// One turn on a new or existing thread: { url, text, threadId?, assistantId?, configurable?, streamMode? }
// → { threadId, messages, events: [{ event, data }] }
import { Client } from "@langchain/langgraph-sdk";

export default async function chat({ url, text, threadId, assistantId = "chat", configurable = {}, streamMode = "values" }) {
  const client = new Client({ apiUrl: url });
  threadId = (await client.threads.create({ threadId: threadId ?? undefined, ifExists: "do_nothing" })).thread_id;
  const events = [];
  const input = { messages: [{ type: "human", content: text }] };
  const payload = { input, streamMode, config: { configurable } };
  for await (const { event, data } of client.runs.stream(threadId, assistantId, payload)) {
    events.push({ event, data });
  }
  const { values } = await client.threads.getState(threadId);
  return { threadId, messages: values.messages, events };
}
