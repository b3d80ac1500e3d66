// The automaton of the policy with the trail of the run. dagre gives the places, the drawing is our own.
import { h, inline, svg } from "./dom.js";
import { VERDICTS } from "./run.js";

const CHAR = 7.3;
const LINE = 15;
const SMALLEST = 0.65;
const MOST = 48;

// Of a large graph what lies around a step of the run.
function around(run, column) {
  const { graph, columns } = run;
  if (graph.nodes.length <= MOST) return graph;
  const known = new Set(graph.nodes.map((node) => node.id));
  const kept = new Set();
  const keep = (id) => kept.size < MOST && known.has(id) && kept.add(id);
  for (let far = 0; far < columns.length && kept.size < MOST / 2; far += 1) {
    keep(columns[column - far]?.node);
    keep(columns[column + far]?.node);
  }
  for (const id of kept) for (const edge of graph.edges) if (edge.from === id) keep(edge.to);
  const nodes = graph.nodes.filter((node) => kept.has(node.id));
  const edges = graph.edges.filter((edge) => kept.has(edge.from) && kept.has(edge.to));
  return { ...graph, nodes, edges, left_out: graph.left_out + graph.nodes.length - nodes.length };
}

export class GraphView {
  constructor(root) {
    this.root = root;
    this.drawn = null;
  }

  clear() {
    this.drawn = null;
    this.root.replaceChildren();
  }

  show(run, column) {
    const { graph } = run;
    if (!graph || !graph.nodes.length) {
      this.drawn = null;
      this.root.replaceChildren(h("p", { class: "note" }, "The policy of this run is not known, so there is no graph of it."));
      return;
    }
    const { node } = run.columns[column];
    if (this.drawn !== graph || (graph.nodes.length > MOST && node !== undefined && !this.nodes.has(String(node)))) {
      this.drawn = graph;
      this.layout(around(run, column));
    }
    this.without.replaceChildren(...(run.leftOut.length ? [`Not in it, since they are Python code: ${inline(run.leftOut.join(", "), 300)}`] : []));
    this.trail(run, column);
  }

  layout(graph) {
    const g = new window.dagre.graphlib.Graph();
    g.setGraph({ rankdir: "TB", nodesep: 26, ranksep: 30, edgesep: 14, marginx: 12, marginy: 12 });
    g.setDefaultEdgeLabel(() => ({}));
    for (const node of graph.nodes) {
      const lines = [...node.lines.map((line) => inline(line, 34)), ...(node.stays.length ? [`↻ ${inline(node.stays.join(", "), 34)}`] : [])];
      const width = Math.max(44, Math.max(...lines.map((line) => line.length)) * CHAR + 22);
      g.setNode(String(node.id), { width, height: lines.length * LINE + 14, lines, node });
    }
    for (const edge of graph.edges) {
      const text = inline(edge.calls.join(", "), 34);
      g.setEdge(String(edge.from), String(edge.to), { width: text.length * CHAR * 0.92 + 8, height: 16, labelpos: "c", text });
    }
    window.dagre.layout(g);
    const { width, height } = g.graph();
    this.nodes = new Map();
    this.edges = new Map();
    const picture = svg("svg", { viewBox: `0 0 ${Math.ceil(width)} ${Math.ceil(height)}`, width: Math.ceil(width), height: Math.ceil(height), role: "img", "aria-labelledby": "graph-about" });
    picture.append(svg("defs", {}, svg("marker", { id: "arrow", viewBox: "0 0 8 8", refX: "7", refY: "4", markerWidth: "9", markerHeight: "9", markerUnits: "userSpaceOnUse", orient: "auto-start-reverse" }, svg("path", { d: "M0 0 8 4 0 8z", class: "tip" }))));
    for (const name of g.edges()) picture.append(this.edge(name, g.edge(name)));
    for (const id of g.nodes()) picture.append(this.node(id, g.node(id)));
    this.about = h("p", { id: "graph-about", class: "note" });
    const more = [
      graph.anywhere.length && h("p", { class: "note" }, `Free wherever nothing is forced, and changing nothing: ${inline(graph.anywhere.join(", "), 300)}`),
      graph.left_out > 0 && h("p", { class: "note" }, `${graph.left_out} more situations are not drawn.`),
      graph.note && h("p", { class: "note" }, inline(graph.note, 300)),
    ].filter(Boolean);
    this.without = h("p", { class: "note" });
    this.box = h("div", { class: "picture", tabindex: "0", role: "region", "aria-label": "Automaton of the policy" }, picture);
    this.picture = { element: picture, width, height };
    this.root.replaceChildren(this.about, this.box, ...more, this.without);
  }

