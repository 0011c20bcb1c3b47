// What the page does beyond forms and links. It holds no data of anybody, and stores nothing but a token, for one tab.

const TOKEN = "palimpsest-token";
const said = document.getElementById("said");
const away = document.getElementById("away");

export const token = () => sessionStorage.getItem(TOKEN);
export const headers = () => (token() ? { Authorization: `Bearer ${token()}` } : {});

export function say(text) {
  const line = document.createElement("p");
  line.textContent = text;
  said.replaceChildren(line);
}

// A server that requires a token answers 401 or 403 without one: ask for it, and show what was wanted.
function ask(why) {
  sessionStorage.removeItem(TOKEN);
  const view = document.getElementById("view");
  fetch(location.href, { headers: { Accept: "text/html" } })
    .then((answer) => answer.text())
    .then((text) => {
      const form = new DOMParser().parseFromString(text, "text/html").querySelector("[data-login]");
      if (form) view.replaceChildren(form);
      if (why) say(why);
    });
}

function enter() {
  if (document.querySelector("[data-login]") && token()) window.htmx?.ajax("GET", location.pathname + location.search, "#view");
}

document.addEventListener("submit", (event) => {
  if (!event.target.matches("[data-token]")) return;
  event.preventDefault();
  sessionStorage.setItem(TOKEN, new FormData(event.target).get("token").trim());
  enter();
  document.dispatchEvent(new CustomEvent("palimpsest:entered"));
});

document.body.addEventListener("htmx:configRequest", ({ detail }) => {
  Object.assign(detail.headers, headers());
  // By itself the page shows the same page of the list again.
  if (detail.triggeringEvent?.type === "facts-changed") detail.parameters.offset = document.querySelector("#choose [name=offset]")?.value ?? "";
});

// Looks that the page takes by itself wait while somebody types or reads there, and while nobody looks.
document.body.addEventListener("htmx:beforeRequest", (event) => {
  const element = event.detail.elt;
  if (element.matches("[data-poll]") && (document.hidden || element.contains(document.activeElement) || element.querySelector(".aside"))) event.preventDefault();
});

document.body.addEventListener("htmx:beforeSwap", (event) => {
  const status = event.detail.xhr.status;
  away.hidden = true;
  if (status === 401 || (status === 403 && !event.detail.xhr.getResponseHeader("Content-Type")?.includes("html"))) {
    event.detail.shouldSwap = false;
    ask(token() ? "This token is not accepted." : "");
  }
});

// What is shown anew under a mouse takes away what it presses: that waits until it is let go.
let pressed = null;
let isOwed = false;
addEventListener("pointerdown", ({ target }) => { pressed = target; }, true);
// Who lets go of a scroll bar is seen only as the mouse moves on.
for (const name of ["pointerup", "pointercancel", "pointermove"]) {
  addEventListener(name, ({ buttons }) => pressed && !buttons && setTimeout(() => {
    pressed = null;
    if (isOwed) document.body.dispatchEvent(new Event("facts-changed"));
    isOwed = false;
  }), true);
}
document.body.addEventListener("htmx:beforeSwap", ({ detail }) => {
  if (!pressed || !detail.target.contains(pressed) || !detail.requestConfig.elt.matches("#find, [data-poll]")) return;
  detail.shouldSwap = false;
  isOwed = true;
});

// A list that was asked for before a change was answered may tell what was: it is asked for again.
let changes = 0;
document.body.addEventListener("htmx:beforeRequest", ({ detail }) => { detail.requestConfig.changes = changes; });
document.body.addEventListener("htmx:afterOnLoad", ({ detail: { requestConfig: { elt, verb } } }) => {
  if (verb !== "get" && elt.id !== "find") changes += 1;
});
document.body.addEventListener("htmx:beforeSwap", ({ detail }) => {
  if (detail.requestConfig.elt.id !== "find" || detail.requestConfig.changes === changes) return;
  detail.shouldSwap = false;
  setTimeout(() => document.body.dispatchEvent(new Event("facts-changed")));
});

