// What the page does beyond forms and links: it fetches the page that one of them leads to, and changes what differs there.
// So what is typed, ticked, opened and focused stays. It stores nothing but a token, for one tab.

const TOKEN = "palimpsest-token";
export const AWAY = "The server does not answer. Try again once it runs.";
const LOOK = 10_000; // milliseconds after which the page looks again by itself
const byId = (id) => document.getElementById(id);
const view = byId("view");
const said = byId("said");
const away = byId("away");

export const token = () => sessionStorage.getItem(TOKEN);
export const headers = () => (token() ? { Authorization: `Bearer ${token()}` } : {});

export function say(text) {
  const line = document.createElement("p");
  line.className = "note";
  line.textContent = text;
  said.replaceChildren(line);
  return line;
}

// What stands behind the # of the address, where servers do not log it: the words that are searched for (`text`), and the open
// conversation (`chat`).
export const kept = (name) => new URLSearchParams(location.hash.slice(1)).get(name) ?? "";
export function hashWith(name, value) {
  const all = new URLSearchParams(location.hash.slice(1));
  if (value) all.set(name, value);
  else all.delete(name);
  return all.size ? `#${all}` : "";
}

async function ask(address, { text, body } = {}) {
  const find = text ? { Find: encodeURIComponent(text) } : {};
  const sent = body ? { method: "POST", body } : {};
  const answer = await fetch(address, { ...sent, headers: { ...headers(), ...find, Accept: "text/html" } });
  return { answer, page: new DOMParser().parseFromString(await answer.text(), "text/html") };
}

// What stands beside the chat: a page of its own, without the page around it.
export async function part(path, body) {
  const { answer, page } = await ask(path, { body });
  if (!answer.ok) throw new Error(String(answer.status));
  const holder = document.createElement("div");
  holder.append(...page.getElementById("view").childNodes);
  return { holder, answer };
}

// As attributes: a form's own `id` is its field of that name.
const idOf = (node) => node.getAttribute?.("id") || "";
const nameOf = (node) => `${node.nodeName} ${node.getAttribute?.("name") ?? ""}`;

// Makes of an element what another one is. An element of the same id stays itself: with what is typed in it, the keyboard's
// place, and what somebody opened. A row in which somebody writes is left alone by what the page does by itself; until it is
// sent, it stays an edit of what they were shown.
export function morph(old, next, isLook, form) {
  if (old.nodeType !== Node.ELEMENT_NODE) {
    if (old.data !== next.data) old.data = next.data;
    return;
  }
  if (isLook && old.matches(".editing") && next.matches(".editing")) return;
  if (old.name === "revision" && old.form !== form) return;
  for (const { name } of [...old.attributes]) if (name !== "open" && !next.hasAttribute(name)) old.removeAttribute(name);
  for (const { name, value } of next.attributes) if (name !== "open" && old.getAttribute(name) !== value) old.setAttribute(name, value);
  const own = new Map([...old.children].filter(idOf).map((each) => [idOf(each), each]));
  const stay = new Set([...next.children].map(idOf));
  let at = old.firstChild;
  const drop = () => {
    const gone = at;
    at = at.nextSibling;
    if (!isLook || !gone.matches?.(".editing")) gone.remove(); // deleted elsewhere: who saves it is told
  };
  for (const child of [...next.childNodes]) {
    const mine = own.get(idOf(child));
    while (at && at !== mine && (idOf(at) ? !stay.has(idOf(at)) : mine)) drop();
    const isLike = at && !idOf(at) && !idOf(child) && nameOf(at) === nameOf(child);
    const kept = mine?.nodeName === child.nodeName ? mine : isLike ? at : null;
    if (kept && kept === at) at = at.nextSibling;
    else old.insertBefore(kept ?? child, at);
    if (kept) morph(kept, child, isLook, form);
    else if (mine) mine.remove();
  }
  while (at) drop();
}

// Under a mouse that is pressed nothing changes: who presses something would miss it.
let released = Promise.resolve();
let release = () => {};
addEventListener("pointerdown", () => { released = new Promise((done) => { release = done; }); }, true);
for (const name of ["pointerup", "pointercancel"]) addEventListener(name, () => setTimeout(release), true);
// Who lets go of a scroll bar is seen only as the mouse moves on.
addEventListener("pointermove", ({ buttons }) => buttons || release(), true);

