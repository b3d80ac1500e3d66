// Elements, and texts that can do no harm: everything that comes from a run goes in as text, with what is unseen written out.

const UNSEEN =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufeff\u{e0000}-\u{e007f}]/gu;
const CHUNK = 20000;
const FIRST = 1200;

function writtenOut(char) {
  const number = char.codePointAt(0);
  if (number < 0x100) return "\\x" + number.toString(16).padStart(2, "0");
  return number < 0x10000 ? "\\u" + number.toString(16).padStart(4, "0") : "\\U" + number.toString(16).padStart(8, "0");
}

export function visible(text) {
  return String(text).replace(UNSEEN, writtenOut);
}

// On one line, and short.
export function inline(text, most = 160) {
  const whole = visible(String(text).slice(0, most + 1).replace(/[ \t\r\n]+/g, " "));
  return String(text).length > most ? whole.slice(0, most) + "…" : whole;
}

function fill(element, props, children) {
  for (const [name, value] of Object.entries(props || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  for (const child of children.flat()) {
    if (child !== null && child !== undefined && child !== false) element.append(child);
  }
  return element;
}

export function h(tag, props, ...children) {
  return fill(document.createElement(tag), props, children);
}

export function svg(tag, props, ...children) {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", tag), props, children);
}

// Somebody else's words: kept apart from the text around, whatever their direction.
export function theirs(text, most = 300) {
  return h("bdi", { class: "theirs" }, inline(text, most));
}

// A text of any length: its beginning, and the rest on demand.
export function long(value, label) {
  const text = typeof value === "string" ? value : value.cut;
  const whole = typeof value === "string" ? text.length : value.of;
  const body = h("pre", { class: "long", tabindex: "0", role: "region", "aria-label": label });
  const more = h("button", { type: "button", class: "quiet" });
  let shown = 0;
  const show = (count) => {
    // Never between the halves of a character.
    let end = Math.min(text.length, shown + count);
    if (end < text.length && (text.charCodeAt(end) & 0xfc00) === 0xdc00) end += 1;
    body.append(visible(text.slice(shown, end)));
    shown = end;
    const left = text.length - shown;
    more.hidden = left === 0;
    more.textContent = `show more (${left.toLocaleString("en")} characters left)`;
  };
  more.addEventListener("click", () => show(CHUNK));
  show(FIRST);
  const note = whole > text.length && h("p", { class: "note" }, `The page holds ${text.length.toLocaleString("en")} of ${whole.toLocaleString("en")} characters; the trace has all.`);
  return h("div", { class: "longbox" }, body, more, note);
}

export function announce(text) {
  const place = document.getElementById("said");
  if (place) place.textContent = text;
}

export const byId = (id) => document.getElementById(id);
