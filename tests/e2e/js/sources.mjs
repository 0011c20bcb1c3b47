// What a chat client gets of a reply's sources: { url, threadId, text } → { streamed, stored }, both `response_metadata`.
import { Client } from "@langchain/langgraph-sdk";

export default async function sources({ url, threadId, text }) {
  const client = new Client({ apiUrl: url });
  let streamed;
  const input = { messages: [{ role: "user", content: text }] };
  for await (const { event, data } of client.runs.stream(threadId, "chat", { input, streamMode: ["values", "messages-tuple"] })) {
    if (event === "values") streamed = data.messages.at(-1).response_metadata;
  }
  const { values } = await client.threads.getState(threadId);
  return { streamed, stored: values.messages.at(-1).response_metadata };
}