let typing = 0; // until what is typed is searched for
let allOf = null; // for what "All" was ticked
let newest = 0; // of what somebody asked for: only the last one's answer is shown
let underWay = 0;
let doing = Promise.resolve();

// A server that is away is told above all parts of the page, until it is back.
let waiting = 0; // once, whoever asked in vain
export function lose() {
  away.hidden = false;
  clearTimeout(waiting);
  waiting = setTimeout(look, 3000);
}

const here = () => location.href;
const isLogin = () => document.querySelector("[data-login]");

// Shows an address. `form`: what was sent, with its `body`. `text`: what is searched for. `how`: what becomes of the browser's
// history, "pushState" or "replaceState". `isLook`: nobody asked for it. `isFind`: somebody is typing. `isElsewhere`: they go on.
// What is pressed is done, and shown, one after another; what is asked for later knows all of it.
function show(address, wanted = {}) {
  const { body, isLook, isFind, isElsewhere } = wanted;
  if (isElsewhere) clearTimeout(typing);
  if (isElsewhere && !body) newest += 1;
  const done = doing.then(() => shown(address, wanted));
  if (body || !(isLook || isFind || isElsewhere)) doing = done.catch(() => {});
  return done;
}

async function shown(address, wanted = {}) {
  const { body, isLook, isFind, isElsewhere, text = isElsewhere ? "" : kept("text") } = wanted;
  const mine = isLook ? newest : ++newest;
  let found;
  underWay += 1;
  try {
    found = await ask(address(), { text, body });
  } catch {
    lose();
    return false;
  } finally {
    underWay -= 1;
  }
  const wasAway = !away.hidden;
  away.hidden = true;
  await released;
  if (mine !== newest) return found.answer.ok;
  const { answer, page } = found;
  const next = page.getElementById("view");
  if (!next) return refused(answer.status, isLook);
  if (answer.ok || isLogin()) apply(page, answer, { ...wanted, text });
  else if (!isLook) toast(next);
  const find = byId("find");
  // What was typed meanwhile, or in an outage, went under.
  if ((wasAway || !isLook) && !isFind && find?.matches("[data-live]") && isTyped(find)) seek(find);
  return answer.ok;
}

async function refused(status, isLook) {
  if (status === 401 || status === 403) {
    const had = token();
    sessionStorage.removeItem(TOKEN);
    await shown(here);
    document.body.dispatchEvent(new Event("entered"));
    if (had) say("This token is not accepted.");
  } else if (!isLook) say(`The server refused this (${status}). Try again in a moment.`);
  return false;
}

let asking = null; // where the keyboard was as a question came
function toast(next) {
  asking = document.activeElement;
  said.replaceChildren(...next.childNodes);
  said.querySelector("[autofocus]")?.focus();
}

function apply(page, answer, { form, text, how = "", isLook, isFind, isElsewhere }) {
  const active = document.activeElement;
  const top = scrollY; // of what is left: a shorter view scrolls
  const row = active?.closest("#view [id]:is(li, article)")?.id;
  const written = new Set(view.querySelectorAll("[autofocus]"));
  const next = page.getElementById("view");
  const find = byId("find");
  // What somebody does next takes away what was said before; it stays while they search.
  if (!isLook && !isFind) said.replaceChildren(...page.getElementById("said").childNodes);
  if (form?.closest("#chat")) return look();
  if (form && answer.redirected) form.reset(); // what it said is done
  if (isElsewhere) find?.reset(); // it says what is found there
  if (!isLook && !(isFind && allOf === valuesOf(find))) tick(false, alls());
  morph(byId("parts"), page.getElementById("parts"));
  if (next.dataset.shows !== view.dataset.shows) view.replaceChildren();
  morph(view, next, isLook, form);
  document.title = page.title;
  if (document.querySelector(isFind ? "[data-all]:checked" : "#choose-all:checked")) tick(true);
  const goBack = (place) => place !== document.activeElement && place.focus({ preventScroll: true });
  const isThere = active?.isConnected && active !== document.body;
  if (isLook) return isThere && goBack(active);

  const to = new URL(form && !answer.redirected ? location : answer.url);
  if (!to.searchParams.has("at") && !to.searchParams.has("key")) for (const name of ["done", "n"]) to.searchParams.delete(name);
  to.hash = hashWith("text", to.pathname === location.pathname ? text : "");
  const isGoing = how === "pushState" && to.href !== location.href;
  if (isGoing) {
    history.replaceState({ top }, "");
    history.pushState(null, "", to);
  } else if (how) history.replaceState(history.state, "", to);
  const isNext = isGoing && !isFind;
  if (isNext) scrollTo(0, 0);
  // What was pressed may be gone with the answer: the keyboard goes on where the answer is.
  const fresh = [...view.querySelectorAll("[autofocus]")].find((each) => !written.has(each));
  if (fresh) fresh.focus();
  else if (isNext) goBack(view);
  else if (isThere) goBack(active);
  else if (how) goBack(byId(row)?.querySelector("a, button") ?? said.querySelector("button") ?? view);
}

