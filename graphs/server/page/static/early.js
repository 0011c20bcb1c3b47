// What is pressed or chosen before the page's other scripts are there waits for them. Carried out at once, it would load the
// whole page, take the keyboard's place away, and ask nobody before it throws something away. This script is loaded before
// anything is shown, so nothing can be pressed before it runs.
{
  const root = document.documentElement;
  const pressed = new Set();
  const changed = new Set();
  root.classList.add("scripted");

  const hold = (event) => {
    const target = event.target.closest("a[hx-get], button");
    if (!target || event.button || event.ctrlKey || event.metaKey || event.shiftKey) return;
    // Scripts may hang. Whoever presses again gets what a browser without scripts would do.
    if (pressed.has(target)) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    pressed.add(target);
    target.setAttribute("aria-busy", "true");
  };
  const note = ({ target }) => changed.add(target);

  addEventListener("click", hold, true);
  addEventListener("change", note, true);
  addEventListener("input", note, true);

  // The other scripts have run by now, or could not be loaded. On the window, so that htmx comes first.
  addEventListener("DOMContentLoaded", () => {
    removeEventListener("click", hold, true);
    removeEventListener("change", note, true);
    removeEventListener("input", note, true);
    root.classList.toggle("scripted", "htmx" in window);
    for (const each of changed) for (const name of ["input", "change"]) each.dispatchEvent(new Event(name, { bubbles: true }));
    for (const each of pressed) {
      each.removeAttribute("aria-busy");
      each.click();
    }
  });
}
