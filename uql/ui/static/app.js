// The page: it asks the server of this machine, and draws what comes back.
import { picture } from "/static/dag.js";
import { Editor, quoted } from "/static/editor.js";
import { clearGrid, columnsTable, drawGrid, drawText } from "/static/grid.js";
import { $, api, button, counted, make, problem, range, table, walk, whole, worded } from "/static/page.js";

let plan = null, checks = 0, keeping = 0, source = null, tables = [], spent = { calls: 0, usd: 0 };

// ----------------------------------------------------------------------------------------------------------- statements
// A sheet is a statement with its last run: {text, run}. Each tab of the browser has its own over a reload; a new one begins with those
// that were open last over this database, which the server keeps.
const last = await api("tabs").catch((error) => ({ database: "", texts: [], error }));
const place = `sheets of ${last.database}`;
const own = JSON.parse(sessionStorage.getItem(place) ?? "[]");
const sheets = (own.length ? own : last.texts.length ? last.texts : [""]).map((text) => ({ text, run: null }));
let sheet = sheets[0];
export const editor = new Editor($("editor"), edited, () => begin(editor.text, "uql"));

function edited() {
  sheet.text = editor.text;
  drawSheets();
  drawExamples();
  clearTimeout(checks);
  plan = undefined;
  $("price").textContent = "";
  drawPlan();
  checks = setTimeout(check, 250);
}
const shortened = (text) => (text.length > 24 ? `${text.slice(0, 23)}…` : text);
function keepSheets() {
  const texts = sheets.map((s) => s.text);
  sessionStorage.setItem(place, JSON.stringify(texts));
  clearTimeout(keeping);
  keeping = setTimeout(() => api("tabs", { texts: texts.filter((text) => text.trim()) }).catch(problem), 250);
}
function drawSheets() {
  keepSheets();
  $("sheets").replaceChildren(...sheets.map((one, i) => button(shortened(one.text.replace(/\s+/g, " ").trim()) || `Statement ${i + 1}`, () => open(one), {
    id: `sheet-${i}`, role: "tab", ariaSelected: String(one === sheet), tabIndex: one === sheet ? 0 : -1, title: "Delete closes it",
    onkeydown: (event) => { if (event.key === "Delete") close(one); }, onauxclick: () => close(one),
  })));
  $("close-sheet").hidden = sheets.length === 1;
}
function open(one) {
  source?.close();
  sheet = one;
  editor.text = one.text;
  problem(null);
  drawSheets();
  draw();
}
function close(one) {
  const at = sheets.indexOf(one);
  if (sheets.length === 1) return;
  sheets.splice(at, 1);
  open(sheets[Math.max(0, at - 1)]);
}
/** A text in a new sheet, or in this one where it is empty. */
function openText(text) {
  if (editor.text.trim()) sheets.push({ text, run: null });
  else sheet.text = text;
  open(editor.text.trim() ? sheets.at(-1) : sheet);
  editor.focus();
}
walk($("sheets"));
$("close-sheet").addEventListener("click", () => close(sheet));
$("new-sheet").addEventListener("click", () => { sheets.push({ text: "", run: null }); open(sheets.at(-1)); editor.focus(); });

