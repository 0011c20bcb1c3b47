// The second conversation, in a new thread: ask for what was said in the first.
import { Client } from "@langchain/langgraph-sdk";

import { serverUrl } from "./here.mjs";

const client = new Client({ apiUrl: serverUrl() });
const thread = await client.threads.create();
const state = await client.runs.wait(thread.thread_id, "chat", {
  input: { messages: [{ role: "user", content: "What must I not eat?" }] },
});
console.log(state.messages.at(-1).content);
