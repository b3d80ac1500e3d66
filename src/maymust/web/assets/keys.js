// Keys that work wherever nothing is being written, and the help that lists them.
import { h } from "./dom.js";

const KEYS = [
  ["← →", "step"],
  ["↑ ↓", "tool"],
  ["Home End", "first, last step"],
  ["Enter", "go to the reasons; in the playground: call the tool"],
  ["f", "next refused call (F: the one before)"],
  ["d", "next difference (D: the one before)"],
  ["Esc", "back to the matrix"],
  ["?", "this help"],
];

export function isWriting(target) {
  return target instanceof Element && Boolean(target.closest("textarea, input, select, [contenteditable], dialog[open]"));
}

export function listenToKeys(actions) {
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    if (event.key === "Escape" && !document.querySelector("dialog[open]")) {
      actions.back();
      return;
    }
    if (isWriting(event.target)) return;
    const scrolls = event.target instanceof Element && event.target.closest("[role=region], [role=menu]");
    const action = actions[event.key];
    if (!action || (scrolls && event.key.startsWith("Arrow"))) return;
    action();
    event.preventDefault();
  });
}

export function helpDialog() {
  const dialog = document.getElementById("help");
  document.getElementById("keys").replaceChildren(...KEYS.flatMap(([keys, about]) => [h("dt", {}, keys.split(" ").map((key) => h("kbd", {}, key))), h("dd", {}, about)]));
  document.getElementById("help-close").addEventListener("click", () => dialog.close());
  return () => (dialog.open ? dialog.close() : dialog.showModal());
}