  node(id, { x, y, width, height, lines, node }) {
    const left = x - width / 2;
    const top = y - height / 2;
    const texts = lines.map((line, place) => svg("text", { x, y: top + 7 + LINE * (place + 0.75), class: place < node.lines.length ? "" : "stays" }, line));
    const group = svg(
      "g",
      { class: `node${node.stop ? " stop" : ""}${node.stuck ? " stuck" : ""}` },
      svg("rect", { x: left, y: top, width, height, rx: 8 }),
      node.stop && svg("rect", { x: left + 3, y: top + 3, width: width - 6, height: height - 6, rx: 6, class: "inner" }),
      texts,
    );
    this.nodes.set(id, { group, x, y });
    return group;
  }

  edge({ v, w }, { points, x, y, text }) {
    const [first, ...rest] = points;
    let d = `M${first.x.toFixed(1)} ${first.y.toFixed(1)}`;
    // Curves through the middles of the bends.
    for (let place = 0; place < rest.length - 1; place += 1) {
      const a = rest[place];
      const b = rest[place + 1];
      const end = place === rest.length - 2 ? b : { x: (a.x + b.x) / 2, y: (a.y + b.y) / 2 };
      d += `Q${a.x.toFixed(1)} ${a.y.toFixed(1)} ${end.x.toFixed(1)} ${end.y.toFixed(1)}`;
    }
    if (rest.length === 1) d += `L${rest[0].x.toFixed(1)} ${rest[0].y.toFixed(1)}`;
    const group = svg("g", { class: "edge" }, svg("path", { d, "marker-end": "url(#arrow)" }), svg("text", { x, y: y + 4, class: "halo" }, text), svg("text", { x, y: y + 4 }, text));
    this.edges.set(`${v} ${w}`, group);
    return group;
  }

  trail(run, column) {
    for (const { group } of this.nodes.values()) group.classList.remove("been", "here");
    for (const group of this.edges.values()) group.classList.remove("been");
    let before = null;
    for (let place = 0; place <= column; place += 1) {
      const { node } = run.columns[place];
      if (node === undefined) {
        before = null;
        continue;
      }
      this.nodes.get(String(node))?.group.classList.add("been");
      if (before !== null && before !== node) this.edges.get(`${before} ${node}`)?.classList.add("been");
      before = node;
    }
    const here = run.columns[column]?.node;
    const scale = this.fit();
    const found = here === undefined ? null : this.nodes.get(String(here));
    this.about.textContent = here === undefined ? "No lawful run of the policy comes to this situation." : this.words(run, column);
    if (!found) return;
    found.group.classList.add("here");
    const { box } = this;
    box.scrollTo({ left: found.x * scale - box.clientWidth / 2, top: found.y * scale - box.clientHeight / 2 });
  }

  // As wide as there is room, as long as it can be read.
  fit() {
    const { element, width, height } = this.picture;
    const scale = Math.min(1, Math.max(SMALLEST, this.box.clientWidth / width));
    element.setAttribute("width", Math.floor(width * scale));
    element.setAttribute("height", Math.floor(height * scale));
    return scale;
  }

  words(run, column) {
    const open = run.tools.filter((tool) => ["forced", "allowed", "ask"].includes(run.verdict(tool, column)));
    const named = open.slice(0, 6).map((tool) => `${VERDICTS[run.verdict(tool, column)].glyph} ${inline(tool, 40)}`);
    return `Step ${run.steps(column)}: ${named.join(", ") || "nothing is open"}${open.length > 6 ? ` and ${open.length - 6} more` : ""}`;
  }
}
