// The page from a server: runs that may still go on, and the playground.
import { Browser, legend, summary } from "./browse.js";
import { announce, byId, h, inline } from "./dom.js";
import { Playground } from "./playground.js";
import { Run } from "./run.js";
import { api } from "./api.js";


class Served {
  constructor(data) {
    this.names = data.runs;
    this.shown = null;
    this.other = "";
    this.source = null;
    this.browser = new Browser({ onplace: (column, row) => this.place(column, row) });
    this.playground = new Playground(this.browser, data.policy, () => this.mode === "play");
    legend(byId("legend"));
    this.tabs();
    addEventListener("hashchange", () => this.fromFragment());
    if (!this.fromFragment()) this.go(this.names.length ? "runs" : "play");
  }

  tabs() {
    const tab = (mode, text) => {
      const button = h("button", { type: "button", "aria-pressed": "false", "data-mode": mode }, text);
      button.addEventListener("click", () => this.go(mode));
      return button;
    };
    byId("tabs").replaceChildren(tab("runs", "Runs"), tab("play", "Playground"));
    byId("tabs").hidden = false;
  }

  // False when the address says nothing.
  fromFragment() {
    const fragment = location.hash.slice(1);
    if (fragment === this.written) return true;
    if (this.playground.read(fragment)) {
      this.go("play");
      return true;
    }
    const said = new URLSearchParams(fragment);
    if (!this.names.some((one) => one.id === said.get("run"))) return false;
    this.wanted = { step: Number(said.get("step")) || 1, tool: said.get("tool") };
    this.shown = said.get("run");
    this.go("runs");
    return true;
  }

  go(mode) {
    this.mode = mode;
    document.body.classList.toggle("playing", mode === "play");
    byId("editor").hidden = mode !== "play";
    for (const button of byId("tabs").children) button.setAttribute("aria-pressed", String(button.dataset.mode === mode));
    if (mode === "play") {
      this.run = this.runId = null;
      byId("choice").replaceChildren();
      this.listen(null);
      this.playground.open();
      return;
    }
    Object.assign(this.browser, { ask: (tool, column) => this.ask(tool, column), actions: null, onopen: null });
    byId("tools").replaceChildren(h("button", { type: "button", class: "quiet", onclick: () => this.toPlayground() }, "open in playground"));
    if (!this.names.some((one) => one.id === this.shown)) this.shown = this.names[0] ? this.names[0].id : null;
    this.choose();
    this.listen(this.shown);
  }

  choose() {
    if (this.mode !== "runs") return;
    const options = (chosen, ...first) => [...first, ...this.names.map((one) => h("option", { value: one.id, selected: one.id === chosen }, inline(one.name, 60)))];
    const run = h("select", { id: "run", "aria-label": "run" }, options(this.shown));
    run.addEventListener("change", () => {
      this.shown = run.value;
      this.listen(run.value);
    });
    const other = h("select", { id: "other", "aria-label": "compared with" }, options(this.other, h("option", { value: "" }, "compare with …")));
    other.addEventListener("change", () => {
      this.other = other.value;
      this.compare();
    });
    byId("choice").replaceChildren(run, this.names.length > 1 ? other : "");
  }

  listen(id) {
    if (this.mode === "runs" && this.runId !== id) {
      this.run = null;
      this.browser.clear();
    }
    if (this.source) this.source.close();
    clearTimeout(this.again);
    if (!id && this.mode === "runs") {
      byId("summary").textContent = "";
      byId("why").replaceChildren(h("p", { class: "note" }, "There is no run yet. Whatever is written to the directory appears here."));
    }
    const source = new EventSource(id ? `/api/live?run=${encodeURIComponent(id)}` : "/api/live");
    this.source = source;
    const on = (name, act) => source.addEventListener(name, (event) => source === this.source && act(JSON.parse(event.data)));
    on("runs", (names) => this.listed(names));
    on("run", (snapshot) => this.begin(id, snapshot));
    on("patch", (patch) => this.grow(patch));
    on("problem", (text) => this.status(text ? "off" : "on", text));
    source.addEventListener("open", () => this.status("on", ""));
    source.addEventListener("error", () => {
      if (source !== this.source) return;
      this.status("off", "no connection, trying again …");
      // The browser tries again by itself, but not after a refusal.
      if (source.readyState === EventSource.CLOSED) this.again = setTimeout(() => this.listen(id), 2000);
    });
  }

  listed(names) {
    this.names = names;
    if (this.mode !== "runs") return;
    if (!this.shown && names.length) {
      this.shown = names[0].id;
      this.listen(this.shown);
    }
    this.choose();
  }

  begin(id, snapshot) {
    if (this.mode !== "runs") return;
    const { matrix } = this.browser;
    const same = this.run && this.runId === id;
    const place = same ? [matrix.row, matrix.column] : [0, 0];
    this.run = new Run(snapshot);
    this.runId = id;
    this.list = same ? this.list : [];
    this.browser.show(this.run, this.list);
    if (this.wanted) {
      place[0] = Math.max(0, this.run.rows.findIndex((row) => row.kind === "tool" && row.tool === this.wanted.tool));
      place[1] = this.wanted.step - 1;
      this.wanted = null;
    } else if (!same && !this.run.facts.stop) place[1] = this.run.columns.length - 1;
    matrix.select(...place, { quiet: true });
    this.browser.selected(true);
    if (this.other && !same) this.compare();
    this.told();
  }

  grow(patch) {
    if (this.mode !== "runs" || !this.run) return;
    const { matrix } = this.browser;
    const follows = matrix.column >= this.run.columns.length - 1;
    this.run.apply(patch);
    this.browser.show(this.run, this.list);
    if (follows) matrix.select(matrix.row, this.run.columns.length - 1, { quiet: true });
    this.browser.selected(true);
    this.told();
  }

  told() {
    byId("summary").textContent = summary(this.run);
    if (byId("live").className === "on") this.status("on", "");
  }

  status(state, text) {
    const place = byId("live");
    place.className = state;
    if (text) place.textContent = inline(text, 300);
    else place.textContent = this.mode === "runs" && this.run ? (this.run.facts.stop ? "ended" : "live") : "connected";
  }

  async compare() {
    const shown = this.shown;
    this.list = [];
    try {
      if (this.other && this.other !== shown) this.list = await api(`/api/compare?one=${shown}&other=${this.other}`);
    } catch (error) {
      announce(error.message);
    }
    if (this.mode === "runs" && this.shown === shown && this.run) this.browser.show(this.run, this.list);
  }

  ask(tool, column) {
    return api(`/api/why?run=${this.runId}&column=${column}&tool=${encodeURIComponent(tool)}`);
  }

  place(column, row) {
    if (this.mode !== "runs") {
      this.playground.write();
      return;
    }
    const said = new URLSearchParams({ run: this.runId, step: column + 1 });
    if (row.kind === "tool" && row.tool.length < 200) said.set("tool", row.tool);
    this.written = said.toString();
    history.replaceState(null, "", `#${said}`);
  }

  async toPlayground() {
    try {
      const found = await api(`/api/policy?run=${this.shown}`);
      this.playground.set(found.policy, found.history);
      this.go("play");
    } catch (error) {
      this.status("off", error.message);
    }
  }

  keys() {
    return { ...this.browser.keys(), back: () => (this.playground.closeMenu() ? undefined : this.browser.matrix.grid.focus()) };
  }
}

export function openServed(data) {
  return new Served(data);
}
