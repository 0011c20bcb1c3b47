// The chat beside the page: the official JavaScript SDK streams it; what memory says comes from the page's own parts.

import { headers, part, say } from "./page.js";
import { afterThoughts } from "./thoughts.js";

const MODES = { normal: "Learns", read_only: "Uses memory, learns nothing", incognito: "Incognito" };
const PARTS = { system: "instructions", memory: "memory", recalled: "recalled", summary: "summary", messages: "messages" };
const LOOKS = 60; // looks for what was learned, some seconds apart
const box = document.getElementById("chat");

function make(tag, options = {}, ...children) {
  const { data, ...rest } = options;
  const element = Object.assign(document.createElement(tag), rest);
  Object.assign(element.dataset, data);
  element.append(...children);
  return element;
}

const textOf = (content) =>
  typeof content === "string" ? content : (content ?? []).map((block) => block.text ?? "").join("");

const newId = () => Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");

const spoken = ({ type, content }) => (type === "ai" ? afterThoughts(textOf(content)) : textOf(content));

// Why no answer came, in words for whoever talks here: what they can do, and no codes.
function reason(error) {
  if (["ConnectionError", "TypeError"].includes(error?.name)) return "The server does not answer. Try again once it does.";
  if (error?.status === 401) return "Your token is not accepted any more. Load the page again, and log in.";
  const said = error?.message?.match(/"detail":"(.*?)"/)?.[1] ?? error?.message ?? "";
  return said.replace(/ The provider says: [^“]*(“.*)?$/s, (_, told) => (told ? ` The provider says: ${told}` : "")).slice(0, 300);
}

class Chat {
  constructor(Client) {
    this.root = new URL("../..", location.href).href.replace(/\/$/, "");
    this.client = () => new Client({ apiUrl: this.root, apiKey: null, defaultHeaders: headers() });
    this.thread = null;
    this.isIncognito = false; // of the thread, not of what is chosen
    this.since = new Date().toISOString();
    this.looks = 0;
    this.build();
  }

