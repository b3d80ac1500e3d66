// The text of a policy with what is wrong with it, and what verification finds.
import { h, inline, theirs } from "./dom.js";

export class Editor {
  constructor(root, { onchange, onwitness }) {
    this.onwitness = onwitness;
    this.gutter = h("div", { class: "gutter", "aria-hidden": "true" });
    this.area = h("textarea", { id: "policy", spellcheck: "false", autocomplete: "off", autocapitalize: "off", wrap: "off", "aria-label": "policy text", "aria-describedby": "problems" });
    this.list = h("ul", { id: "problems", class: "findings", "aria-label": "problems" });
    this.found = h("div", { id: "findings", "aria-live": "polite" });
    this.case = h("div", { id: "case" });
    root.replaceChildren(h("section", { class: "card" }, h("h2", {}, "Policy"), h("div", { class: "code" }, this.gutter, this.area), this.list), h("section", { class: "card" }, h("h2", {}, "Findings"), this.found), this.case);
    this.marks = new Map();
    this.area.addEventListener("input", () => {
      this.number();
      onchange(this.area.value);
    });
    this.area.addEventListener("scroll", () => {
      this.gutter.scrollTop = this.area.scrollTop;
    });
  }

  set(text) {
    if (this.area.value !== text) this.area.value = text;
    this.number();
  }

  number() {
    const count = this.area.value.split("\n").length;
    const lines = [];
    for (let line = 1; line <= Math.min(count, 5000); line += 1) lines.push(h("span", { class: this.marks.get(line) || null }, String(line)));
    this.gutter.replaceChildren(...lines);
    this.area.rows = Math.max(12, Math.min(30, count + 1));
    this.gutter.scrollTop = this.area.scrollTop;
  }

  problems(list) {
    this.marks = new Map(list.map((one) => [one.line, one.severity]));
    this.area.setAttribute("aria-invalid", String(list.length > 0));
    this.list.replaceChildren(...list.map((one) => this.item(one)));
    this.number();
  }

  trouble(text) {
    this.list.replaceChildren(h("li", { class: "error" }, inline(text, 400)));
  }

  waiting() {
    this.found.classList.add("stale");
  }

  findings(said) {
    this.found.classList.remove("stale");
    if (said.failed) return this.found.replaceChildren(h("p", { class: "note" }, `Not verified: ${inline(said.failed, 300)}`));
    if (said.problems) return this.found.replaceChildren(h("p", { class: "note" }, "What stands there is no policy yet."));
    const head = h("p", { class: `verdict ${said.verdict}` }, said.verdict === "ok" ? "✓ every run can end" : `${said.verdict === "undecided" ? "?" : "✗"} ${said.verdict.replaceAll("_", " ")}`);
    const list = h("ul", { class: "findings", tabindex: "-1" }, said.findings.map((one) => this.item(one)));
    const more = h("details", {}, h("summary", {}, "what holds, under which assumptions"), h("ul", { class: "facts" }, [...said.facts, ...said.assumptions.map((one) => `assumed: ${one}`)].map((one) => h("li", {}, theirs(one, 300)))));
    return this.found.replaceChildren(head, list, more);
  }

  item(one) {
    const place = one.line && h("button", { type: "button", class: "quiet place", onclick: () => this.goTo(one) }, `line ${one.line}, column ${one.column}`);
    return h("li", { class: one.severity }, h("p", {}, h("b", {}, [one.severity, one.code].filter(Boolean).join(" ")), " ", theirs(one.message, 600)), one.help && h("p", { class: "note" }, theirs(one.help, 400)), h("p", {}, place, one.witness && this.witness(one.witness)));
  }

  witness(witness) {
    const text = witness.length ? witness.map((word) => inline(word, 40)).join(" → ") : "at the start";
    return h("button", { type: "button", class: "quiet play", "aria-label": `play the witness: ${text}`, onclick: () => this.onwitness(witness) }, "▶ ", text);
  }

  // Choose what is meant in the text.
  goTo({ line, column, end_line: endLine, end_column: endColumn }) {
    const lines = this.area.value.split("\n");
    const at = (row, place) => lines.slice(0, row - 1).reduce((sum, text) => sum + text.length + 1, 0) + place - 1;
    const start = at(line, column);
    this.area.focus();
    this.area.setSelectionRange(start, endLine ? Math.max(start + 1, at(endLine, endColumn)) : start + 1);
  }

  test(text) {
    const area = h("textarea", { readonly: true, rows: String(text.split("\n").length), "aria-label": "policy test", wrap: "off" });
    area.value = text;
    this.case.replaceChildren(h("section", { class: "card" }, h("h2", {}, "Policy test"), h("div", { class: "code" }, area)));
  }
}
