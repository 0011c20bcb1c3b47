// A conversation in raw parts: { url, threadId, streamMode, context, steps } → [[{ event, data }]] for each step.
// A step is { say } or { resume }; one with `from` starts from the checkpoint that the step of that number ended in.
import { Client } from "@langchain/langgraph-sdk";

export default async function conversation({ url, threadId, streamMode, context, steps }) {
  const client = new Client({ apiUrl: url });
  const heads = [];
  const turns = [];
  for (const { say, resume, from } of steps) {
    const given = say ? { input: { messages: [{ role: "user", content: say }] } } : { command: { resume } };
    const options = { ...given, context, streamMode, checkpointId: heads[from] };
    const parts = [];
    for await (const { event, data } of client.runs.stream(threadId, "chat", options)) parts.push({ event, data });
    turns.push(parts);
    heads.push((await client.threads.getState(threadId)).checkpoint.checkpoint_id);
  }
  return turns;
}
