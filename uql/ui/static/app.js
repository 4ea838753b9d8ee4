// The page: it asks the server of this machine, and draws what comes back. Text of the data is only ever set as text.
import { picture } from "/static/dag.js";
import { Editor } from "/static/editor.js";

const $ = (id) => document.getElementById(id);
const ROW = 28, PAGE = 200, TALLEST = 12_000_000;
const NUMBER = /INT|DOUBLE|FLOAT|DECIMAL|REAL/;
let current = null, plan = null, checks = 0, source = null;

async function api(path, body) {
  const response = await fetch(`/api/${path}`, body === undefined ? {} : { method: "POST", headers: { "X-UQL": "1", "Content-Type": "application/json" }, body: JSON.stringify(body) });
  const found = (response.headers.get("content-type") || "").includes("json") ? await response.json() : { error: { message: await response.text() } };
  if (!response.ok) throw new Error(worded(found.error));
  return found;
}
const worded = (error) => `${error.code ? `${error.code}: ` : ""}${error.message}${error.help ? `\nhelp: ${error.help}` : ""}`;
function make(name, properties = {}, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}

// ------------------------------------------------------------------------------------------------- statement and price
const editor = new Editor($("text"), $("shown"), $("completions"), () => { clearTimeout(checks); checks = setTimeout(check, 250); });
const range = (r, show) => (r.low === r.high ? show(r.expected) : `${show(r.expected)} (${show(r.low)}–${show(r.high)})`);
const whole = (n) => Math.round(n).toLocaleString("en");

async function check() {
  const text = editor.text;
  if (!text.trim()) { $("price").textContent = ""; problem(null); return; }
  try {
    const found = await api("check", { text });
    if (text !== editor.text) return;
    problem(found.ok ? null : found.error);
    if (!found.ok) { $("price").textContent = ""; return; }
    plan = found.plan;
    $("price").textContent = plan ? price(plan) : "";
    if (!running()) drawPlan();
  } catch (error) { $("price").textContent = error.message; }
}
function price(found) {
  const p = found.price;
  if (found.answered_from) return `0 new calls: ${found.answered_from}`;
  if (!p.calls.high) return "no calls";
  const parts = [`${range(p.calls, whole)} calls`];
  if (found.budget_calls !== null) parts.push(`at most ${whole(found.budget_calls)}`);
  parts.push(`${range(p.input_tokens, whole)} + ${range(p.output_tokens, whole)} tokens`);
  parts.push(p.usd === null || p.usd === undefined ? "price unknown" : range(p.usd, (n) => `$${n.toFixed(4)}`));
  return parts.join(", ");
}
function problem(error) {
  $("problem").hidden = !error;
  $("problem").textContent = error ? worded(error) : "";
  editor.mark(error ? error.start : -1, error ? error.end : -1);
}