// By itself the page shows what is there now, in a few seconds, and as it is looked at again.
function look() {
  if (document.hidden || isLogin()) return;
  if (underWay) setTimeout(look, 500);
  else show(here, { isLook: true });
}
setInterval(() => underWay || look(), LOOK);
document.addEventListener("visibilitychange", look);
document.body.addEventListener("facts-changed", look);

// Searching.
const valuesOf = (form) => `${new URLSearchParams(new FormData(form))}`;
function isTyped(form) {
  const shown = form.cloneNode(true);
  shown.reset();
  return valuesOf(form) !== valuesOf(shown);
}
let isSought = false; // while somebody goes on typing, the address changes in its place
function seek(form, target) {
  const to = () => {
    const address = new URL(form.action);
    for (const [name, id] of new URLSearchParams(location.search)) if (/edit|history|source/.test(name)) address.searchParams.append(name, id);
    for (const [name, value] of new FormData(form)) if (value && name !== "text") address.searchParams.set(name, value);
    return address;
  };
  const isGoing = target && !(isSought && target.type === "search");
  isSought = target?.type === "search";
  return show(to, { text: form.elements.text.value.trim(), how: isGoing ? "pushState" : "replaceState", isFind: true });
}
document.addEventListener("input", ({ target }) => {
  if (!target.form?.matches("[data-live]")) return;
  clearTimeout(typing);
  typing = setTimeout(() => target.isConnected && seek(target.form, target), target.type === "search" ? 250 : 0);
});

// What was pressed before may have opened or closed rows by then; what has become something else leads where it led.
function late(pressed, read) {
  const [was, title] = [read(), pressed.textContent];
  return () => (pressed.textContent === title ? read() : was);
}

const busy = new WeakSet();
document.addEventListener("submit", async (event) => {
  const form = event.target;
  const by = event.submitter;
  if (event.defaultPrevented || !form.matches("[action], [data-token]")) return;
  event.preventDefault();
  if (form.matches("[data-token]")) {
    sessionStorage.setItem(TOKEN, new FormData(form).get("token").trim());
    return (await show(here)) && chat();
  }
  if (form.id === "find") return clearTimeout(typing), seek(form, by ?? form);
  const body = new URLSearchParams(new FormData(form, by));
  if (form.matches("#choose")) for (const [name, value] of new FormData(byId("find"))) body.set(name, value);
  if (by?.matches("[data-download]")) return download(by, body);
  if (form.matches("[data-import]") && form.elements.file.files.length) return takeIn(form);
  const pressed = by ?? form;
  if (busy.has(pressed)) return; // twice is once
  busy.add(pressed);
  const isElsewhere = form.matches("[data-whole]");
  const to = late(pressed, () => by?.getAttribute("formaction") ?? form.getAttribute("action"));
  const isDone = await show(to, { form, body, how: "replaceState", isElsewhere });
  busy.delete(pressed);
  if (!isDone) return;
  document.body.dispatchEvent(new Event("done"));
  if (form.closest("#chat")) form.remove();
  // The chat may still show the words: of this conversation, or of all.
  if (form.matches("[data-erases]")) document.body.dispatchEvent(new CustomEvent("erased", { detail: body.get("id") }));
});

