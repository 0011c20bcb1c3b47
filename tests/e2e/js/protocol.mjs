// One run through the newest protocol: { url, threadId, assistantId, channels, input } → [{ method, params }]
import { Client } from "@langchain/langgraph-sdk";

export default async function protocol({ url, threadId, assistantId, channels, input }) {
  const thread = new Client({ apiUrl: url }).threads.stream(threadId, { assistantId });
  const seen = [];
  try {
    const subscription = await thread.subscribe(channels);
    await thread.run.start({ input });
    for await (const event of subscription) seen.push(event);
  } finally {
    await thread.close();
  }
  return seen;
}