// What was pressed may be gone with the answer: the keyboard goes on where the answer is. Nobody else's place is moved.
let wasFocused = false;
let asking = null; // where the keyboard was as a question came
document.body.addEventListener("htmx:beforeSwap", ({ detail }) => {
  wasFocused = [detail.target, said].some((place) => place.contains(document.activeElement));
  if (detail.target === said && !wasFocused) asking = document.activeElement;
  // What somebody does next takes away what was said before; what the page does by itself does not.
  if (detail.requestConfig.triggeringEvent?.isTrusted) said.replaceChildren();
});
document.body.addEventListener("htmx:afterSettle", (event) => {
  const swapped = event.detail.elt;
  if (!wasFocused || (document.activeElement && document.activeElement !== document.body)) return;
  const places = ["[autofocus], [data-close]", ".note button", ".actions a, .actions button"];
  const next = places.map((each) => swapped.querySelector?.(each)).find(Boolean);
  next?.focus({ preventScroll: true });
});

// A look at the list keeps what somebody has begun in it: ticks, an open edit, what was opened below a fact, an undo, and
// what was asked for and is still to come, which would come into a row that is not there any more.
const BEGUN = ".facts > li:is(.editing, .gone, :has(.aside, .htmx-request))";
const left = new WeakSet(); // what was begun before somebody looked for something else
const filterOf = (list) => [...list.querySelectorAll("#choose > input[type=hidden]")].map((field) => field.value).join("\n");
let kept = null;

document.body.addEventListener("htmx:beforeSwap", (event) => {
  const list = event.detail.target;
  if (list.id !== "facts-list" || !event.detail.shouldSwap) return;
  const ticked = [...list.querySelectorAll("input:checked")].map((box) => box.id);
  const focused = list.contains(document.activeElement) ? document.activeElement : null;
  kept = { ticked, filter: filterOf(list), focused, rows: [], note: null };
  // Whoever deletes or goes on wants another list.
  if (event.detail.requestConfig.elt.id !== "find") return;
  kept.note = list.querySelector(":scope > .note:has([name=at])");
  kept.note?.remove();
  for (const row of list.querySelectorAll(BEGUN)) {
    if (!left.has(row)) kept.rows.push({ row, place: [...row.parentElement.children].indexOf(row) });
  }
  // Out of the list before htmx looks: what it removes, it also makes deaf.
  for (const { row } of kept.rows) {
    row.remove();
    // Once is enough: back in the list, htmx would give it the keyboard again, wherever that is by then.
    for (const element of row.querySelectorAll("[autofocus]")) element.removeAttribute("autofocus");
  }
});

document.addEventListener("input", ({ target }) => {
  if (target.form?.id === "find") for (const row of document.querySelectorAll(BEGUN)) left.add(row);
});

document.body.addEventListener("htmx:afterSwap", (event) => {
  const list = event.detail.target;
  if (list.id !== "facts-list" || !kept) return;
  const { ticked, filter, focused, rows, note } = kept;
  kept = null;
  if (note) list.querySelector("#choose").after(note);
  for (const { row, place } of rows) {
    const now = document.getElementById(row.id);
    const facts = list.querySelector(".facts") ?? list.appendChild(Object.assign(document.createElement("ol"), { className: "facts" }));
    if (!now) facts.insertBefore(row, facts.children[place] ?? null);
    else if (!row.matches(".gone")) now.replaceWith(row);
  }
  for (const id of ticked) {
    const box = document.getElementById(id);
    // "All" means all that the filter finds: under another filter nobody has said it.
    if (box && (box.name !== "all" || filterOf(list) === filter)) box.checked = true;
  }
  if (focused && focused !== document.activeElement) (focused.isConnected ? focused : document.getElementById(focused.id))?.focus({ preventScroll: true });
});

