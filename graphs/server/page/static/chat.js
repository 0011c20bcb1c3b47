// The chat, by the official JavaScript SDK. What is said is read from the open conversation's thread.

import { copy, shownOf, textOf } from "./answers.js";
import { Client } from "./langgraph.js";
import { AWAY, hashWith, headers, kept, lose, morph, part, say, token } from "./page.js";
import { guard, html, nothing, render, repeat } from "./rendering.js";

const DRAFT = "palimpsest-draft-", MODE = "palimpsest-mode", ENDED = "palimpsest-ended", SENDING = "sending";
const WAIT = "An answer is still coming: wait for its end, or stop it.";
const GONE = "This conversation is not there any more: it was deleted or erased elsewhere.";
const BEAT = 5000; // milliseconds
const MOST = 100; // messages that are shown at once

const box = document.getElementById("chat");
const [log, form, words, mode, send, stopper, list, banner] = ["log", "say", "words", "mode", "send", "stop", "threads", "banner"].map((each) => document.getElementById(`chat-${each}`));
const root = new URL("../..", location).href;

let line = new AbortController(); // of all that is read for the open conversation
let thread = ""; // its id, or none for a new one
let passing = null; // the thread of an incognito chat that was begun here
let messages = [];
let seen = ""; // what the thread's row said as they were read
let turn = null; // an answer that is coming: its run, what it answers, and what has come
let failed = null; // why none came, and what had come
let switched = null; // a mode is written down
let unsure = null; // what was being sent as the page was left
let hint = "", shown = MOST, editing = "";
let cards = []; // of what was learned
let last = null; // when anything was learned
let note = null; // that goes with the answer or edit that it is about
let reading = Promise.resolve(), next = null; // of cards

const client = () => new Client({ apiUrl: root, apiKey: null, defaultHeaders: headers(), callerOptions: { maxRetries: 1 } });
const newId = () => URL.createObjectURL(new Blob()).slice(-36); // otherwise a browser makes a UUID only with TLS
const place = (id) => messages.findIndex((each) => each.id === id);
const has = (id) => place(id) >= 0;
const isHuman = ({ type }) => type === "human";
const isAway = (error) => /Connection|TypeError|Reconnect|Idle/.test(error?.name);
const tell = (text) => { note = say(text); };
const quietly = (what) => what().catch((error) => isAway(error) && lose()); // what nobody asked for
const down = () => { log.scrollTop = log.scrollHeight; };

// Why no answer came.
function reason({ name, status, message = "" }) {
  if (!navigator.onLine) return "This device has no network. Try again once it has.";
  if (isAway({ name })) return AWAY;
  if ([401, 403].includes(status)) return "Your token is not accepted any more.";
  const said = message.match(/"detail":"(.*?)"/)?.[1] ?? message;
  return said.replace(/ The provider says: .*$/s, "").slice(0, 300);
}

// Where one logs in, what is not sent yet, or not known to be, stays in the tab alone, as the token does.
const drafts = token() ? sessionStorage : localStorage;
const who = () => document.getElementById("view").dataset.who;
const draft = (id) => `${DRAFT}${who()}-${id}`;
function keep(id = thread, text = words.value) {
  if (text && mode.value !== "incognito") drafts.setItem(draft(id), text);
  else drafts.removeItem(draft(id));
}

function back(sent) {
  unsure = null;
  if (!sent) return;
  if (!has(sent.id)) words.value ||= textOf(sent);
  keep(SENDING, "");
  keep();
}

function point(how = "replaceState", id = passing ? "" : thread) {
  const hash = hashWith("chat", id);
  if (hash !== location.hash) history[how](history.state, "", location.pathname + location.search + hash);
}

// The request outlives the page.
function leave(id = passing) {
  if (!id) return;
  const gone = fetch(`${root}threads/${id}`, { method: "DELETE", headers: headers(), keepalive: true });
  gone.then(({ ok, status }) => ok || status === 404 || Promise.reject()).catch(() => say("The incognito chat could not be deleted: the server is away."));
  if (id === passing) passing = null;
}

async function open(id, said = "Talk here, and see beside it what is remembered.") {
  line.abort();
  line = new AbortController();
  leave();
  [thread, messages, seen, turn, failed, last, cards, shown, editing, hint] = [id, [], "", null, null, null, [], MOST, "", id ? "" : said];
  mode.value = (!id && sessionStorage.getItem(MODE)) || "normal";
  words.value = (mode.value !== "incognito" && drafts.getItem(draft(thread))) || "";
  unsure = JSON.parse(drafts.getItem(draft(SENDING)));
  if (unsure?.thread !== thread) unsure = null;
  paint();
  await quietly(look);
  learned();
}

