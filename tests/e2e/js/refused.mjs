// A run with a context that must be refused: { url, context } → { message, status }
import { Client } from "@langchain/langgraph-sdk";

export default async function refused({ url, context }) {
  const client = new Client({ apiUrl: url, callerOptions: { maxRetries: 0 } });
  const { thread_id } = await client.threads.create();
  const input = { messages: [{ type: "human", content: "hi" }] };
  try {
    const values = await client.runs.wait(thread_id, "chat", { input, context });
    return { message: JSON.stringify(values), status: 200 };
  } catch (error) {
    return { message: String(error.message), status: error.status ?? null };
  }
}
