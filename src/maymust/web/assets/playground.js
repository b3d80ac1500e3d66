// The playground: a policy is written, a history is composed, the server folds both.
import { api } from "./api.js";
import { announce, byId, h, inline } from "./dom.js";
import { Editor } from "./editor.js";
import { OPEN, Run } from "./run.js";

const PAUSE = 250;
const BEAT = 800;
const COMES = [
  ["ok", "it succeeds"],
  ["failed", "it fails"],
  ["denied", "a person says no"],
];

// Texts of any alphabet in an address.
function packed(value) {
  const bytes = new TextEncoder().encode(JSON.stringify(value));
  let text = "";
  for (const byte of bytes) text += String.fromCharCode(byte);
  return btoa(text).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

function unpacked(text) {
  const bytes = Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (char) => char.charCodeAt(0));
  return JSON.parse(new TextDecoder().decode(bytes));
}

export class Playground {
  constructor(browser, policy, isOpen) {
    this.browser = browser;
    this.isOpen = isOpen;
    this.policy = policy;
    this.history = [];
    this.wanted = null;
    this.run = null;
    this.editor = new Editor(byId("editor"), {
      onchange: (text) => {
        this.policy = text;
        this.later();
      },
      onwitness: (witness) => this.play(witness),
    });
  }

  // --- the state, and its address ---
  read(fragment) {
    if (!fragment.startsWith("play=")) return false;
    try {
      const said = unpacked(fragment.slice(5));
      if (typeof said.p !== "string" || !Array.isArray(said.h)) return false;
      this.set(said.p, said.h.map(String));
      this.wanted = { column: Number(said.c) || 0, row: said.t };
      return true;
    } catch {
      return false;
    }
  }

  set(policy, history) {
    this.policy = policy;
    this.history = history;
    this.wanted = { column: history.length };
  }

  write() {
    if (!this.isOpen()) return;
    const { row, column } = this.browser.matrix;
    const what = this.run && this.run.rows[row];
    const fragment = `#play=${packed({ p: this.policy, h: this.history, c: column, t: what && what.tool })}`;
    try {
      history.replaceState(null, "", fragment);
    } catch {
      // browsers allow it only so often, and so long
    }
  }

  open() {
    Object.assign(this.browser, {
      ask: (tool, column) => api("/api/play/why", { policy: this.policy, history: this.history.slice(0, column), tool }),
      actions: (row, column) => this.actions(column),
      onopen: (row, column, element) => this.menu(row, column, element),
    });
    byId("tools").replaceChildren(
      h("button", { type: "button", class: "quiet", id: "undo", onclick: () => this.back(this.history.length - 1) }, "undo"),
      h("button", { type: "button", class: "quiet", id: "restart", onclick: () => this.back(0) }, "start over"),
      h("button", { type: "button", class: "quiet", id: "copy", onclick: () => this.copyTest() }, "copy as test"),
    );
    this.editor.set(this.policy);
    this.run = null;
    this.browser.clear();
    this.fold();
    this.verify();
  }

  // --- asking the server ---
  later() {
    clearTimeout(this.waiting);
    this.waiting = setTimeout(() => {
      this.fold();
      this.verify();
    }, PAUSE);
  }

  async fold() {
    this.folding?.abort();
    const mine = new AbortController();
    this.folding = mine;
    try {
      const said = await api("/api/play", { policy: this.policy, history: this.history }, mine.signal);
      if (!this.isOpen() || mine.signal.aborted) return;
      this.editor.problems(said.problems || []);
      if (said.run) this.show(said);
    } catch (error) {
      if (error.name !== "AbortError") this.editor.trouble(error.message);
    }
    this.write();
  }

  async verify() {
    this.verifying?.abort();
    const mine = new AbortController();
    this.verifying = mine;
    this.editor.waiting();
    try {
      const said = await api("/api/findings", { policy: this.policy }, mine.signal);
      if (!mine.signal.aborted) this.editor.findings(said);
    } catch (error) {
      if (error.name !== "AbortError") this.editor.findings({ failed: error.message });
    }
  }