// The address says what is seen, but for the words that are searched for: so a reload shows it again, with the last undo.
document.body.addEventListener("htmx:afterSwap", () => {
  const choose = document.getElementById("choose");
  if (!choose) return;
  const seen = new URL(choose.dataset.address, location);
  const at = [...document.querySelectorAll("#facts-list [name=at]")].map((field) => field.value).sort().at(-1);
  if (at) seen.searchParams.set("deleted", at);
  seen.hash = location.hash; // which conversation is open
  history.replaceState(history.state, "", seen);
  shown = address();
});

document.body.addEventListener("htmx:sendError", () => {
  if (!away.hidden) return;
  away.hidden = false;
  const again = setInterval(async () => {
    const answer = await fetch("../static/icon.svg", { cache: "no-store" }).catch(() => null);
    if (!answer?.ok) return;
    clearInterval(again);
    away.hidden = true;
    document.body.dispatchEvent(new Event("facts-changed"));
  }, 3000);
});

document.body.addEventListener("htmx:afterRequest", (event) => {
  const form = event.detail.elt;
  if (event.detail.successful && form.matches?.("form[data-reset]")) form.reset();
});

// `scrollIntoView` would also have the keyboard begin there, behind the link that skips the menu.
function bringIntoMenu(link) {
  const menu = link?.parentElement;
  if (menu) menu.scrollLeft = link.offsetLeft - menu.offsetLeft - (menu.clientWidth - link.offsetWidth) / 2;
}

// The current part of the page, in its title and its menu.
const address = () => location.pathname + location.search;
let shown = address();
document.body.addEventListener("htmx:pushedIntoHistory", () => {
  shown = address();
  const current = location.pathname.split("/").pop();
  // What is below a part, as the question before an erase, stands under that part in the menu.
  const links = [...document.querySelectorAll("nav [data-view]")];
  for (const link of links.some((each) => each.dataset.view === current) ? links : []) {
    const is = link.dataset.view === current;
    link.toggleAttribute("aria-current", is);
    if (is) {
      link.setAttribute("aria-current", "page");
      document.title = `${link.textContent} · Palimpsest`;
      bringIntoMenu(link);
    }
  }
  document.getElementById("view").focus({ preventScroll: true });
  scrollTo(0, 0);
});
// Without a part of the page at hand for it, going back loads the page; to another conversation, or past a link within the
// page, it does not. htmx, which would then put the whole page into itself, is not told.
addEventListener("popstate", (event) => {
  event.stopImmediatePropagation();
  if (address() !== shown) location.reload();
});

document.addEventListener("click", (event) => {
  const pressed = event.target.closest("[data-close], [data-download]");
  if (!pressed) return;
  if (pressed.matches("[data-close]")) {
    event.preventDefault();
    const back = pressed.closest("li.fact")?.querySelector("a, button") ?? asking;
    pressed.closest(".aside, .problem").remove();
    back?.focus();
  }
  if (pressed.matches("[data-download]") && (token() || pressed.form)) {
    event.preventDefault();
    download(pressed);
  }
});

// A browser sends no token with a link or a form, and leaves the page for what is wrong; so what is to be saved is fetched.
async function download(pressed) {
  const form = pressed.form;
  const address = pressed.getAttribute("formaction") ?? pressed.getAttribute("href");
  const body = form && new URLSearchParams(new FormData(form));
  const answer = await fetch(address, { method: form ? "POST" : "GET", headers: { ...headers(), "HX-Request": "true" }, body });
  if (!answer.ok) {
    const why = new DOMParser().parseFromString(await answer.text(), "text/html").querySelector(".problem");
    return say(why?.textContent ?? `The server refused this (${answer.status}).`);
  }
  const link = document.createElement("a");
  link.href = URL.createObjectURL(await answer.blob());
  link.download = pressed.dataset.download;
  link.click();
  URL.revokeObjectURL(link.href);
}