// -------------------------------------------------------------------------------------------------------------- running
const running = () => current !== null && ["waiting", "running"].includes(current.status);
async function begin(text, kind) {
  if (running() || !text.trim()) return;
  problem(null);
  try { follow(await api(`runs${kind === "ask" ? "?kind=ask" : ""}`, { text })); }
  catch (error) { problem({ message: error.message, start: -1 }); }
}
function follow(snapshot) {
  current = snapshot;
  busy(true);
  show(snapshot.kind === "ask" ? "answer" : "plan");
  source?.close();
  source = new EventSource(`/api/runs/${snapshot.id}/events`);
  source.onmessage = (message) => {
    current = JSON.parse(message.data);
    progress();
    if (!running()) { source.close(); ended(); }
  };
  source.onerror = () => { if (source.readyState === EventSource.CLOSED && running()) { busy(false); problem({ message: "the server is gone: start `uql ui` again", start: -1 }); } };
}
function busy(yes) {
  $("run").disabled = yes;
  $("cancel").disabled = !yes;
}
function progress() {
  $("live").hidden = false;
  const line = current.calls || current.cached || running() ? current.line : "no calls";
  $("line").textContent = `${current.status}: ${line}${current.seconds ? `, ${current.seconds.toFixed(1)} s` : ""}`;
  $("estimates").replaceChildren(...current.estimates.map((e) => make("figure", {}, narrowing(e), make("figcaption", { textContent: `${e.name || "estimate"} = ${e.text}` }))));
  if (current.kind === "uql") drawPlan();
  else if (!current.answer) $("view-answer").replaceChildren(make("ul", {}, ...Object.entries(current.nodes).map(([name, state]) => make("li", { textContent: `${name}: ${state}` }))));
}
function narrowing({ name, course }) {
  const points = course.map(([at, low, high, value]) => ({ at, low, high, value })).filter((p) => Number.isFinite(p.low) && Number.isFinite(p.high));
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("viewBox", "0 0 400 60");
  svg.setAttribute("preserveAspectRatio", "none");
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", `the interval of ${name || "the estimate"} as calls are made`);
  if (points.length < 2) return svg;
  const top = Math.max(...points.map((p) => p.high)), bottom = Math.min(...points.map((p) => p.low)), first = points[0].at, span = Math.max(1, points.at(-1).at - first);
  const x = (p) => ((p.at - first) / span) * 400, y = (v) => 58 - ((v - bottom) / (top - bottom || 1)) * 56;
  const path = (d, fill, stroke) => {
    const made = document.createElementNS("http://www.w3.org/2000/svg", "path");
    made.setAttribute("d", d);
    made.setAttribute("fill", fill);
    made.setAttribute("stroke", stroke);
    made.setAttribute("vector-effect", "non-scaling-stroke");
    svg.append(made);
  };
  path(`M${points.map((p) => `${x(p)},${y(p.high)}`).join("L")}L${[...points].reverse().map((p) => `${x(p)},${y(p.low)}`).join("L")}Z`, "var(--band)", "none");
  path(`M${points.map((p) => `${x(p)},${y(p.value)}`).join("L")}`, "none", "var(--accent)");
  return svg;
}
function ended() {
  busy(false);
  if (current.error) { problem(current.kind === "ask" || current.text !== editor.text ? { ...current.error, start: -1 } : current.error); return; }
  if (current.answer) { drawAnswer(); show("answer"); return; }
  if (current.result) { drawGrid(); show("rows"); }
}

