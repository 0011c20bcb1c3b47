// A conversation in a terminal: tokens as they come, what memory does, and the checkpoint each step ends in.
//
//   palimpsest dev                                              # or: langgraph dev
//   npm install --no-package-lock --prefix examples
//   node examples/stream.mjs                                    # type, one message a line
//   node examples/stream.mjs --say "I moved to Bergen." --say "Where do I live?"
//   node examples/stream.mjs --thread THREAD --from CHECKPOINT --say "No, to Oslo."
import { createInterface } from "node:readline";
import { parseArgs } from "node:util";

import { Client } from "@langchain/langgraph-sdk";

import { STREAM_MODE, stampedEvents } from "./envelopes.mjs";
import { serverUrl } from "./here.mjs";

const { values: options } = parseArgs({
  options: {
    url: { type: "string" },
    assistant: { type: "string", default: "chat" },
    thread: { type: "string" },
    from: { type: "string" },
    say: { type: "string", multiple: true },
  },
});

const client = new Client({ apiUrl: options.url ?? serverUrl() });
const threadId = options.thread ?? (await client.threads.create()).thread_id;
console.log(`thread ${threadId}`);

let checkpointId = options.from;
for await (const line of options.say ?? createInterface({ input: process.stdin })) {
  const text = line.trim();
  if (!text) continue;
  console.log(`\n> ${text}`);
  await turn(text, checkpointId);
  checkpointId = undefined;
}

async function turn(text, checkpointId) {
  const parts = client.runs.stream(threadId, options.assistant, {
    input: { messages: [{ role: "user", content: text }] },
    checkpointId,
    streamMode: [...STREAM_MODE, "messages-tuple"],
    streamSubgraphs: true,
  });
  for await (const event of stampedEvents(parts, ["messages", "values"])) {
    if (event.type === "on_custom_event") write(`\n  ${event.name} ${JSON.stringify(event.data)}`);
    else if (event.type === "on_chain_stream" && !event.parent_ids.length) writeChunk(event);
  }
  write("\n");
}

function writeChunk({ data, checkpoint }) {
  const [, mode, chunk] = data.chunk;
  if (mode === "messages" && chunk[0].type === "AIMessageChunk") write(textOf(chunk[0].content));
  if (mode === "values" && checkpoint) {
    write(`\n  checkpoint ${checkpoint.id} step ${checkpoint.step} ${checkpoint.source}\n`);
  }
}

function textOf(content) {
  return typeof content === "string" ? content : content.map((block) => block.text ?? "").join("");
}

function write(text) {
  process.stdout.write(text);
}