  build() {
    this.log = make("div", { className: "log", role: "log" });
    this.log.setAttribute("aria-label", "Conversation");
    this.log.tabIndex = 0;
    this.mode = make("select", { id: "chat-mode" });
    for (const [value, title] of Object.entries(MODES)) this.mode.append(make("option", { value, textContent: title }));
    this.banner = make("p", { className: "incognito", hidden: true, textContent: "Incognito: memory is neither used nor learned, and this chat is deleted when you leave it." });
    this.words = make("textarea", { id: "chat-words", rows: 2, required: true, placeholder: "Say something" });
    this.send = make("button", { className: "main", textContent: "Send" });
    const form = make("form", { className: "say" }, make("label", { className: "unseen", htmlFor: "chat-words", textContent: "Your message" }), this.words, this.send);
    this.fresh = make("button", { type: "button", textContent: "New chat" });
    const head = make("div", { className: "chat-head" }, make("h2", { textContent: "Chat" }), make("label", { className: "unseen", htmlFor: "chat-mode", textContent: "What memory may do" }), this.mode, this.fresh);
    box.replaceChildren(head, this.banner, this.log, form);
    box.hidden = false;
    this.empty();
    this.fresh.addEventListener("click", () => this.start());
    this.mode.addEventListener("change", () => this.showMode());
    window.addEventListener("pagehide", () => this.isIncognito && this.start({ quietly: true }));
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.ask(this.words.value.trim());
    });
    this.words.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
        event.preventDefault();
        form.requestSubmit();
      }
    });
  }

  showMode() {
    const incognito = this.mode.value === "incognito";
    // What is said in one of them must not be read in the other.
    if (this.thread && incognito !== this.isIncognito) this.start();
    this.banner.hidden = !incognito;
    box.classList.toggle("is-incognito", incognito);
  }

  empty() {
    this.log.replaceChildren(make("p", { className: "hint start", textContent: "Talk here, and see beside it what is remembered." }));
  }

  // A thread of incognito is nobody's history. It goes with the page too, so the request outlives it.
  leave() {
    if (this.isIncognito && this.thread) {
      const gone = fetch(`${this.root}/threads/${this.thread}`, { method: "DELETE", headers: headers(), keepalive: true });
      gone.then((answer) => answer.ok || Promise.reject()).catch(() => say("The incognito chat could not be deleted: the server is away."));
    }
    this.thread = null;
    this.isIncognito = false;
  }

  start({ quietly = false } = {}) {
    this.leave();
    this.empty();
    if (!quietly) this.words.focus();
  }

  add(role, text = "") {
    this.log.querySelector(".start")?.remove();
    const said = make("p", { className: "words", textContent: text });
    const message = make("article", { className: `message ${role}` }, make("h3", { className: "unseen", textContent: role === "user" ? "You" : "Assistant" }), said);
    this.log.append(message);
    this.down();
    return { message, said };
  }

  // Whoever has scrolled up to read stays there.
  down() {
    const { scrollHeight, scrollTop, clientHeight } = this.log;
    if (scrollHeight - scrollTop - clientHeight < 160) this.log.scrollTop = scrollHeight;
  }

  // Sent again under its own id, a message stands once in the thread, and no tool does again what it has done.
  async ask(text, id = newId()) {
    if (!text || this.send.disabled) return;
    this.busy(true);
    this.words.value = "";
    const { message: asked } = this.add("user", text);
    const reply = this.add("assistant");
    reply.message.classList.add("coming");
    try {
      await this.stream(text, id, reply);
    } catch (error) {
      reply.said.textContent ||= "No answer came.";
      reply.message.classList.add("failed");
      const again = make("button", { className: "link", type: "button", textContent: "Try again" });
      again.addEventListener("click", () => {
        if (this.send.disabled) return;
        asked.remove();
        reply.message.remove();
        this.ask(text, id);
      });
      const isGone = this.thread && error?.status === 404;
      const why = isGone ? "This conversation is not there any more: it was deleted or erased elsewhere. The next try begins a new one." : reason(error);
      if (isGone) this.forget(reply.message);
      reply.message.append(make("p", { className: "problem", textContent: why }), again);
    } finally {
      reply.message.classList.remove("coming");
      this.busy(false);
    }
  }

  // Somebody wanted these words to be gone: they are not shown any longer either, but for what was said just now.
  forget(reply) {
    this.thread = null;
    this.isIncognito = false;
    const kept = [reply.previousElementSibling, reply];
    this.log.replaceChildren(...kept.filter(Boolean));
  }

  busy(is) {
    for (const each of [this.send, this.mode, this.fresh]) each.disabled = is;
  }

  async stream(text, id, reply) {
    const client = this.client();
    const mode = this.mode.value;
    if (!this.thread) {
      this.thread = (await client.threads.create({ metadata: { memory_mode: mode } })).thread_id;
      this.isIncognito = mode === "incognito";
    }
    const stream = client.runs.stream(this.thread, "chat", {
      input: { messages: [{ role: "user", content: text, id }] },
      context: { memory_mode: mode },
      streamMode: ["messages-tuple", "values"],
    });
    let last, told = "";
    for await (const { event, data } of stream) {
      if (event === "error") throw new Error(data?.message ?? "The run failed.");
      if (event === "messages" && /^ai/i.test(data[0]?.type) && data[1]?.langgraph_node === "call_model") {
        told += textOf(data[0].content);
        reply.said.textContent = afterThoughts(told);
        this.down();
      }
      if (event === "values") last = data?.messages?.at(-1) ?? last;
    }
    if (!["ai", "tool"].includes(last?.type)) throw new Error("The run ended without an answer.");
    reply.said.textContent = spoken(last);
    this.under(reply.message, last);
    if (mode === "normal") this.look(LOOKS);
  }

  // Under a reply: the memories it drew on, and what filled the context window.
  under(message, reply) {
    const foot = make("footer");
    const sources = reply.response_metadata?.palimpsest;
    if (sources) {
      const count = sources.facts.length + sources.recalled.length + sources.profile.length;
      const details = make("details", { className: "drew" }, make("summary", { textContent: `Drew on ${count} ${count === 1 ? "memory" : "memories"}` }));
      details.addEventListener("toggle", async () => {
        if (!details.open || details.dataset.read) return;
        details.dataset.read = "yes";
        const query = new URLSearchParams(Object.entries(sources).map(([name, ids]) => [name, ids.join(",")]));
        const { holder } = await part(`sources?${query}`).catch(() => ({ holder: make("p", { textContent: "That cannot be read now." }) }));
        details.append(holder);
      });
      foot.append(details);
    }
    const tokens = reply.response_metadata?.palimpsest_tokens;
    if (tokens) foot.append(this.bar(tokens));
    message.append(foot);
    this.down();
  }

  bar(tokens) {
    const used = Object.keys(PARTS).reduce((sum, name) => sum + (tokens[name] ?? 0), 0);
    const all = Math.max(tokens.budget || used, used, 1);
    const bar = make("div", { className: "bar" });
    bar.setAttribute("aria-hidden", "true");
    const legend = make("ul", { className: "legend" });
    for (const [name, title] of Object.entries(PARTS)) {
      if (!tokens[name]) continue;
      const piece = make("span", { className: `part-${name}` });
      piece.style.width = `${(100 * tokens[name]) / all}%`;
      bar.append(piece);
      legend.append(make("li", { className: `part-${name}`, textContent: `${title} ${tokens[name].toLocaleString("en")}` }));
    }
    const summary = make("summary", { textContent: `${used.toLocaleString("en")} of ${all.toLocaleString("en")} tokens` });
    return make("details", { className: "tokens" }, summary, bar, legend);
  }

  // What was said is learned after a while: say so when it is, where it was said.
  async look(times) {
    const running = this.looks > 0;
    this.looks = times;
    if (running) return;
    while (this.looks-- > 0) {
      await new Promise((done) => setTimeout(done, 2000));
      const found = await part(`learned?since=${encodeURIComponent(this.since)}`).catch(() => null);
      if (!found) continue;
      if (found.since) this.since = found.since;
      if (!found.holder.childElementCount) continue;
      this.log.append(...found.holder.childNodes);
      this.down();
      document.body.dispatchEvent(new Event("facts-changed"));
    }
    this.looks = 0;
  }

  async open(thread) {
    this.leave();
    if (this.mode.value === "incognito") this.mode.value = "normal";
    this.showMode();
    this.thread = thread;
    this.log.replaceChildren(make("p", { className: "hint", textContent: "Loading …" }));
    try {
      const { values } = await this.client().threads.getState(thread);
      this.log.replaceChildren();
      const said = (values?.messages ?? []).filter((each) => ["human", "ai"].includes(each.type) && spoken(each));
      for (const each of said) {
        const { message } = this.add(each.type === "human" ? "user" : "assistant", spoken(each));
        if (each.type === "ai") this.under(message, each);
      }
      if (!said.length) this.empty();
      this.log.scrollTop = this.log.scrollHeight;
    } catch {
      this.start();
      say("This conversation is not there any more.");
    }
    box.scrollIntoView({ block: "nearest" });
    this.words.focus();
  }
}

export function begin(Client) {
  const chat = new Chat(Client);
  document.addEventListener("click", (event) => {
    const pressed = event.target.closest("[data-thread]");
    if (pressed) chat.open(pressed.dataset.thread);
  });
  document.body.addEventListener("erased", () => chat.start({ quietly: true }));
}
