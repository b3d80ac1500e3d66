// The matrix: a grid of which only what is seen is in the document.
import { h, inline } from "./dom.js";
import { OPEN, VERDICTS, choiceText, rowName } from "./run.js";

const SPARE = 4;
const MARKS = { ok: "", failed: "✗", denied: "✗", refused: "!" };

export class Matrix {
  constructor(root, { onselect, onactivate }) {
    this.root = root;
    this.onselect = onselect;
    this.onactivate = onactivate;
    this.row = 0;
    this.column = 0;
    this.run = null;
    this.differences = new Map();
    this.drawn = new Map();
    this.headers = new Map();
    this.head = h("div", { class: "row head", role: "row", "aria-rowindex": "1" });
    this.space = h("div", { class: "space", role: "presentation" });
    this.foot = h("div", { class: "foot", role: "presentation" });
    this.band = h("div", { class: "band", role: "presentation" });
    this.canvas = h("div", { class: "canvas", role: "rowgroup" }, this.head, this.space, this.foot, this.band);
    this.grid = h("div", { class: "grid", id: "grid", role: "grid", tabindex: "0", "aria-label": "Permit matrix: rows are tools, columns are steps" }, this.canvas);
    root.append(this.grid);
    this.grid.addEventListener("scroll", () => this.later());
    this.grid.addEventListener("keydown", (event) => this.key(event));
    this.grid.addEventListener("click", (event) => this.click(event));
    new ResizeObserver(() => this.resized()).observe(root);
  }

  show(run, differences = new Map()) {
    const grown = run === this.run;
    this.run = run;
    this.differences = differences;
    this.row = Math.min(this.row, run.rows.length - 1);
    this.column = Math.max(0, Math.min(this.column, run.columns.length - 1));
    this.measure();
    if (!grown) this.grid.scrollLeft = this.grid.scrollTop = 0;
    this.clear();
    this.draw();
  }

  measure() {
    const style = getComputedStyle(this.grid);
    const number = (name) => parseFloat(style.getPropertyValue(name));
    this.w = number("--cell-w");
    this.h = number("--cell-h");
    const longest = Math.max(9, ...this.run.tools.map((tool) => Math.min(40, tool.length)));
    const most = Math.min(number("--label-max"), this.root.clientWidth * 0.45 || 999);
    this.label = Math.max(96, Math.min(most, longest * 7.6 + 32));
    this.grid.style.setProperty("--label", `${this.label}px`);
    this.body = this.run.rows.length - 2;
    this.canvas.style.width = `${this.label + this.run.columns.length * this.w}px`;
    this.space.style.height = `${this.body * this.h}px`;
    this.grid.setAttribute("aria-rowcount", this.run.rows.length + 1);
    this.grid.setAttribute("aria-colcount", this.run.columns.length + 1);
  }

  resized() {
    if (!this.run) return;
    const before = [this.w, this.h, this.label].join();
    this.measure();
    if (before !== [this.w, this.h, this.label].join()) this.clear();
    this.later();
  }

  clear() {
    this.drawn.clear();
    this.headers.clear();
    this.head.replaceChildren(h("span", { class: "name corner", role: "columnheader", "aria-colindex": "1" }, "step"));
    this.foot.replaceChildren();
    for (const old of this.canvas.querySelectorAll(":scope > .row:not(.head)")) old.remove();
  }

