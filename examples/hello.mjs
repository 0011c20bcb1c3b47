// The second conversation, in a new thread: ask for what was said in the first.
import { Client } from "@langchain/langgraph-sdk";

const client = new Client({ apiUrl: "http://127.0.0.1:2024" });
const thread = await client.threads.create();
const state = await client.runs.wait(thread.thread_id, "chat", {
  input: { messages: [{ role: "user", content: "What must I not eat?" }] },
});
console.log(state.messages.at(-1).content);