function goTo(id) {
  if (!id) sessionStorage.setItem(MODE, mode.value);
  open(id);
  point("pushState");
  if (!box.offsetParent) document.querySelector(".to-chat").click();
  words.focus({ preventScroll: true });
}

// Returns the thread's row, if no other conversation or answer has begun.
async function read() {
  const [mine, then] = [line, turn];
  const isOther = () => mine !== line || then !== turn;
  const asked = client().threads.search({ ids: [thread], select: ["thread_id", "status", "updated_at", "metadata"] });
  const [row] = await asked.catch((error) => (error.status === 400 ? [] : Promise.reject(error))); // no id of a thread
  if (isOther()) return null;
  if (!row) {
    const sent = turn?.sent ?? unsure, unsent = words.value || (sent && textOf(sent)) || "";
    drafts.removeItem(draft(thread));
    sessionStorage.setItem(MODE, mode.value);
    open("", unsure ? undefined : GONE);
    words.value = unsent || words.value;
    keep();
    point();
    return null;
  }
  const now = `${row.status} ${row.updated_at}`;
  if (now === seen) return row;
  const { values } = await client().threads.getState(thread);
  if (isOther()) return null;
  [seen, messages] = [now, values?.messages ?? []];
  if (!turn && !isHuman(messages.at(-1) ?? {})) failed = null;
  if (!switched) mode.value = row.metadata?.memory_mode ?? "normal";
  paint();
  return row;
}

// Shows what was said elsewhere, and joins an answer that is coming.
async function look() {
  if (!thread || turn) return;
  const id = thread;
  const row = await read(), sent = unsure;
  if (!row) return;
  if (row.status !== "busy") return back(sent);
  const going = (await client().runs.list(id)).find(({ status }) => ["pending", "running"].includes(status));
  if (going && id === thread && !turn) follow((_, signal) => client().runs.joinStream(id, going.run_id, { signal }), { run: going.run_id, sent });
}

const button = (title, press, kind = "link") => html`<button type="button" class=${kind} @click=${press}>${title}</button>`;

function paint() {
  const isDown = log.scrollHeight - log.scrollTop - log.clientHeight < 160; // who reads above stays there
  const { sent, came } = turn ?? failed ?? {};
  const all = [...messages, ...[sent, came].filter((each) => each && !has(each.id))];
  const end = all.at(-1), isOwed = end && end.type !== "ai";
  const why = failed?.why ?? (end && isHuman(end) && !turn && !seen.startsWith("busy") && "No answer came.");
  // Under its own id it stands once, and no tool acts again.
  const again = () => answer(messages.findLast(isHuman));
  render(html`
    ${all.length > shown ? button("Earlier messages", () => paint((shown += MOST))) : nothing}
    ${all.length ? nothing : html`<p class="hint start">${hint}</p>`}
    ${repeat(all.slice(-shown), ({ id }) => id, article)}
    ${turn && (isOwed || end?.tool_calls?.length) ? html`<article class="message assistant coming"><div class="words"></div></article>` : nothing}
    ${why ? html`<article class="message assistant failed"><p class="problem">${why}</p>${isOwed ? button("Try again", again) : nothing}</article>` : nothing}
    ${cardsBehind("")}`, log);
  if (isDown) down();
  banner.hidden = mode.value !== "incognito";
  send.hidden = turn !== null;
  stopper.hidden = !send.hidden;
  stopper.disabled = !turn?.run || turn.stopping;
}

function article(message) {
  const isComing = message === turn?.came, isMine = isHuman(message), text = textOf(message);
  if (!["human", "ai"].includes(message.type) || (!text && !isComing)) return nothing;
  return html`
    <article class="message ${isMine ? "user" : "assistant"} ${isComing ? "coming" : ""}">
      <h3 class="unseen">${isMine ? "You" : "Assistant"}</h3>
      <div class="words" dir="auto">${guard([text], () => (isMine ? text : shownOf(text)))}</div>
      ${message.id === editing ? anew(message) : nothing}
      ${has(message.id) ? foot(message) : nothing}
    </article>
    ${cardsBehind(message.id)}`;
}

// The newest of its messages that is here; what was edited away before has no place any more.
const cardsBehind = (id) => cards.filter(({ after, isNew }) => (after.findLast(has) ?? (isNew ? "" : null)) === id).map(({ card }) => card);

function foot(message) {
  const { palimpsest: sources, palimpsest_tokens: { budget, ...parts } = {} } = message.response_metadata ?? {};
  const used = Object.values(parts).reduce((sum, each) => sum + each, 0);
  return html`
    <footer>
      <div>
        ${button("Copy", (event) => copy(event, textOf(message)))}
        ${isHuman(message) ? button("Edit", () => edit(message.id)) : button("Answer again", () => answer(null, message.id), "link again")}
        ${used ? `${used} of ${Math.max(budget ?? 0, used)} tokens` : nothing}
      </div>
      ${sources ? html`<details class="drew" @toggle=${({ target }) => drew(target, message, sources)}><summary>Drew on memory</summary></details>` : nothing}
    </footer>`;
}