document.addEventListener("change", (event) => {
  const boxes = [...document.querySelectorAll('.facts [type=checkbox][name="id"]')];
  if (event.target.matches("[data-all]")) {
    for (const box of boxes) box.checked = event.target.checked;
    // All are also those on this page; without those on this page, it is not all.
    for (const other of document.querySelectorAll("[data-all]")) {
      if (event.target.id === "choose-all" || !event.target.checked) other.checked = event.target.checked;
    }
  }
  // "All" goes without a look at the boxes: whoever spares one fact must not lose it.
  else if (boxes.includes(event.target) && !event.target.checked) {
    for (const all of document.querySelectorAll("[data-all]")) all.checked = false;
  }
});

document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") {
    const within = document.activeElement?.closest(".fact, .aside, .problem");
    within?.querySelector("[data-escape], [data-close]")?.click();
  }
  const typing = document.activeElement?.matches("input, textarea, select");
  if (event.key === "/" && !typing) {
    const search = document.getElementById("find-text");
    if (search) event.preventDefault();
    search?.focus();
  }
});

// What somebody opened or rewrote in a part stays so when that is shown anew.
let begun = null;
document.body.addEventListener("htmx:beforeSwap", (event) => {
  const part = event.detail.target;
  if (part.id !== "held") return;
  const words = [...part.querySelectorAll("textarea[id]")].filter((each) => each.value !== each.defaultValue);
  begun = { open: [...part.querySelectorAll("details[id]")].map((each) => [each.id, each.open]), words: words.map((each) => [each.id, each.value]) };
});
document.body.addEventListener("htmx:afterSwap", (event) => {
  if (event.detail.target.id !== "held" || !begun) return;
  for (const [id, open] of begun.open) document.getElementById(id)?.toggleAttribute("open", open);
  for (const [id, value] of begun.words) if (document.getElementById(id)) document.getElementById(id).value = value;
  begun = null;
});

// In the server's own words where it is long, so that nothing jumps between two sorts of them.
function count() {
  for (const time of document.querySelectorAll("time[data-due]")) {
    const left = Math.round((new Date(time.dataset.due) - Date.now()) / 1000);
    if (left < 3600) time.textContent = left <= 0 ? "now" : left < 60 ? `in ${left} s` : `in ${Math.floor(left / 60)} min ${left % 60} s`;
  }
}
setInterval(count, 1000);
document.body.addEventListener("htmx:afterSwap", count);

// What needs a script is shown by the script, also in what comes later.
function reveal() {
  if (document.getElementById("chat").hidden) return;
  for (const element of document.querySelectorAll("[data-needs-script][hidden]")) element.hidden = false;
}
document.body.addEventListener("htmx:afterSettle", reveal);

// A file of any size goes to the memory API itself.
document.addEventListener("change", async (event) => {
  const form = event.target.closest("[data-import]");
  if (!form || event.target.type !== "file" || !event.target.files.length) return;
  const sent = { method: "POST", headers: { ...headers(), "Content-Type": "application/jsonl" }, body: event.target.files[0] };
  const answer = await fetch(form.dataset.import, sent).catch(() => null);
  const done = await answer?.json().catch(() => null);
  if (!answer?.ok) return say(answer?.status === 422 ? form.dataset.wrong : "The file was not taken in: the server does not answer. Try again.");
  const refused = done.refused.map(({ line, reason }) => `line ${line}: ${reason.replaceAll("_", " ")}`);
  const why = refused.length ? `, ${refused.length + done.refused_more} refused (${refused.slice(0, 5).join("; ")})` : "";
  say(`Taken in: ${done.created.length} new facts; ${done.known} were known already${why}.`);
});

// The chat needs who one is, and the SDK; where that is not built, the page says so.
async function chat() {
  if (document.querySelector("[data-login]") && !token()) return;
  try {
    const [{ Client }, { begin }] = await Promise.all([import("./langgraph.js"), import("./chat.js")]);
    begin(Client);
    reveal();
  } catch {
    const place = document.getElementById("chat");
    place.hidden = true;
    place.parentElement.classList.remove("with-chat");
  }
}
document.addEventListener("palimpsest:entered", chat);

bringIntoMenu(document.querySelector("nav [aria-current]"));
count();
enter();
chat();
