// Looking at recorded runs: which one is shown, what it is compared with, where one is in it.
import { announce, h, inline } from "./dom.js";
import { GraphView } from "./graph.js";
import { Matrix } from "./matrix.js";
import { VERDICTS, differencesByColumn } from "./run.js";
import { shortWhy, whyPanel } from "./why.js";

export function legend(place) {
  place.replaceChildren(
    ...Object.entries(VERDICTS).map(([word, { glyph, about }]) => h("li", { title: about }, h("span", { class: `swatch v-${word}`, "aria-hidden": "true" }, glyph), word)),
    h("li", { title: "a frame marks the calls that were made" }, h("span", { class: "swatch called o-ok", "aria-hidden": "true" }), "called"),
    h("li", { title: "dashed: it failed, was denied or refused" }, h("span", { class: "swatch called o-refused", "aria-hidden": "true" }), "called in vain"),
  );
}

export class Browser {
  constructor({ ask = null, onplace = () => {} } = {}) {
    this.ask = ask;
    this.onplace = onplace;
    this.run = null;
    this.list = [];
    this.differences = new Map();
    this.actions = null;
    this.panel = document.getElementById("why");
    this.matrix = new Matrix(document.getElementById("matrix"), { onselect: () => this.selected(), onactivate: (event) => this.activated(event) });
    this.graph = new GraphView(document.getElementById("graph"));
    document.getElementById("previous").addEventListener("click", () => this.step(-1));
    document.getElementById("next").addEventListener("click", () => this.step(1));
    document.getElementById("refusal").addEventListener("click", () => this.refusal(1));
    document.getElementById("difference").addEventListener("click", () => this.difference(1));
  }

  show(run, list = []) {
    this.run = run;
    this.list = list;
    this.differences = differencesByColumn(run, list);
    document.body.classList.toggle("empty", !run.columns.length);
    this.matrix.show(run, this.differences);
    document.getElementById("difference").hidden = !list.length;
    document.getElementById("refusal").hidden = !run.columns.some((_, column) => run.refused(column));
    this.selected(true);
  }

  // Until there is something to show.
  clear() {
    this.run = null;
    document.body.classList.add("empty");
    this.panel.replaceChildren();
    this.graph.clear();
  }

  selected(quiet = false) {
    const { run, matrix } = this;
    if (!run || !run.columns.length) {
      this.panel.replaceChildren(h("p", { class: "note" }, "This run has no turns yet."));
      return;
    }
    const { row, column } = matrix;
    const ask = this.ask && ((tool, place) => this.ask(tool, place));
    this.panel.replaceChildren(whyPanel(run, row, column, { differences: this.differences, ask, actions: this.actions && this.actions(row, column) }));
    this.panel.scrollTop = 0;
    this.graph.show(run, column);
    document.getElementById("place").textContent = `step ${run.steps(column)} of ${this.last()}`;
    document.getElementById("previous").disabled = column === 0;
    document.getElementById("next").disabled = column === run.columns.length - 1;
    if (quiet) return;
    announce(shortWhy(run, row, column));
    this.onplace(column, run.rows[row]);
  }

  last() {
    const { columns } = this.run;
    const end = columns[columns.length - 1];
    return end.step + Math.max(0, (end.calls || []).length - 1);
  }

  activated(event) {
    if (this.onopen && this.onopen(this.matrix.row, this.matrix.column, this.matrix.element())) return;
    if (event.type === "keydown") this.panel.focus();
    else if (matchMedia("(max-width: 820px)").matches) this.panel.scrollIntoView({ block: "nearest" });
  }

  step(by) {
    this.matrix.select(this.matrix.row, this.matrix.column + by);
  }

  row(by) {
    this.matrix.select(this.matrix.row + by, this.matrix.column);
  }

  // To the next column with rows that fit, round the end; to one here, unless one of them is chosen already.
  find(by, rowsOf) {
    const count = this.run ? this.run.columns.length : 0;
    const { row, column } = this.matrix;
    for (let n = 0; n <= count; n += 1) {
      const place = (((column + by * n) % count) + count) % count;
      const rows = rowsOf(place).filter((one) => one >= 0);
      if (rows.length && (n > 0 || !rows.includes(row))) return this.matrix.select(rows[0], place);
    }
    return announce("there is none");
  }

  refusal(by) {
    this.find(by, (column) => (this.run.columns[column].calls || []).filter((call) => call.outcome === "refused").map((call) => this.run.rowOf(call)));
  }

  difference(by) {
    this.find(by, (column) => {
      const here = this.differences.get(column);
      if (!here) return [];
      const rows = this.run.rows.flatMap((one, place) => (one.kind === "tool" && here.has(one.tool) ? [place] : []));
      return rows.length ? rows : [this.run.rows.length - 2];
    });
  }

  keys() {
    return {
      ArrowLeft: () => this.step(-1),
      ArrowRight: () => this.step(1),
      ArrowUp: () => this.row(-1),
      ArrowDown: () => this.row(1),
      Home: () => this.step(-this.matrix.column),
      End: () => this.step(this.run.columns.length),
      f: () => this.refusal(1),
      F: () => this.refusal(-1),
      d: () => this.difference(1),
      D: () => this.difference(-1),
      back: () => this.matrix.grid.focus(),
    };
  }
}

// What came of the run, in a line.
export function summary(run) {
  const { facts, columns } = run;
  const steps = columns.reduce((sum, column) => sum + (column.calls || []).length, 0);
  const refused = columns.reduce((sum, column) => sum + (column.calls || []).filter((call) => call.outcome === "refused").length, 0);
  const parts = [`${columns.length} turn${columns.length === 1 ? "" : "s"}`, `${steps} step${steps === 1 ? "" : "s"}`];
  if (refused) parts.push(`${refused} refused`);
  if (facts.stop) parts.push(`ended: ${facts.stop}`);
  else if (facts.run) parts.push("not ended");
  if (facts.torn) parts.push("its last line is torn");
  return parts.map((part) => inline(part, 80)).join(" · ");
}
