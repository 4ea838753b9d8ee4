// A small picture of a DAG: nodes in columns by their depth, edges from left to right.
const SVG = "http://www.w3.org/2000/svg";
const WIDTH = 190, HEIGHT = 46, GAP_X = 50, GAP_Y = 16;

function element(name, attributes, ...children) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

function shortened(text, length) { return text.length > length ? `${text.slice(0, length - 1)}…` : text; }

/** nodes: [{name, kind, inputs, status}] → an SVG element. */
export function picture(nodes) {
  const depth = new Map();
  const known = new Map(nodes.map((node) => [node.name, node]));
  const deep = (name) => {
    if (!depth.has(name)) {
      depth.set(name, 0);
      depth.set(name, Math.max(0, ...known.get(name).inputs.filter((input) => known.has(input)).map((input) => deep(input) + 1)));
    }
    return depth.get(name);
  };
  nodes.forEach((node) => deep(node.name));
  const columns = [];
  for (const node of nodes) (columns[depth.get(node.name)] ??= []).push(node);
  const place = new Map();
  columns.forEach((column, x) => column.forEach((node, y) => place.set(node.name, [x * (WIDTH + GAP_X) + 4, y * (HEIGHT + GAP_Y) + 4])));
  const width = columns.length * (WIDTH + GAP_X) - GAP_X + 8;
  const height = Math.max(...columns.map((column) => column.length)) * (HEIGHT + GAP_Y) - GAP_Y + 8;
  const drawn = element("svg", { class: "dag", width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": "The plan as a graph" });
  for (const node of nodes) {
    for (const input of node.inputs.filter((name) => place.has(name))) {
      const [x0, y0] = place.get(input), [x1, y1] = place.get(node.name);
      const a = x0 + WIDTH, b = y0 + HEIGHT / 2, c = y1 + HEIGHT / 2;
      drawn.append(element("path", { d: `M${a},${b} C${a + GAP_X / 2},${b} ${x1 - GAP_X / 2},${c} ${x1},${c}` }));
    }
  }
  for (const node of nodes) {
    const [x, y] = place.get(node.name);
    const name = element("text", { x: x + 10, y: y + 19 }, shortened(node.name, 24));
    const kind = element("text", { x: x + 10, y: y + 36, opacity: 0.7 }, shortened([node.kind, node.status].filter(Boolean).join(" · "), 24));
    drawn.append(element("g", { class: node.status || "" }, element("rect", { x, y, width: WIDTH, height: HEIGHT, rx: 7 }), name, kind));
  }
  return drawn;
}