function drawExamples() {
  const read = (t) => t.columns.find((c, i) => t.types[i] === "VARCHAR" && /text|review|body|comment|descr|message|title/i.test(c)) ?? t.columns.find((_, i) => t.types[i] === "VARCHAR");
  const found = tables.find((t) => /text|review|body/i.test(read(t))) ?? tables.find(read);
  $("examples").hidden = Boolean(editor.text.trim() || sheet.run);
  const sample = `FROM (VALUES\n  (1, 'The battery dies after an hour.'),\n  (2, 'Arrived early, works well.'),\n  (3, 'The screen came with a scratch.')) AS reviews(id, text)`;
  const texts = found
    ? [["Look at the rows", `SELECT *\nFROM ${quoted(found.table)}\nLIMIT 100`], ["Count by meaning, with an interval", `SELECT COUNT(*) AS n\nFROM ${quoted(found.table)}\nWHERE "the ${read(found)} is a complaint"\nWITH (budget = 100)`],
      ["A new column that a model writes", `SELECT *, "what it is about, in three words" AS topic\nFROM ${quoted(found.table)}\nLIMIT 10`]]
    : [["Look at some rows", `SELECT *\n${sample}`], ["Keep the rows that mean something", `SELECT *\n${sample}\nWHERE "the customer complains"`]];
  const cards = texts.map(([title, text]) => make("li", {}, button(title, () => { openText(text); begin(text, "uql"); }, { className: "example" }), make("pre", { textContent: text })));
  $("examples").replaceChildren(make("p", {}, "SQL, in which a text in double quotes is a condition or a column that a model answers, row by row. Try one:"), make("ul", {}, ...cards));
}

// ---------------------------------------------------------------------------------------------------------------- price
async function check() {
  const text = editor.text;
  if (!text.trim()) { $("price").textContent = ""; plan = null; mark(null); return; }
  try {
    const found = await api("check", { text });
    if (text !== editor.text) return;
    mark(found.ok ? null : found.error);
    plan = found.ok ? found.plan : null;
    $("price").textContent = plan ? price(plan) : "";
    if (!running()) drawPlan();
  } catch (error) { plan = null; $("price").textContent = error.message; }
}
function price(found) {
  const p = found.price;
  if (found.answered_from) return `0 new calls: ${found.answered_from}`;
  if (!p.calls.high) return "no calls";
  const parts = [`${range(p.calls, whole)} calls`];
  if (found.budget_calls !== null) parts.push(`at most ${whole(found.budget_calls)}`);
  parts.push(`${range(p.input_tokens, whole)} + ${range(p.output_tokens, whole)} tokens`);
  if (!p.usd) parts.push("price unknown");
  else if (p.usd.high) parts.push(range(p.usd, (n) => `$${n.toFixed(4)}`));
  return parts.join(", ");
}
/** Shows an error under the text, and underlines its place. */
function mark(error) {
  problem(error);
  editor.mark(error);
}

// -------------------------------------------------------------------------------------------------------------- running
const running = () => ["waiting", "running"].includes(sheet.run?.status);
const ready = (run) => Boolean(run?.result);
async function begin(text, kind, path) {
  if (running() || !text.trim()) return;
  mark(null);
  busy(true);
  const from = sheet;
  try {
    from.run = await api(path ?? `runs${kind === "ask" ? "?kind=ask" : ""}`, { text });
    if (from === sheet) draw();
  } catch (error) { busy(false); mark({ message: error.message, start: -1 }); }
}
/** Empties every view of a result; a message stands in their place. */
function clear(message) {
  clearGrid(message);
  const empty = { columns: "No result yet.", chart: "No result yet.", errors: "No result yet.", answer: "The answer to a question in words, which you ask above, stands here." };
  for (const [view, otherwise] of Object.entries(empty)) $(`view-${view}`).replaceChildren(make("p", { className: "quiet", textContent: message || otherwise }));
}
/** Draws all that belongs to the sheet's run; what stood there before goes. */
function draw() {
  const run = sheet.run;
  source?.close();
  busy(running());
  clear(running() ? "The statement is running …" : "");
  $("live").hidden = !run;
  $("examples").hidden = Boolean(run || editor.text.trim());
  drawPlan();
  if (!run) { show("rows"); return; }
  progress();
  if (!running()) { ended(); return; }
  show(run.kind === "ask" ? "answer" : run.text === editor.text && plan !== null ? "plan" : "rows");
  source = new EventSource(`/api/runs/${run.id}/events`);
  source.onmessage = (message) => {
    sheet.run = JSON.parse(message.data);
    progress();
    if (!running()) { source.close(); ended(); state(); schema(); }
  };
  source.onerror = () => { if (source.readyState === EventSource.CLOSED && running()) { busy(false); problem({ message: "the server is gone: start `uql ui` again" }); } };
}
function busy(yes) {
  $("run").disabled = yes;
  $("cancel").disabled = !yes;
}
function progress() {
  const run = sheet.run;
  const line = run.calls || run.cached || running() ? run.line : "no calls";
  $("line").textContent = `${run.status}: ${line}${run.seconds ? `, ${run.seconds.toFixed(1)} s` : ""}`;
  $("estimates").replaceChildren(...run.estimates.map((e) => make("figure", {}, narrowing(e), make("figcaption", { textContent: `${e.name || "estimate"} = ${e.text}` }))));
  if (running()) drawSpent(run);
  if (run.kind === "uql") drawPlan();
  else if (!run.answer) $("view-answer").replaceChildren(make("ul", {}, ...Object.entries(run.nodes).map(([name, state]) => make("li", { textContent: `${name}: ${state}` }))));
}
function narrowing({ name, course }) {
  const points = course.map(([at, low, high, value]) => ({ at, low, high, value })).filter((p) => Number.isFinite(p.low) && Number.isFinite(p.high));
  if (points.length < 2) return "";
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("viewBox", "0 0 400 60");
  svg.setAttribute("preserveAspectRatio", "none");
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", `the interval of ${name || "the estimate"} as calls are made`);
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
  const run = sheet.run;
  busy(false);
  clear(run.error ? "The statement failed: no rows." : "");
  if (run.error) { mark(run.kind === "ask" || run.text !== editor.text ? { ...run.error, start: -1 } : run.error); if (run.kind === "uql") show("rows"); return; }
  if (run.answer) { drawAnswer(); show("answer"); return; }
  if (ready(run)) { (run.result.text === null ? drawGrid : drawText)(run); show("rows"); }
}