document.addEventListener("click", (event) => {
  const link = event.target.closest("a[href]");
  const closes = event.target.closest("[data-close]");
  if (closes) {
    event.preventDefault();
    said.replaceChildren();
    asking?.focus();
    return;
  }
  if (!link || link.target || event.defaultPrevented || event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
  const goal = link.getAttribute("href");
  if (goal.startsWith("#")) {
    const place = byId(goal.slice(1));
    if (!place) return;
    event.preventDefault(); // what stands behind the # stays
    place.scrollIntoView();
    place.focus({ preventScroll: true });
  } else if (link.matches("[data-download]")) {
    if (!token()) return;
    event.preventDefault();
    download(link);
  } else if (new URL(".", link.href).href === new URL(".", location).href) {
    event.preventDefault();
    const isWithin = view.contains(link);
    const find = byId("find");
    if (!isWithin && find?.matches("[data-live]")) history.replaceState(history.state, "", location.pathname + location.search + hashWith("text", find.elements.text.value.trim()));
    const isInRow = isWithin && link.closest("li") && new URL(link.href).pathname === location.pathname;
    show(late(link, () => link.href), { isElsewhere: !isWithin, how: isInRow ? "replaceState" : "pushState" });
  }
});

addEventListener("popstate", async () => {
  const { top } = history.state ?? {};
  await show(here, { text: kept("text"), isElsewhere: true });
  if (top !== undefined) scrollTo(0, top);
});

// A browser sends no token with a link or a form; so what is to be saved is fetched.
async function download(pressed, body) {
  const address = pressed.getAttribute("formaction") ?? pressed.getAttribute("href");
  const answer = await fetch(address, { method: body ? "POST" : "GET", headers: headers(), body }).catch(() => null);
  if (!answer?.ok) {
    const why = new DOMParser().parseFromString((await answer?.text()) ?? "", "text/html").querySelector(".problem");
    return say(why?.textContent.trim() ?? AWAY);
  }
  const link = document.createElement("a");
  link.href = URL.createObjectURL(await answer.blob());
  link.download = pressed.dataset.download;
  link.click();
  URL.revokeObjectURL(link.href);
}

// A file of any size goes to the memory API itself.
async function takeIn(form) {
  const sent = { method: "POST", headers: { ...headers(), "Content-Type": "application/jsonl" }, body: form.elements.file.files[0] };
  const answer = await fetch(form.dataset.import, sent).catch(() => null);
  const done = await answer?.json().catch(() => null);
  if (!answer?.ok) return say(answer?.status === 422 ? form.dataset.wrong : AWAY);
  form.reset();
  const refused = done.refused.map(({ line, reason }) => `line ${line}: ${reason.replaceAll("_", " ")}`);
  const why = refused.length ? `, ${refused.length + done.refused_more} refused (${refused.slice(0, 5).join("; ")}${refused.length > 5 ? "; …" : ""})` : "";
  say(`Taken in: ${done.created.length} new facts; ${done.known} were known already${why}.`);
  look();
}

const boxes = () => [...document.querySelectorAll('.facts [type=checkbox][name="id"]')];
const alls = () => document.querySelectorAll("[data-all]");
const tick = (is, all = boxes()) => all.forEach((box) => { box.checked = is; });
// "All" goes without a look at the boxes: whoever spares one fact must not lose it.
document.addEventListener("change", ({ target }) => {
  const isAll = target.matches("[data-all]");
  if (isAll) {
    tick(target.checked);
    allOf = valuesOf(byId("find")); // which may not be searched for yet
  }
  if (target.id !== "choose-all" && !((isAll || boxes().includes(target)) && !target.checked)) return;
  tick(target.checked, alls());
});

document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") {
    const within = document.activeElement?.closest(".fact, .held, #said, .anew, .threads[open]");
    const closes = within?.querySelector("[data-escape], [data-close], [type=button], summary");
    closes?.focus();
    closes?.click();
  }
  const isWriting = document.activeElement?.matches("input, textarea, select");
  if (event.key === "/" && !isWriting) {
    const search = byId("find-text");
    if (search) event.preventDefault();
    search?.focus();
  }
});

// The chat needs who one is, and the SDK; where that is not built, the page says so.
async function chat(shown) {
  if (isLogin() && !token()) return;
  try {
    await import("./chat.js");
    await shown;
    document.body.dispatchEvent(new Event("entered"));
  } catch {
    const place = byId("chat");
    place.hidden = true;
    place.parentElement.classList.remove("with-chat");
  }
}

const find = byId("find");
let first; // what is shown of it
if (isLogin() ? token() : kept("text")) {
  view.hidden = true; // what is found is not all that is there
  first = show(here).finally(() => { view.hidden = false; });
} else if (find?.matches("[data-live]") && isTyped(find)) seek(find, find); // before this script was there
chat(first);