  show(said) {
    const { matrix } = this.browser;
    const kept = this.run && this.run.rows[matrix.row];
    this.run = new Run(said.run);
    this.history = said.history;
    const last = this.run.columns.length - 1;
    const stuck = this.run.columns[last].fault;
    this.run.open = said.ended || stuck ? -1 : last;
    this.browser.show(this.run);
    const name = this.wanted?.row ?? kept?.tool;
    const row = name === undefined ? 0 : this.run.rows.findIndex((one) => one.tool === name);
    const column = this.wanted ? Math.min(this.wanted.column, last) : last;
    this.wanted = null;
    matrix.select(Math.max(0, row), column, { quiet: true });
    this.browser.selected(true);
    const end = said.ended ? "the run has ended" : stuck ? "no next step" : "click an open tool to call it";
    byId("summary").textContent = [`${this.history.length} steps composed`, end, said.cut && `cut short: ${inline(said.cut, 200)}`].filter(Boolean).join(" · ");
    byId("undo").disabled = byId("restart").disabled = !this.history.length;
  }

  // --- composing ---
  append(word) {
    this.stop();
    this.history = [...this.history, word];
    announce(`called ${word}`);
    this.fold();
  }

  back(length) {
    this.stop();
    this.history = this.history.slice(0, Math.max(0, length));
    this.fold();
  }

  actions(column) {
    if (!this.run || column >= this.history.length) return null;
    return h("p", {}, h("button", { type: "button", onclick: () => this.back(column) }, "go on from this step"));
  }

  menu(row, column, element) {
    this.closeMenu();
    const what = this.run?.rows[row];
    if (!what || what.kind !== "tool" || column !== this.run.open || !element) return false;
    const verdict = this.run.verdict(what.tool, column);
    if (!OPEN.includes(verdict)) return false;
    const last = what.tool === "final_answer";
    const choices = COMES.filter(([outcome]) => outcome === "ok" || (!last && (outcome === "failed" || verdict === "ask")));
    const items = choices.map(([outcome, about]) => {
      const item = h("button", { type: "button", role: "menuitem", tabindex: "-1" }, h("b", {}, outcome), ` ${last ? "the run ends" : about}`);
      item.addEventListener("click", () => {
        this.closeMenu();
        this.browser.matrix.grid.focus();
        this.append(outcome === "ok" ? what.tool : `${what.tool}!${outcome}`);
      });
      return item;
    });
    const menu = h("div", { class: "menu", id: "menu", role: "menu", "aria-label": `call ${inline(what.tool, 60)}` }, items);
    menu.addEventListener("keydown", (event) => this.menuKey(event, items));
    menu.addEventListener("focusout", (event) => !menu.contains(event.relatedTarget) && this.closeMenu());
    byId("stage").append(menu);
    const { left, bottom, top } = element.getBoundingClientRect();
    const below = bottom + menu.offsetHeight + 8 < innerHeight;
    menu.style.left = `${Math.max(8, Math.min(left, innerWidth - menu.offsetWidth - 8)) + scrollX}px`;
    menu.style.top = `${(below ? bottom + 4 : top - menu.offsetHeight - 4) + scrollY}px`;
    items[0].focus();
    return true;
  }

  menuKey(event, items) {
    const at = items.indexOf(document.activeElement);
    const move = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (move) items[(at + move + items.length) % items.length].focus();
    else if (event.key === "Escape" || event.key === "Tab") {
      this.closeMenu();
      this.browser.matrix.grid.focus();
    } else return;
    event.preventDefault();
    event.stopPropagation();
  }

  closeMenu() {
    const menu = byId("menu");
    if (!menu || this.closing) return false;
    this.closing = true; // taking it away takes the focus out of it
    menu.remove();
    this.closing = false;
    return true;
  }

  // --- playing back a witness ---
  async play(witness) {
    this.stop();
    this.history = [...witness];
    await this.fold();
    const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
    const last = this.run.columns.length - 1;
    let column = still ? last : 0;
    const beat = () => {
      this.browser.matrix.select(this.browser.matrix.row, column);
      column += 1;
      if (column <= last) this.playing = setTimeout(beat, BEAT);
    };
    beat();
    announce(`played back ${witness.length} steps`);
  }

  stop() {
    clearTimeout(this.playing);
  }

  async copyTest() {
    const { column } = this.browser.matrix;
    const button = byId("copy");
    try {
      const said = await api("/api/test", { policy: this.policy, history: this.history.slice(0, column) });
      if (said.problems) throw new Error("the policy has to be right first");
      this.editor.test(said.text);
      const copied = await navigator.clipboard?.writeText(said.text).then(() => true, () => false);
      button.textContent = copied ? "copied" : "it stands below the policy";
    } catch (error) {
      button.textContent = inline(error.message, 80);
    }
    setTimeout(() => {
      button.textContent = "copy as test";
    }, 2500);
  }
}