// ---------------------------------------------------------------------------------------------------------------- views
const VIEWS = { rows: null, columns: drawColumns, plan: null, chart: drawChart, errors: drawErrors, answer: null, history: drawHistory };
$("views").append(...Object.keys(VIEWS).map((name) => {
  const made = button(name[0].toUpperCase() + name.slice(1), () => show(name), { id: `tab-${name}`, role: "tab" });
  made.setAttribute("aria-controls", `view-${name}`);
  return made;
}));
walk($("views"));
function show(name) {
  for (const view of Object.keys(VIEWS)) {
    $(`tab-${view}`).ariaSelected = view === name;
    $(`tab-${view}`).tabIndex = view === name ? 0 : -1;
    $(`view-${view}`).hidden = view !== name;
  }
  VIEWS[name]?.();
}
/** Fills a view with what the server says of the run, unless another statement came before it. */
async function fill(view, work) {
  const run = sheet.run;
  if (view !== "history" && !ready(run)) return;
  $(`view-${view}`).replaceChildren(make("p", { className: "quiet", textContent: "Loading …" }));
  try {
    const parts = await work(run);
    if (sheet.run === run) $(`view-${view}`).replaceChildren(...parts);
  } catch (error) { if (sheet.run === run) $(`view-${view}`).textContent = error.message; }
}
function drawPlan() {
  if (!plan) {
    const why = plan === undefined ? "The plan of this statement is being made …" : "Plain SQL: DuckDB runs it as it is.";
    $("view-plan").replaceChildren(make("p", { className: "quiet", textContent: why }));
    return;
  }
  const asked = Object.entries(sheet.run?.text === editor.text ? sheet.run.asked : {});
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
const DARK = matchMedia("(prefers-color-scheme: dark)");
DARK.addEventListener("change", () => {
  if (!$("view-chart").hidden) drawChart();
  if (!$("view-answer").hidden && sheet.run?.answer) drawAnswer();
});
function drawChart() {
  fill("chart", async (run) => {
    const response = await fetch(`/api/runs/${run.id}/chart.svg${DARK.matches ? "?dark=1" : ""}`);
    if (!response.ok) throw new Error(worded((await response.json()).error));
    return [make("img", { alt: `Chart of ${run.text}`, src: `data:image/svg+xml;charset=utf-8,${encodeURIComponent(await response.text())}` })];
  });
}
function drawColumns() { fill("columns", async (run) => [columnsTable(await api(`runs/${run.id}/columns`))]); }
function drawErrors() {
  fill("errors", async (run) => {
    const found = await api(`runs/${run.id}/errors`);
    const retry = button("Retry the failures", () => begin(run.text, "uql", `runs/${run.id}/retry`), { className: "main" });
    return [...(found.length ? [make("p", {}, retry)] : []), table(["row", "kind", "message"], found.map((e) => [e.row, e.kind, e.message]), "Every row has its answer.")];
  });
}
function drawHistory() {
  fill("history", async () => {
    const [runs, ledger] = await Promise.all([api("runs"), api("history")]);
    const pick = [], note = make("div");
    const lines = runs.map((r) => {
      const box = make("input", { type: "checkbox", disabled: !r.result, ariaLabel: `compare run ${r.id}` });
      box.addEventListener("change", async () => {
        if (box.checked) pick.push(r.id); else pick.splice(pick.indexOf(r.id), 1);
        if (pick.length !== 2) { note.textContent = "Choose two runs to see in which rows they differ."; return; }
        try {
          const d = await api(`diff?a=${pick[0]}&b=${pick[1]}`);
          note.replaceChildren(make("h2", { textContent: "Only in the first" }), table(d.columns, d.only_first, "No rows."), make("h2", { textContent: "Only in the second" }), table(d.columns, d.only_second, "No rows."));
        } catch (error) { note.textContent = error.message; }
      });
      return [box, r.text, r.status, r.line, button("Open", () => { sheets.push({ text: r.kind === "uql" ? r.text : "", run: r }); open(sheets.at(-1)); })];
    });
    const kept = ledger.map((r) => [new Date(r.started * 1000).toLocaleString(), r.statement, `${r.status}, ${whole(r.calls)} calls${r.usd ? `, $${r.usd.toFixed(4)}` : ""}`, r.model, button("Open", () => openText(r.statement))]);
    return [make("h2", { textContent: "Since the page was started" }), table(["compare", "statement", "status", "progress", "open"], lines, "No run yet."), note,
      make("h2", { textContent: "In the ledger" }), table(["began", "statement", "status", "model", "open"], kept, "No run yet.")];
  });
}
function drawAnswer() {
  const a = sheet.run.answer;
  const parts = [make("p", {}, make("b", { textContent: a.text }))];
  for (const note of a.notes) parts.push(make("p", { className: "quiet", textContent: note }));
  for (const plot of a.plots) parts.push(make("img", { alt: "Plot of the answer", src: `data:image/svg+xml;charset=utf-8,${encodeURIComponent(DARK.matches ? plot.dark : plot.light)}` }));
  if (a.nodes.length) parts.push(picture(a.nodes));
  for (const s of a.steps) parts.push(make("details", {}, make("summary", { textContent: s.title }), make("pre", { textContent: s.text })));
  if (a.uql) {
    parts.push(make("pre", { textContent: a.uql }), button("Edit this UQL", () => openText(a.uql)));
  }
  $("view-answer").replaceChildren(...parts);
}


// ----------------------------------------------------------------------------------------------------------- head, side
function drawSpent(run) {
  const calls = spent.calls + (run?.calls ?? 0), usd = spent.usd + (run?.usd ?? 0);
  $("spent").textContent = `${whole(calls)} calls, $${usd.toFixed(usd && usd < 1 ? 4 : 2)} spent`;
}
async function state(changed) {
  spent = await api(changed ? "settings" : "state", changed);
  $("mode").textContent = `${spent.database ?? "in memory"}, ${spent.write ? "may write" : "reads only"}`;
  if (document.activeElement !== $("model")) $("model").value = spent.model ?? "";
  $("model").placeholder = spent.models.join(", ") || "none";
  $("model").disabled = spent.model_fixed;
  if (document.activeElement !== $("budget")) $("budget").value = spent.budget ?? "";
  drawSpent(null);
  if (changed) check();
}
$("settings").addEventListener("change", async ({ target }) => {
  try { await state({ [target.id]: target.value.trim() || null }); }
  catch (error) { target.setCustomValidity(error.message); target.reportValidity(); }
});
$("settings").addEventListener("input", ({ target }) => target.setCustomValidity(""));
$("settings").addEventListener("submit", (event) => { event.preventDefault(); document.activeElement.blur(); });

async function schema() {
  tables = (await api("schema")).tables;
  editor.tables = tables;
  const insert = (name, detail, ...more) => make("li", {}, button(name, () => editor.insert(quoted(name)), { title: `insert ${name}` }), make("span", { className: "quiet", textContent: ` ${detail} ` }), ...more);
  const opened = new Set([...$("tables").querySelectorAll("details[open]")].map((d) => d.dataset.table));
  $("tables").replaceChildren(...tables.map((t) => {
    const look = `SELECT *\nFROM ${quoted(t.table)}\nLIMIT 100`;
    const preview = button("preview", () => { openText(look); begin(look, "uql"); }, { ariaLabel: `preview ${t.table}`, className: "link" });
    const columns = make("details", { open: opened.size ? opened.has(t.table) : tables.length < 8 }, make("summary", { textContent: counted(t.columns.length, "column") }), make("ul", {}, ...t.columns.map((c, i) => insert(c, t.types[i].toLowerCase()))));
    columns.dataset.table = t.table;
    return insert(t.table, t.rows === null ? "view" : counted(t.rows, "row"), preview, columns);
  }));
  drawExamples();
}
$("model").addEventListener("focus", async () => {  // models that the ledger knows
  const models = new Set((await api("history")).map((run) => run.model).filter(Boolean));
  $("models").replaceChildren(...["local", ...models].map((value) => make("option", { value })));
}, { once: true });
async function saved(change) {
  try {
    const found = await api("saved", change);
    $("saved").replaceChildren(...Object.entries(found).map(([name, text]) => make("li", {}, button(name, () => openText(text), { title: text }), button("×", () => saved({ name, text: "" }), { ariaLabel: `forget ${name}`, className: "close" }))));
    $("saved-box").open ||= Boolean(change);
  } catch (error) { problem({ message: error.message }); }
}
$("save").addEventListener("click", () => { if (editor.text.trim()) $("naming").showModal(); });
$("naming").addEventListener("close", () => { if ($("naming").returnValue === "save") saved({ name: $("name").value, text: editor.text }); });

async function dropped(file) {
  $("line").textContent = `reading ${file.name} …`;
  $("live").hidden = false;
  try {
    const { table } = await api(`files?name=${encodeURIComponent(file.name)}`, file);
    await schema();
    const look = `SELECT *\nFROM ${quoted(table)}\nLIMIT 100`;
    openText(look);
    begin(look, "uql");
  } catch (error) { problem({ message: error.message }); $("live").hidden = true; }
}
$("file").addEventListener("change", () => { if ($("file").files[0]) dropped($("file").files[0]); $("file").value = ""; });
document.addEventListener("dragover", (event) => event.preventDefault());
document.addEventListener("drop", (event) => {
  if (!event.dataTransfer.files.length) return;
  event.preventDefault();
  dropped(event.dataTransfer.files[0]);
});
$("run").addEventListener("click", () => begin(editor.text, "uql"));
const cancel = () => running() && api(`runs/${sheet.run.id}/cancel`, {});
$("cancel").addEventListener("click", cancel);
$("ask").addEventListener("submit", (event) => { event.preventDefault(); begin($("question").value, "ask"); });
document.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && !event.defaultPrevented) { event.preventDefault(); begin(editor.text, "uql"); }
  if (event.key === "Escape" && !event.defaultPrevented) cancel();
});
if (window.matchMedia("(max-width: 640px)").matches) $("tables-box").open = false;
open(sheet);
if (last.error) problem(last.error);
await Promise.all([state(), schema(), saved()]);