  later() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => {
      this.waiting = false;
      if (this.run) this.draw();
    });
  }

  range() {
    const { scrollLeft, scrollTop, clientWidth, clientHeight } = this.grid;
    const c0 = Math.max(0, Math.floor(scrollLeft / this.w) - SPARE);
    const c1 = Math.min(this.run.columns.length, Math.ceil((scrollLeft + clientWidth - this.label) / this.w) + SPARE);
    const r0 = Math.max(0, Math.floor(scrollTop / this.h) - SPARE);
    const r1 = Math.min(this.body, Math.ceil((scrollTop + clientHeight) / this.h) + SPARE);
    return { c0, c1, r0, r1 };
  }

  draw() {
    const { c0, c1, r0, r1 } = this.range();
    const wanted = new Set();
    for (let row = r0; row < r1; row += 1) wanted.add(row);
    if (this.row < this.body) wanted.add(this.row);
    wanted.add(this.body).add(this.body + 1);
    for (const [row, line] of this.drawn) {
      if (wanted.has(row)) continue;
      line.element.remove();
      this.drawn.delete(row);
    }
    for (const row of [...wanted].sort((a, b) => a - b)) this.line(row, c0, c1);
    this.fill(this.headers, this.head, c0, c1, (column) => this.header(column));
    this.mark();
  }

  fill(known, parent, c0, c1, make) {
    for (const [column, element] of known) {
      if ((column >= c0 && column < c1) || column === this.column) continue;
      element.remove();
      known.delete(column);
    }
    const add = (column) => {
      if (known.has(column) || column < 0 || column >= this.run.columns.length) return;
      const element = make(column);
      element.style.left = `${this.label + column * this.w}px`;
      known.set(column, element);
      parent.append(element);
    };
    for (let column = c0; column < c1; column += 1) add(column);
    add(this.column);
  }

  line(row, c0, c1) {
    let line = this.drawn.get(row);
    if (!line) {
      const what = this.run.rows[row];
      const name = rowName(what);
      const label = h("span", { class: `name ${what.kind}`, role: "rowheader", "aria-colindex": "1", title: inline(name, 200) }, h("bdi", {}, inline(name, 60)));
      const element = h("div", { class: `row ${what.kind}`, role: "row", "aria-rowindex": row + 2, "data-r": row }, label);
      line = { element, cells: new Map() };
      this.drawn.set(row, line);
      if (row >= this.body) this.foot.append(element);
      else {
        element.style.top = `calc(var(--head-h) + ${row * this.h}px)`;
        this.canvas.append(element);
      }
    }
    this.fill(line.cells, line.element, c0, c1, (column) => this.cell(row, column));
  }

  header(column) {
    const { run } = this;
    const one = run.columns[column];
    const refused = run.refused(column);
    const differs = this.differences.has(column);
    const words = [`step ${run.steps(column)}, turn ${one.turn}`, refused && "a call was refused", differs && "differs", one.relaxed && "obligations relaxed", one.fault && "no next step"];
    const classes = ["col", refused && "refusal", differs && "differs", one.fault && "fault"].filter(Boolean).join(" ");
    const count = (one.calls || []).length;
    return h("span", { class: classes, role: "columnheader", "aria-colindex": column + 2, "data-c": column, title: words.filter(Boolean).join("; "), "aria-label": words.filter(Boolean).join("; ") }, `${one.step}`, count > 1 && h("small", {}, `–${one.step + count - 1}`));
  }

  cell(row, column) {
    const { run } = this;
    const what = run.rows[row];
    const name = inline(rowName(what), 60);
    const at = `step ${run.steps(column)}`;
    const props = { role: "gridcell", id: `c${row}-${column}`, "aria-colindex": column + 2, "data-c": column, "aria-selected": "false" };
    if (what.kind === "choice") {
      const { choice } = run.columns[column];
      return h("span", { ...props, class: "cell choice", title: inline(choice, 80), "aria-label": `tool_choice at ${at}: ${inline(choice || "none possible", 80)}` }, choiceText(run, column));
    }
    if (what.kind === "stop") {
      const yes = run.columns[column].stop;
      return h("span", { ...props, class: `cell stop ${yes ? "yes" : "no"}`, "aria-label": `${at}: the run ${yes ? "may" : "may not"} stop` }, yes ? "✓" : "–");
    }
    const verdict = what.kind === "tool" ? run.verdict(what.tool, column) : null;
    const calls = run.calls(what, column);
    const different = what.kind === "tool" && this.differences.get(column)?.get(what.tool);
    const classes = ["cell", verdict ? `v-${verdict}` : "absent"];
    const words = [`${name}, ${at}: ${verdict || (what.kind === "unknown" ? (calls.length ? "no such tool" : "nothing") : "not there")}`];
    if (calls.length) {
      const worst = ["refused", "denied", "failed"].find((outcome) => calls.some((call) => call.outcome === outcome)) || "ok";
      classes.push("called", `o-${worst}`);
      words.push(`called: ${calls.map((call) => call.outcome).join(", ")}`);
    }
    if (different) {
      classes.push("differs");
      words.push(`differs: ${different.before} / ${different.after}`);
    }
    if (run.open === column && OPEN.includes(verdict)) classes.push("can");
    const badge = calls.length && (calls.length > 1 ? `${calls.length}` : MARKS[calls[0].outcome]);
    const mark = badge ? h("i", { "aria-hidden": "true" }, badge) : null;
    return h("span", { ...props, class: classes.join(" "), "aria-label": words.join("; ") }, verdict ? VERDICTS[verdict].glyph : calls.length ? "∅" : "", mark);
  }

  mark() {
    for (const old of this.canvas.querySelectorAll(".now")) old.classList.remove("now");
    for (const old of this.canvas.querySelectorAll('[aria-selected="true"]')) old.setAttribute("aria-selected", "false");
    if (!this.run.columns.length) return this.grid.removeAttribute("aria-activedescendant");
    this.headers.get(this.column)?.classList.add("now");
    this.drawn.get(this.row)?.element.firstChild.classList.add("now");
    this.drawn.get(this.row)?.cells.get(this.column)?.setAttribute("aria-selected", "true");
    this.band.style.left = `${this.label + this.column * this.w}px`;
    this.grid.setAttribute("aria-activedescendant", `c${this.row}-${this.column}`);
    return undefined;
  }

  select(row, column, { quiet = false } = {}) {
    if (!this.run || !this.run.columns.length) return;
    this.row = Math.max(0, Math.min(row, this.run.rows.length - 1));
    this.column = Math.max(0, Math.min(column, this.run.columns.length - 1));
    this.reveal();
    this.draw();
    if (!quiet) this.onselect(this.row, this.column);
  }

  reveal() {
    const { grid } = this;
    const left = this.column * this.w;
    const room = grid.clientWidth - this.label;
    if (left < grid.scrollLeft) grid.scrollLeft = left;
    else if (left + this.w > grid.scrollLeft + room) grid.scrollLeft = left + this.w - room + this.w / 2;
    if (this.row >= this.body) return;
    const top = this.row * this.h;
    const high = grid.clientHeight - this.head.offsetHeight - this.foot.offsetHeight;
    if (top < grid.scrollTop) grid.scrollTop = top;
    else if (top + this.h > grid.scrollTop + high) grid.scrollTop = top + this.h - high;
  }

  element() {
    return this.drawn.get(this.row)?.cells.get(this.column) || null;
  }

  click(event) {
    const cell = event.target.closest("[data-c]");
    const line = event.target.closest("[data-r]");
    if (!cell && !line) return;
    const column = cell ? Number(cell.dataset.c) : this.column;
    this.select(line ? Number(line.dataset.r) : this.row, column);
    if (cell && line) this.onactivate(event);
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const page = Math.max(1, Math.floor(this.grid.clientHeight / this.h) - 4);
    const moves = {
      ArrowLeft: [0, -1],
      ArrowRight: [0, 1],
      ArrowUp: [-1, 0],
      ArrowDown: [1, 0],
      Home: [0, -this.column],
      End: [0, this.run.columns.length],
      PageUp: [-page, 0],
      PageDown: [page, 0],
    };
    const move = moves[event.key];
    if (move) this.select(this.row + move[0], this.column + move[1]);
    else if (event.key === "Enter" || event.key === " ") this.onactivate(event);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }
}
