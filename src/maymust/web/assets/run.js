// A run as it was sent: columns, rows of changes, cells. It grows by patches.

export const VERDICTS = {
  forced: { glyph: "★", about: "the one tool that must be called" },
  allowed: { glyph: "●", about: "may be called" },
  ask: { glyph: "?", about: "may be called after a person's yes" },
  denied: { glyph: "⊘", about: "shown to the model, and closed" },
  withheld: { glyph: "○", about: "open by itself, but another tool is forced" },
  hidden: { glyph: "·", about: "neither shown nor callable" },
};
export const OPEN = ["forced", "allowed", "ask"];

export class Run {
  constructor(snapshot) {
    this.name = snapshot.name || "";
    this.columns = [];
    this.cells = [];
    this.changes = new Map();
    this.apply(snapshot);
  }

  apply(patch) {
    this.columns.length = patch.from;
    this.columns.push(...patch.columns);
    this.cells.length = patch.cells_from;
    for (const cell of patch.cells) this.cells.push(cell);
    for (const list of this.changes.values()) while (list.length && list[list.length - 2] >= patch.from) list.length -= 2;
    for (const [tool, list] of Object.entries(patch.rows)) {
      if (!this.changes.has(tool)) this.changes.set(tool, []);
      const mine = this.changes.get(tool);
      for (const number of list) mine.push(number);
    }
    this.tools = patch.order;
    this.facts = patch.facts || {};
    this.graph = patch.graph || null;
    this.leftOut = patch.left_out || [];
    this.unexplained = Boolean(patch.unexplained);
    this.rows = this.tools.map((tool) => ({ kind: "tool", tool }));
    if (this.columns.some((column) => (column.calls || []).some((call) => call.unknown))) this.rows.push({ kind: "unknown" });
    this.rows.push({ kind: "choice" }, { kind: "stop" });
    this.byTurn = new Map(this.columns.map((column, place) => [column.turn, place]));
  }

  // The last change at or before a column.
  cell(tool, column) {
    const list = this.changes.get(tool);
    if (!list || column < 0 || column >= this.columns.length) return null;
    let low = 0;
    let high = list.length / 2 - 1;
    while (low <= high) {
      const middle = (low + high) >> 1;
      if (list[2 * middle] <= column) low = middle + 1;
      else high = middle - 1;
    }
    const id = high < 0 ? -1 : list[2 * high + 1];
    return id < 0 ? null : this.cells[id];
  }

  verdict(tool, column) {
    const cell = this.cell(tool, column);
    return cell ? cell.v : null;
  }

  calls(row, column) {
    const all = (this.columns[column] && this.columns[column].calls) || [];
    if (row.kind === "unknown") return all.filter((call) => call.unknown);
    return row.kind === "tool" ? all.filter((call) => !call.unknown && call.tool === row.tool) : [];
  }

  steps(column) {
    const { step, calls } = this.columns[column];
    const count = (calls || []).length;
    return count > 1 ? `${step}–${step + count - 1}` : `${step}`;
  }

  refused(column) {
    return (this.columns[column].calls || []).find((call) => call.outcome === "refused");
  }

  rowOf(call) {
    return this.rows.findIndex((row) => (call.unknown ? row.kind === "unknown" : row.tool === call.tool));
  }
}

export function rowName(row) {
  return { tool: row.tool, unknown: "unknown names", choice: "tool_choice", stop: "may stop" }[row.kind];
}

// What tool_choice is, short enough for a cell.
export function choiceText(run, column) {
  const { choice, fault } = run.columns[column];
  if (fault) return "✕";
  return { auto: "auto", required: "any", none: "none" }[choice] || (run.verdict(choice, column) === "forced" ? "★" : "one");
}

// The same differences by column and row name; "" stands for the whole column.
export function differencesByColumn(run, list) {
  const found = new Map();
  for (const one of list || []) {
    const column = Math.min(run.byTurn.get(one.turn) ?? run.columns.length - 1, run.columns.length - 1);
    if (!found.has(column)) found.set(column, new Map());
    found.get(column).set(one.tool || "", one);
  }
  return found;
}
