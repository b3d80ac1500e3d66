// The panel that says why: the rules, what of the history they rest on, and what would change it.
import { h, inline, long, theirs } from "./dom.js";
import { OPEN, VERDICTS, rowName } from "./run.js";

const OUTCOMES = { ok: "ran and returned", failed: "failed", denied: "a person said no", refused: "was refused, and never ran" };
const CHOICES = {
  auto: "The model may call a tool or answer with text.",
  required: "The model has to call one of the open tools.",
  none: "The model has to answer with text.",
};

export function chip(verdict) {
  return h("span", { class: `chip v-${verdict}` }, h("span", { "aria-hidden": "true" }, VERDICTS[verdict].glyph), ` ${verdict}`);
}

// `ask` gives more about a cell when it is not in the data: {facts, outlook, opens}.
export function whyPanel(run, row, column, { differences, ask, actions }) {
  const what = run.rows[row];
  const at = run.columns[column];
  const parts = [h("p", { class: "where" }, `step ${run.steps(column)} · turn ${at.turn}`, at.relaxed && " · obligations relaxed")];
  if (at.fault) parts.push(h("p", { class: "fault" }, theirs(at.fault, 4000)));
  if (what.kind === "tool") parts.push(...toolParts(run, what.tool, column, ask));
  else if (what.kind === "unknown") parts.push(h("h3", {}, "Names that are no tool here"));
  else if (what.kind === "choice") parts.push(h("h3", {}, "tool_choice"), h("p", {}, h("code", {}, theirs(at.choice || "—"))), h("p", {}, CHOICES[at.choice] || "The model has to call this tool."));
  else parts.push(h("h3", {}, at.stop ? "The run may stop" : "The run may not stop"), ...(run.verdict("final_answer", column) ? ruleParts(run, "final_answer", column, ask) : []));
  const different = differences?.get(column);
  const told = what.kind === "tool" ? [different?.get(what.tool), different?.get("")] : [different?.get("")];
  for (const one of told.filter(Boolean)) parts.push(differencePart(one));
  if (actions) parts.push(actions);
  const calls = what.kind === "tool" || what.kind === "unknown" ? run.calls(what, column) : [];
  parts.push(...calls.map((call) => callPart(call)));
  return h("div", { class: "why" }, parts);
}

function toolParts(run, tool, column, ask) {
  const verdict = run.verdict(tool, column);
  if (!verdict) return [h("h3", {}, theirs(tool)), h("p", {}, "The tool was not there in this step.")];
  return [h("h3", {}, chip(verdict), " ", theirs(tool)), h("p", { class: "about" }, VERDICTS[verdict].about), ...ruleParts(run, tool, column, ask)];
}

function ruleParts(run, tool, column, ask) {
  const cell = run.cell(tool, column);
  const rules = cell.rules || [];
  const loud = rules.filter((rule) => rule.does.length);
  const still = rules.filter((rule) => !rule.does.length);
  const parts = [];
  if (loud.length) parts.push(h("ul", { class: "rules" }, loud.map(rulePart)));
  else if (!rules.length) parts.push(h("p", { class: "note" }, "No rule speaks of it."));
  for (const text of cell.only || []) parts.push(h("p", { class: "note" }, "only with ", theirs(text, 500)));
  if (still.length) parts.push(h("details", {}, h("summary", {}, `${still.length} rule${still.length === 1 ? " lets" : "s let"} it be`), h("ul", { class: "rules" }, still.map(rulePart))));
  parts.push(changePart(run, cell, tool, column, ask));
  return parts;
}

function rulePart(rule) {
  const does = rule.does.join(" and ") || "lets it be";
  return h("li", {}, h("p", {}, h("code", {}, theirs(rule.name)), ` ${does}`, rule.of && [" ", theirs(rule.of)]), rule.reason && h("p", { class: "reason" }, theirs(rule.reason, 2000)), rule.when && h("p", { class: "note" }, "when ", theirs(rule.when, 400)), rule.evidence && h("p", { class: "note" }, "evidence: ", theirs(rule.evidence, 500)));
}

function changePart(run, cell, tool, column, ask) {
  if (OPEN.includes(cell.v)) return null;
  const place = h("div", { class: "change", "aria-live": "polite" });
  const show = (said) => {
    const facts = (said.facts || []).map((fact) => h("li", {}, theirs(fact, 500)));
    const way = (said.opens || []).map((name) => h("li", {}, theirs(name)));
    place.replaceChildren(
      ...[
        facts.length && h("h4", {}, "Evidence"),
        facts.length && h("ul", { class: "facts" }, facts),
        said.outlook && h("h4", {}, "What would change it"),
        said.outlook && h("p", {}, theirs(said.outlook, 2000)),
        way.length > 1 && h("ol", { class: "way" }, way),
        said.problem && h("p", { class: "note" }, inline(said.problem, 400)),
      ].filter(Boolean),
    );
  };
  if (cell.outlook) show(cell);
  else if (ask) {
    place.append(h("p", { class: "note" }, "looking for what would change it …"));
    ask(tool, column).then(show, (error) => show({ problem: String(error.message || error) }));
  } else if (run.unexplained) show({ problem: "The run is too long to find out for every step what would change it. maymust explain TRACE --step K --tool T tells it." });
  else show({ facts: cell.facts, problem: "What would change it is not known: some of its rules are Python code, or the run's own." });
  return place;
}

function differencePart(one) {
  return h("div", { class: "difference" }, h("h4", {}, "Differs"), h("p", {}, theirs(one.before, 300), " → ", theirs(one.after, 300)), (one.reasons || []).map((reason) => h("p", { class: "note" }, theirs(reason, 500))), (one.rules || []).length ? h("p", { class: "note" }, "rule: ", theirs(one.rules.join(", "), 300)) : null);
}

function callPart(call) {
  return h(
    "section",
    { class: `call o-${call.outcome}` },
    h("h4", {}, "Called: ", h("b", {}, call.outcome), ` (${OUTCOMES[call.outcome] || ""})`),
    call.unknown && h("p", {}, h("code", {}, theirs(call.tool, 300))),
    call.untrusted && h("p", { class: "note" }, "its output is from outside"),
    call.args !== undefined && [h("p", { class: "label" }, "arguments"), long(call.args, "arguments")],
    call.out !== undefined && [h("p", { class: "label" }, "output"), long(call.out, "output")],
    call.text !== undefined && [h("p", { class: "label" }, "what the model read"), long(call.text, "what the model read")],
  );
}

export function shortWhy(run, row, column) {
  const what = run.rows[row];
  if (what.kind !== "tool") return rowName(what);
  return `${inline(what.tool, 60)}: ${run.verdict(what.tool, column) || "not there"}`;
}