// ---------------------------------------------------------------------------------------------------------------- views
const TABS = ["rows", "plan", "chart", "errors", "answer", "runs"];
function show(name) {
  for (const tab of TABS) {
    const chosen = tab === name;
    $(`tab-${tab}`).setAttribute("aria-selected", chosen);
    $(`tab-${tab}`).tabIndex = chosen ? 0 : -1;
    $(`view-${tab}`).hidden = !chosen;
  }
  if (name === "chart") drawChart();
  if (name === "errors") drawErrors();
  if (name === "runs") drawRuns();
}
for (const tab of TABS) {
  $(`tab-${tab}`).addEventListener("click", () => show(tab));
  $(`tab-${tab}`).addEventListener("keydown", (event) => {
    const move = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!move) return;
    const next = TABS[(TABS.indexOf(tab) + move + TABS.length) % TABS.length];
    show(next);
    $(`tab-${next}`).focus();
  });
}
function drawPlan() {
  if (!plan) { $("view-plan").replaceChildren(make("p", { className: "quiet", textContent: "Plain SQL: DuckDB runs it as it is." })); return; }
  const asked = Object.entries(current && current.text === editor.text ? current.asked : {});
  const says = (s, text) => s.what.includes(text) || s.inputs.some((below) => says(below, text));
  const step = (s) => {  // calls stand at the lowest step that names their text
    const here = ([text]) => text && s.what.includes(text) && !s.inputs.some((below) => says(below, text));
    const calls = asked.filter(here).reduce((sum, [, n]) => sum + n, 0);
    const item = make("li", {}, make("b", { textContent: s.operator }), ` ${s.what} `);
    if (calls) item.append(make("span", { className: "count", textContent: `${whole(calls)} calls made ` }));
    const notes = [...s.notes, ...(s.reads.length ? [`reads ${s.reads.join(", ")}`] : []), ...(s.calls ? [`${range(s.calls, whole)} calls`] : [])];
    if (notes.length) item.append(make("span", { className: "quiet", textContent: `[${notes.join("; ")}]` }));
    if (s.inputs.length) item.append(make("ul", { className: "tree" }, ...s.inputs.map(step)));
    return item;
  };
  const parts = [make("ul", { className: "tree" }, step(plan.plan))];
  if (plan.readings.length) parts.push(make("p", { className: "quiet", textContent: "Quoted texts, as they were read:" }), make("ul", {}, ...plan.readings.map((r) => make("li", { textContent: r }))));
  for (const warning of plan.warnings) parts.push(make("p", { textContent: `Warning: ${warning}` }));
  $("view-plan").replaceChildren(...parts);
}
async function drawChart() {
  if (!current?.result) { $("view-chart").textContent = "No result yet."; return; }
  const response = await fetch(`/api/runs/${current.id}/chart.svg`);
  if (!response.ok) { $("view-chart").textContent = worded((await response.json()).error); return; }
  const image = make("img", { alt: `Chart of ${current.text}` });
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(await response.text())}`;
  $("view-chart").replaceChildren(image);
}
async function drawErrors() {
  if (!current?.result) { $("view-errors").textContent = "No result yet."; return; }
  try { $("view-errors").replaceChildren(table(["row", "kind", "message"], (await api(`runs/${current.id}/errors`)).map((e) => [e.row, e.kind, e.message]), "Every row has its answer.")); }
  catch (error) { $("view-errors").textContent = error.message; }
}
function table(names, rows, empty) {
  if (!rows.length) return make("p", { className: "quiet", textContent: empty });
  const cell = (value) => make("td", {}, make("pre", { textContent: value ?? "NULL" }));
  return make("table", {}, make("thead", {}, make("tr", {}, ...names.map((n) => make("th", { textContent: n, scope: "col" })))), make("tbody", {}, ...rows.map((r) => make("tr", {}, ...r.map(cell)))));
}
async function drawRuns() {
  const runs = await api("runs");
  const pick = [];
  const note = make("div");
  const lines = runs.map((r) => {
    const box = make("input", { type: "checkbox", disabled: !r.result });
    box.setAttribute("aria-label", `compare run ${r.id}`);
    box.addEventListener("change", async () => {
      if (box.checked) pick.push(r.id); else pick.splice(pick.indexOf(r.id), 1);
      if (pick.length !== 2) { note.textContent = "Choose two runs to see in which rows they differ."; return; }
      try {
        const d = await api(`diff?a=${pick[0]}&b=${pick[1]}`);
        note.replaceChildren(make("h2", { textContent: "Only in the first" }), table(d.columns, d.only_first, "No row."), make("h2", { textContent: "Only in the second" }), table(d.columns, d.only_second, "No row."));
      } catch (error) { note.textContent = error.message; }
    });
    const again = make("button", { textContent: "Open" });
    again.addEventListener("click", () => {
      if (running()) return;
      if (r.kind === "uql") editor.text = r.text;
      current = r;
      progress();
      ended();
    });
    return make("tr", {}, make("td", {}, box), make("td", {}, make("pre", { textContent: r.text })), make("td", { textContent: r.status }), make("td", { textContent: r.line }), make("td", {}, again));
  });
  const empty = make("p", { className: "quiet", textContent: "No run yet." });
  $("view-runs").replaceChildren(lines.length ? make("table", {}, make("tbody", {}, ...lines)) : empty, note);
}
function drawAnswer() {
  const a = current.answer;
  const parts = [make("p", {}, make("b", { textContent: a.text }))];
  for (const note of a.notes) parts.push(make("p", { className: "quiet", textContent: note }));
  for (const svg of a.plots) parts.push(make("img", { alt: "Plot of the answer", src: `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg)}` }));
  if (a.nodes.length) parts.push(picture(a.nodes));
  for (const s of a.steps) parts.push(make("details", {}, make("summary", { textContent: s.title }), make("pre", { textContent: s.text })));
  if (a.uql) {
    const edit = make("button", { textContent: "Edit this UQL" });
    edit.addEventListener("click", () => { editor.text = a.uql; editor.area.focus(); });
    parts.push(make("pre", { textContent: a.uql }), edit);
  }
  $("view-answer").replaceChildren(...parts);
}

// ----------------------------------------------------------------------------------------------------------------- grid
let pages = new Map(), at = 0;
function drawGrid() {
  const { columns, types, rows, footer } = current.result;
  const run = current.id;
  pages = new Map();
  at = 0;
  const grid = $("grid");
  grid.setAttribute("aria-rowcount", rows + 1);
  $("footer").textContent = footer.join("\n");
  const widths = columns.map((name, i) => `${NUMBER.test(types[i]) ? 150 : Math.max(140, Math.min(420, Math.floor(900 / columns.length)))}px`).join(" ");
  const line = (className, cells) => {
    const made = make("div", { className: `row ${className}` }, ...cells);
    made.style.gridTemplateColumns = widths;
    made.setAttribute("role", "row");
    return made;
  };
  const head = line("head", columns.map((name, i) => {
    const cell = make("div", { className: `cell ${NUMBER.test(types[i]) ? "right" : ""}`, title: types[i] }, `${name} `, make("small", { textContent: types[i].toLowerCase() }));
    cell.setAttribute("role", "columnheader");
    return cell;
  }));
  const spacer = make("div", { className: "spacer" }, head);
  const height = Math.min(rows * ROW, TALLEST), scale = rows * ROW > TALLEST ? (rows * ROW) / TALLEST : 1;
  spacer.style.height = `${height + ROW}px`;
  grid.replaceChildren(spacer);
  grid.scrollTop = 0;
  const fetched = (page) => {
    if (!pages.has(page)) pages.set(page, api(`runs/${run}/rows?offset=${page * PAGE}&limit=${PAGE}`));
    return pages.get(page);
  };
  async function draw() {
    const first = Math.max(0, Math.floor((grid.scrollTop * scale) / ROW) - 5);
    const last = Math.min(rows, first + Math.ceil(grid.clientHeight / ROW) + 10);
    const wanted = [];
    for (let page = Math.floor(first / PAGE); page * PAGE < last; page++) wanted.push(page);
    const found = new Map(await Promise.all(wanted.map(async (page) => [page, await fetched(page)])));
    if (current.id !== run) return;
    const lines = [];
    for (let r = first; r < last; r++) {
      const values = found.get(Math.floor(r / PAGE))?.[r % PAGE];
      if (!values) continue;
      const made = line(r === at ? "at" : "", values.map((value, i) => {
        const cell = make("div", { className: `cell ${NUMBER.test(types[i]) ? "right" : ""} ${value === null ? "null" : ""}`, textContent: value ?? "NULL", title: value ?? "NULL" });
        cell.setAttribute("role", "gridcell");
        return cell;
      }));
      made.style.top = `${ROW + r * ROW - (scale > 1 ? grid.scrollTop * (scale - 1) : 0)}px`;
      made.setAttribute("aria-rowindex", r + 2);
      made.addEventListener("click", () => { at = r; why(run, r); });
      lines.push(made);
    }
    spacer.replaceChildren(head, ...lines);
  }
  grid.onscroll = () => requestAnimationFrame(draw);
  grid.onkeydown = (event) => {
    const move = { ArrowDown: 1, ArrowUp: -1, PageDown: 15, PageUp: -15, Home: -rows, End: rows }[event.key];
    if (move) {
      event.preventDefault();
      at = Math.max(0, Math.min(rows - 1, at + move));
      const top = (at * ROW) / scale;
      if (top < grid.scrollTop) grid.scrollTop = top;
      if (top > grid.scrollTop + grid.clientHeight - 2 * ROW) grid.scrollTop = top - grid.clientHeight + 3 * ROW;
      draw();
    } else if (event.key === "Enter" && rows) why(run, at);
  };
  draw();
}
async function why(run, row) {
  try { $("why-text").textContent = (await api(`runs/${run}/why?row=${row}`)).text; }
  catch (error) { $("why-text").textContent = error.message; }
  if (!$("why").open) $("why").showModal();
}

// ----------------------------------------------------------------------------------------------------------------- start
async function schema() {
  const { tables, write } = await api("schema");
  $("mode").textContent = write ? "may write" : "reads only";
  editor.names = [...new Set(tables.flatMap((t) => [t.table, ...t.columns]))];
  const item = (name, detail) => {
    const button = make("button", { textContent: name, title: `insert ${name}` });
    button.addEventListener("click", () => editor.insert(/^\w+$/.test(name) ? name : `"${name}"`));
    return make("li", {}, button, detail ? make("span", { className: "quiet", textContent: ` ${detail}` }) : "");
  };
  $("tables").replaceChildren(...tables.map((t) => {
    const made = item(t.table, "");
    made.append(make("ul", {}, ...t.columns.map((c, i) => item(c, t.types[i].toLowerCase()))));
    return made;
  }));
  if (tables.length && editor.text === "SELECT 1 AS one") editor.text = `SELECT *\nFROM ${/^\w+$/.test(tables[0].table) ? tables[0].table : `"${tables[0].table}"`}\nLIMIT 100`;
  if (window.matchMedia("(max-width: 640px)").matches) $("tables-box").open = false;
}
$("run").addEventListener("click", () => begin(editor.text, "uql"));
$("cancel").addEventListener("click", () => current && api(`runs/${current.id}/cancel`, {}));
$("ask").addEventListener("submit", (event) => { event.preventDefault(); begin($("question").value, "ask"); });
document.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); begin(editor.text, "uql"); }
  if (event.key === "Escape" && running()) api(`runs/${current.id}/cancel`, {});
});
schema().then(check);
