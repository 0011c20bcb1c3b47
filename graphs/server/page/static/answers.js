// The Markdown of an answer becomes HTML in which nothing is alive.

import { DOMPurify, marked } from "./rendering.js";
import { afterThoughts } from "./thoughts.js";

const TAGS = "a blockquote br code del em h1 h2 h3 h4 h5 h6 hr li ol p pre strong table tbody td th thead tr ul".split(" ");
// Only what leads out of the page is a link.
const KEPT = {
  ALLOWED_TAGS: TAGS, ALLOWED_ATTR: ["href", "start"], ADD_URI_SAFE_ATTR: ["start"],
  ALLOWED_URI_REGEXP: /^(?:https?|mailto):/i, RETURN_DOM_FRAGMENT: true,
};

const escaped = (text) => text.replace(/[&<>"']/g, (each) => `&#${each.charCodeAt()};`);

marked.use({
  breaks: true,
  renderer: {
    html: ({ text }) => escaped(text), // for who asks about markup
    image: ({ href, text }) => `<a href="${escaped(href)}">${escaped(text || href)}</a>`, // telling no server who looks
    checkbox: ({ checked }) => (checked ? "[x] " : "[ ] "),
  },
});

export async function copy({ target }, text) {
  // A browser gives pages of other machines without TLS no clipboard.
  const isDone = await navigator.clipboard?.writeText(text).then(() => true, () => false);
  target.textContent = isDone ? "Copied" : "This browser lets no page copy";
  setTimeout(() => { target.textContent = "Copy"; }, 2000);
}

export function textOf({ type, content }) {
  const text = typeof content === "string" ? content : (content ?? []).map((block) => block.text ?? "").join("");
  return type === "human" ? text : afterThoughts(text);
}

export function shownOf(text) {
  const shown = DOMPurify.sanitize(marked.parse(text), KEPT);
  for (const link of shown.querySelectorAll("a")) Object.assign(link, { target: "_blank", rel: "noopener noreferrer" });
  for (const wide of shown.querySelectorAll("pre, table")) {
    wide.tabIndex = 0; // moved with the keyboard, too
    if (wide.tagName !== "PRE") continue;
    const button = Object.assign(document.createElement("button"), { type: "button", className: "link", textContent: "Copy" });
    button.addEventListener("click", (event) => copy(event, wide.textContent));
    wide.before(button);
  }
  return shown;
}
