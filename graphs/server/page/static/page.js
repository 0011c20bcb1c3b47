// What the page does beyond forms and links. It holds no data of anybody, and stores nothing but a token, for one tab.

const root = document.documentElement;
const TOKEN = "palimpsest-token";
const said = document.getElementById("said");
const away = document.getElementById("away");
root.classList.toggle("scripted", "htmx" in window);

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

document.body.addEventListener("htmx:configRequest", (event) => Object.assign(event.detail.headers, headers()));

// Looks that the page takes by itself wait while somebody types or reads there, and while nobody looks.
document.body.addEventListener("htmx:beforeRequest", (event) => {
  const element = event.detail.elt;
  if (element.matches("[data-poll]") && (document.hidden || element.contains(document.activeElement))) event.preventDefault();
});

document.body.addEventListener("htmx:beforeSwap", (event) => {
  const status = event.detail.xhr.status;
  away.hidden = true;
  if (status === 401 || (status === 403 && !event.detail.xhr.getResponseHeader("Content-Type")?.includes("html"))) {
    event.detail.shouldSwap = false;
    ask(token() ? "This token is not accepted." : "");
  }
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
  if (event.detail.successful) {
    said.replaceChildren();
    if (form.matches?.("form[data-reset]")) form.reset();
  }
});

// `scrollIntoView` would also have the keyboard begin there, behind the link that skips the menu.
function bringIntoMenu(link) {
  const menu = link?.parentElement;
  if (menu) menu.scrollLeft = link.offsetLeft - menu.offsetLeft - (menu.clientWidth - link.offsetWidth) / 2;
}

// The current part of the page, in its title and its menu.
document.body.addEventListener("htmx:pushedIntoHistory", () => {
  const current = location.pathname.split("/").pop();
  for (const link of document.querySelectorAll("nav [data-view]")) {
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
// Without a part of the page at hand for it, going back loads the page.
addEventListener("popstate", () => location.reload());

document.addEventListener("click", (event) => {
  const pressed = event.target.closest("[data-close], [data-download], [data-copy]");
  if (!pressed) return;
  if (pressed.matches("[data-close]")) {
    const fact = pressed.closest("li.fact");
    pressed.closest(".aside").remove();
    fact?.querySelector("a, button")?.focus();
  }
  if (pressed.matches("[data-download]") && token()) {
    event.preventDefault();
    download(pressed);
  }
});

// A browser sends no token with a link or a form, so what is to be saved is fetched first.
async function download(pressed) {
  const form = pressed.form;
  const address = pressed.getAttribute("formaction") ?? pressed.getAttribute("href");
  const body = form && new URLSearchParams(new FormData(form));
  const answer = await fetch(address, { method: form ? "POST" : "GET", headers: headers(), body });
  if (!answer.ok) return say(`That did not work (${answer.status}).`);
  const link = document.createElement("a");
  link.href = URL.createObjectURL(await answer.blob());
  link.download = pressed.dataset.download;
  link.click();
  URL.revokeObjectURL(link.href);
}

document.addEventListener("change", (event) => {
  if (!event.target.matches("[data-all]")) return;
  for (const box of document.querySelectorAll('.facts [type=checkbox][name="id"]')) box.checked = event.target.checked;
});

document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") {
    const within = document.activeElement?.closest(".fact, .aside");
    within?.querySelector("[data-escape], [data-close]")?.click();
  }
  const typing = document.activeElement?.matches("input, textarea, select");
  if (event.key === "/" && !typing) {
    const search = document.getElementById("find-text");
    if (search) event.preventDefault();
    search?.focus();
  }
});

// What was pressed may be gone with the answer: the keyboard goes on where the answer is.
document.body.addEventListener("htmx:afterSettle", (event) => {
  const swapped = event.detail.elt;
  if (document.activeElement && document.activeElement !== document.body) return;
  const next = swapped.querySelector?.("[autofocus], [data-close]") ?? swapped.querySelector?.(".actions a, .actions button");
  next?.focus({ preventScroll: true });
});

setInterval(() => {
  for (const time of document.querySelectorAll("time[data-due]")) {
    const left = Math.round((new Date(time.dataset.due) - Date.now()) / 1000);
    time.textContent = left > 0 ? `in ${left} s` : "now";
  }
}, 1000);

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
  const sent = { method: "POST", headers: { ...headers(), "Content-Type": "application/json" }, body: event.target.files[0] };
  const answer = await fetch(form.dataset.import, sent).catch(() => null);
  const done = await answer?.json().catch(() => null);
  say(answer?.ok ? `Taken in: ${done.created.length} new facts; ${done.known} were known already.` : (done?.detail ?? "That did not work."));
});

// The chat needs who one is, and the SDK; where that is not built, the page says so.
async function chat() {
  if (document.querySelector("[data-login]") && !token()) return;
  try {
    const [{ Client }, { begin }] = await Promise.all([import("./langgraph.js"), import("./chat.js")]);
    begin(Client);
    reveal();
  } catch {
    document.getElementById("chat").hidden = true;
  }
}
document.addEventListener("palimpsest:entered", chat);

bringIntoMenu(document.querySelector("nav [aria-current]"));
enter();
chat();
