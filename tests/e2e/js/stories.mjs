// All stories of the JavaScript client, side by side: { url, tokens: { story: token } } → { story: what came }
import { Client } from "@langchain/langgraph-sdk";

import { STREAM_MODE, stampedEvents } from "../../../examples/envelopes.mjs";

const say = (content) => ({ messages: [{ role: "user", content }] });

const stories = {
  async talks({ client, begin, learned }) {
    const told = await begin();
    await client.runs.wait(told, "chat", { input: say("I live in Oslo.") });
    await learned();
    const asked = await begin();
    const { messages } = await client.runs.wait(asked, "chat", { input: say("What do you see?") });
    return { seen: messages.at(-1).content, threads: (await client.threads.search()).map((each) => each.thread_id), told, asked };
  },

  async streams({ client, begin }) {
    const thread = await begin();
    const parts = [];
    const streamMode = ["values", "updates", "messages-tuple", "custom", "debug"];
    for await (const { event, data } of client.runs.stream(thread, "chat", { input: say("Take your time."), streamMode })) {
      parts.push({ event, data, at: Date.now() });
    }
    return { parts, state: (await client.threads.getState(thread)).values };
  },

  async stamps({ client, begin }) {
    const thread = await begin();
    const options = { input: say("I keep bees."), streamMode: [...new Set([...STREAM_MODE, "custom"])], streamSubgraphs: true };
    const events = [];
    for await (const { type, event, name, checkpoint } of stampedEvents(client.runs.stream(thread, "chat", options))) {
      events.push({ type, event, name, checkpoint });
    }
    const history = await client.threads.getHistory(thread, { limit: 50 });
    return { events, saved: history.map((each) => each.checkpoint.checkpoint_id) };
  },

  async chooses({ client, begin }) {
    const { assistant_id } = await client.assistants.create({ graphId: "chat", context: { system_prompt: "You are a pirate." } });
    const { messages } = await client.runs.wait(await begin(), assistant_id, { input: say("What do you see?") });
    const refused = await client.assistants
      .create({ graphId: "chat", context: { max_tokens: "seven" } })
      .catch((error) => ({ status: error.status, message: String(error.message) }));
    return { seen: messages.at(-1).content, refused };
  },
};

async function tell(name, story, url, token) {
  const defaultHeaders = { Authorization: `Bearer ${token}` };
  const client = new Client({ apiUrl: url, defaultHeaders, callerOptions: { maxRetries: 0 } });
  const begin = async () => (await client.threads.create()).thread_id;
  const pending = async () => (await (await fetch(`${url}/memory/overview`, { headers: defaultHeaders })).json()).pending;
  const learned = async () => {
    while (await pending()) await new Promise((done) => setTimeout(done, 50));
  };
  return [name, await story({ client, begin, learned })];
}

export default async function tellAll({ url, tokens }) {
  const told = Object.entries(stories).map(([name, story]) => tell(name, story, url, tokens[name]));
  return Object.fromEntries(await Promise.all(told));
}
