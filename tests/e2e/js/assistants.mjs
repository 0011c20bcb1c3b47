// Two assistants with contexts of their own, one turn with each: { url, text, contexts: [..] } → [answer, ..]
import { Client } from "@langchain/langgraph-sdk";

export default async function assistants({ url, text, contexts }) {
  const client = new Client({ apiUrl: url });
  const answers = [];
  for (const context of contexts) {
    const { assistant_id } = await client.assistants.create({ graphId: "chat", context });
    const { thread_id } = await client.threads.create();
    const input = { messages: [{ type: "human", content: text }] };
    const { messages } = await client.runs.wait(thread_id, assistant_id, { input });
    answers.push(messages.at(-1).content);
  }
  return answers;
}