async function drew(details, message, sources) {
  if (!details.open || details.children.length > 1) return;
  const asked = messages.slice(0, place(message.id)).findLast(isHuman);
  const found = await part("sources", new URLSearchParams({ ...sources, message: asked ? textOf(asked) : "" })).catch(() => null);
  details.replaceChildren(details.children[0], found?.holder ?? "That cannot be read now.");
}

function edit(id) {
  editing = id;
  note?.remove();
  paint();
  (log.querySelector(".anew textarea") ?? words).focus();
}

function sends(event) {
  if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  if (turn) tell(WAIT);
  else event.target.form.requestSubmit();
}

function anew(message) {
  const sendAnew = (event) => {
    event.preventDefault();
    const content = event.target.elements.text.value.trim();
    if (!content) return tell("The message must say something.");
    answer({ type: "human", content, id: newId() }, message.id);
  };
  return html`
    <form class="anew" @submit=${sendAnew}>
      <textarea name="text" rows="3" dir="auto" required aria-label="Your message, in other words" @keydown=${sends} .value=${textOf(message)}></textarea>
      <p class="hint">What follows it leaves this conversation.</p>
      ${button("Cancel", () => edit(""), "")}
      <button class="main">Send anew</button>
    </form>`;
}

// Shows what comes of a run, until it ends or another conversation is opened.
async function follow(begin, { run = "", sent = null }) {
  const mine = line, now = { run, sent }, reading = new AbortController(), others = new Set();
  [turn, failed] = [now, null];
  paint();
  down();
  // What was sent is begun all the same.
  mine.signal.addEventListener("abort", () => now.run && reading.abort());
  let wrong;
  try {
    for await (const { event, data } of await begin(now, reading.signal)) {
      if (mine !== line) return;
      if (event === "error") throw new Error(data?.message ?? "The run failed.");
      if (event === "messages/metadata") {
        for (const [id, { metadata }] of Object.entries(data)) if (metadata.langgraph_node !== "call_model") others.add(id);
      }
      if (event === "messages/partial" && /^ai/i.test(data[0].type) && !others.has(data[0].id)) now.came = { ...data[0], type: "ai" };
      if (event === "values" && data?.messages) messages = data.messages;
      paint();
    }
  } catch (error) {
    wrong = error;
  }
  if (mine === line) await now.stopping;
  if (mine === line && thread) await quietly(read);
  if (mine !== line) return;
  turn = null;
  note?.remove();
  // Whoever stopped it elsewhere writes what came a moment later.
  if (!now.stopping && (wrong || isHuman(messages.at(-1) ?? {}))) failed = { why: wrong ? reason(wrong) : now.came && "", came: now.came };
  back(sent);
  point();
  paint();
}

// Asks for an answer, in the place of the message `from`.
function answer(sent, from) {
  if (turn) return tell(WAIT);
  editing = "";
  const mine = line, chosen = mode.value, was = thread, id = was || newId();
  const isPassing = !was && chosen === "incognito";
  keep();
  if (sent) keep(SENDING, JSON.stringify({ ...sent, thread: id }));
  point("replaceState", isPassing ? "" : id); // before it is there: a reload finds it
  if (from) {
    messages = messages.slice(0, place(from));
    seen = ""; // shown again if this fails
  }
  return follow(async (now, signal) => {
    await switched;
    const checkpoint = from && (await before(id, from));
    if (!was) await client().threads.create({ threadId: id, ifExists: "do_nothing", metadata: { memory_mode: chosen } });
    if (mine === line) {
      thread = id;
      if (isPassing) passing = id;
    } else if (isPassing) return leave(id) ?? [];
    return client().runs.stream(id, "chat", {
      input: sent && { messages: [{ role: "user", content: sent.content, id: sent.id }] },
      checkpoint, streamMode: ["messages", "values"], signal,
      onRunCreated({ run_id }) {
        now.run = run_id;
        keep(SENDING, "");
        if (mine !== line) return;
        drafts.removeItem(draft(was));
        paint(keep());
      },
    });
  }, { sent });
}

// Returns the checkpoint before a message came.
async function before(id, message, limit = 50) {
  const states = await client().threads.getHistory(id, { limit });
  const lacks = ({ values }) => !values.messages?.some((each) => each.id === message);
  const parent = states.findLast((each) => !lacks(each))?.parent_checkpoint;
  const isSeen = states.some((each) => lacks(each) && each.checkpoint.checkpoint_id === parent?.checkpoint_id);
  return isSeen || states.length < limit ? parent : before(id, message, limit * 4);
}

