// One run with every event stamped: { url, threadId, assistantId, modes, ...what runs.stream takes } → { events, error }
import { Client } from "@langchain/langgraph-sdk";

import { STREAM_MODE, stampedEvents } from "../../../examples/envelopes.mjs";

export default async function events({ url, threadId, assistantId, modes, ...options }) {
  const client = new Client({ apiUrl: url });
  const streamMode = [...new Set([...STREAM_MODE, ...modes])];
  const parts = client.runs.stream(threadId, assistantId, { ...options, streamMode, streamSubgraphs: true });
  const seen = [];
  try {
    for await (const event of stampedEvents(parts, modes)) seen.push(event);
  } catch (error) {
    return { events: seen, error: error.message };
  }
  return { events: seen, error: null };
}
