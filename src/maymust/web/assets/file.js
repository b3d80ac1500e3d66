// The page as a file: its runs are in it.
import { Browser, legend, summary } from "./browse.js";
import { h, inline } from "./dom.js";
import { Run } from "./run.js";

function fromFragment() {
  const said = new URLSearchParams(location.hash.slice(1));
  const number = (name) => (/^\d+$/.test(said.get(name) || "") ? Number(said.get(name)) : 0);
  return { run: number("run"), step: number("step"), tool: said.get("tool") };
}

export function openFile(data) {
  const runs = data.runs.map((snapshot) => new Run(snapshot));
  const choice = document.getElementById("choice");
  const start = fromFragment();
  let shown = Math.min(start.run, runs.length - 1);
  let other = 1;
  const browser = new Browser({
    onplace: (column, row) => {
      const said = new URLSearchParams({ run: shown, step: column + 1 });
      if (row.kind === "tool" && row.tool.length < 200) said.set("tool", row.tool);
      try {
        history.replaceState(null, "", `#${said}`);
      } catch {
        // some browsers allow it only so often
      }
    },
  });

  const differences = () => {
    if (runs.length < 2) return [];
    const list = data.differences[shown === 0 ? other : shown] || [];
    // They are told from the first run's side.
    return shown === 0 ? list : list.map((one) => ({ ...one, before: one.after, after: one.before }));
  };
  const show = () => {
    browser.show(runs[shown], differences());
    const against = runs.length < 2 ? "" : ` · ${differences().length} differences from ${inline(runs[shown === 0 ? other : 0].name, 60)}`;
    document.getElementById("summary").textContent = summary(runs[shown]) + against;
  };
  if (runs.length > 1) {
    const select = h("select", { id: "run", "aria-label": "run" }, runs.map((run, place) => h("option", { value: place, selected: place === shown }, inline(run.name, 60))));
    select.addEventListener("change", () => {
      if (Number(select.value) !== 0) other = Number(select.value);
      shown = Number(select.value);
      show();
    });
    choice.replaceChildren(select);
  } else choice.replaceChildren(h("span", { class: "runname" }, inline(runs[0].name, 80)));
  legend(document.getElementById("legend"));
  show();
  const row = runs[shown].rows.findIndex((one) => one.kind === "tool" && one.tool === start.tool);
  browser.matrix.select(Math.max(0, row), start.step - 1, { quiet: true });
  browser.selected(true);
  return browser;
}