// What came is written as the model's; then a run without input, which asks no model, ends the turn.
async function halt(id, now) {
  const { runs, threads } = client();
  await runs.cancel(id, now.run, true).catch((error) => {
    if (![404, 409].includes(error.status)) throw error; // it has ended by itself
  });
  const came = now.came && textOf(now.came) ? [{ type: "ai", id: now.came.id, content: now.came.content }] : [];
  const [{ name } = {}] = (await threads.getState(id)).tasks;
  if (name === "call_model") await threads.updateState(id, { values: { messages: came }, asNode: name });
  if (["call_model", "flush_memory"].includes(name)) await runs.wait(id, "chat", { input: null });
}

// A card says what was learned, behind its message, and what became of that.
function learned() {
  next ??= reading.then(() => { [next, reading] = [null, quietly(readCards)]; }); // whoever was asked before knows less
}

async function readCards() {
  const mine = line, before = last;
  const { holder, answer: { headers: found } } = await part(`learned?${new URLSearchParams({ thread })}`);
  if (mine !== line) return;
  last = found.get("X-Last");
  mode.options[0].textContent = found.get("X-Learning") === "True" ? "Learns" : "Learning is off";
  for (const card of [...holder.children]) {
    const there = cards.find((each) => each.card.id === card.id);
    if (there) morph(there.card, card);
    else cards.push({ card, after: card.dataset.after.split(" "), isNew: before !== null });
  }
  paint();
  if (before !== null && before !== last) document.body.dispatchEvent(new Event("facts-changed"));
}

async function conversations() {
  const found = await client().threads.search({
    metadata: { graph_id: "chat" }, select: ["thread_id", "status", "updated_at", "metadata"], extract: { content: "values.messages[0].content" },
    limit: 1000, sortBy: "updated_at", sortOrder: "desc",
  });
  const row = ({ thread_id: id, status, updated_at: at, metadata, extracted }) => {
    const title = textOf({ ...extracted, type: "human" }).slice(0, 120) || (status === "busy" && "Its first answer is coming");
    if (metadata?.memory_mode === "incognito" || !title) return [];
    const day = new Date(at).toLocaleDateString("en", { dateStyle: "medium" });
    return html`<li><a href=${hashWith("chat", id)} data-thread=${id} dir="auto" aria-current=${String(id === thread)}>${title}</a><time>${day}</time></li>`;
  };
  const rows = found.flatMap(row);
  render(rows.length ? rows : html`<li class="hint">Nothing was said yet.</li>`, list.querySelector("ol"));
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  const content = words.value.trim();
  if (turn) return tell(WAIT);
  words.value = "";
  if (content) answer({ type: "human", content, id: newId() });
});
words.addEventListener("keydown", sends);
words.addEventListener("input", () => keep());
stopper.addEventListener("click", () => {
  const now = turn;
  now.stopping = halt(thread, now).catch((error) => {
    say(reason(error));
    now.stopping = null;
    paint();
  });
  paint();
});
mode.addEventListener("change", async () => {
  // What is said in one of them must not be read in the other.
  if (thread && (passing || mode.value === "incognito")) return goTo("");
  keep();
  paint();
  if (!thread) return sessionStorage.setItem(MODE, mode.value);
  switched = client().threads.update(thread, { metadata: { memory_mode: mode.value } });
  await switched.catch((error) => {
    say(reason(error));
    seen = "";
  });
  switched = null;
});

list.addEventListener("toggle", () => list.open && quietly(conversations));
document.addEventListener("click", (event) => {
  const pressed = event.target.closest("[data-thread]");
  if (pressed || !list.contains(event.target)) list.open = false;
  if (!pressed || event.ctrlKey || event.metaKey) return;
  event.preventDefault();
  goTo(pressed.dataset.thread);
}, true);

addEventListener("hashchange", () => kept("chat") !== (passing ? "" : thread) && open(kept("chat")));
document.body.addEventListener("done", learned);
document.body.addEventListener("erased", ({ detail }) => {
  for (const key of Object.keys(drafts)) if (key.startsWith(draft(detail ?? ""))) drafts.removeItem(key);
  if (detail && detail !== thread) return;
  open("");
  point();
});
addEventListener("pagehide", () => {
  if (!passing) return;
  sessionStorage.setItem(ENDED, "The incognito chat ended as the page was left, and is deleted.");
  open("");
});
const sync = () => document.hidden || box.hidden || (quietly(look), learned());
document.addEventListener("visibilitychange", sync);
// Maybe as another, or as nobody.
document.body.addEventListener("entered", () => {
  box.hidden = !who();
  open(who() ? kept("chat") : "", sessionStorage.getItem(ENDED) ?? undefined);
  sessionStorage.removeItem(ENDED);
});
setInterval(sync, BEAT);
box.hidden = false;
