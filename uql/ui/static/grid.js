// The rows of a result in Tabulator: the server sorts, filters and sends a page of them at a time; a cell shows itself whole below.
import {
  AjaxModule, EditModule, FilterModule, FormatModule, FrozenColumnsModule, InteractionModule, KeybindingsModule, PageModule, ResizeColumnsModule, ResizeTableModule, SelectRangeModule,
  SortModule, Tabulator,
} from "/static/vendor/vendor.js";
import { $, api, counted, make, problem, table, whole } from "/static/page.js";

Tabulator.registerModule([
  AjaxModule, EditModule, FilterModule, FormatModule, FrozenColumnsModule, InteractionModule, KeybindingsModule, PageModule, ResizeColumnsModule, ResizeTableModule, SelectRangeModule,
  SortModule,
]);
const PAGE = 500;
const NUMBER = /INT|DOUBLE|FLOAT|DECIMAL/;
let grid = null, shown = null;

/** Takes the rows of the last result away: nothing of it stays under a new statement. */
export function clearGrid(message = "") {
  grid?.destroy();
  grid = shown = null;
  $("grid").replaceChildren(...(message ? [make("p", { className: "quiet waiting", textContent: message })] : []));
  $("pages").replaceChildren();
  $("footer").textContent = $("size").textContent = "";
  $("tools").hidden = $("cell").hidden = true;
}
/** Shows the lines that EXPLAIN gives as they are. */
export function drawText(run) {
  clearGrid();
  $("grid").replaceChildren(make("pre", { textContent: run.result.text }));
  $("footer").textContent = run.result.footer.join("\n");
}
const cellOf = (run, row, column) => `runs/${run}/cell?row=${row}&column=${column}`;

/** Draws the rows of a run that has ended: a snapshot with its result. */
export function drawGrid(run) {
  clearGrid();
  shown = run;
  const { columns, types, media, rows, footer } = run.result;
  const draw = (cell, { at, image }) => {
    const value = cell.getValue();
    if (value === null) return make("span", { className: "null", textContent: "NULL" });
    if (image) {  // a name of a file that is not there stays a text
      const drawn = make("img", { src: `/api/${cellOf(run.id, cell.getData().n, at)}`, alt: value, loading: "lazy" });
      drawn.addEventListener("error", () => drawn.replaceWith(value));
      return drawn;
    }
    return document.createTextNode(value);
  };
  const definitions = columns.map((name, at) => ({
    title: name, field: `c${at + 1}`, headerFilter: $("filter").getAttribute("aria-pressed") === "true" && "input",
    headerFilterParams: { elementAttributes: { "aria-label": `filter ${name}` } }, headerFilterPlaceholder: NUMBER.test(types[at]) ? "> 3" : "contains",
    formatter: draw, formatterParams: { at, image: media[at] === "image" }, hozAlign: NUMBER.test(types[at]) ? "right" : "left", headerHozAlign: "left",
    titleFormatter: () => make("button", { type: "button", title: "sort" }, `${name} `, make("small", { textContent: types[at].toLowerCase() })),
    width: columns.length === 1 ? undefined : NUMBER.test(types[at]) ? 150 : Math.max(150, Math.min(480, Math.floor(1000 / columns.length))), minWidth: 70,
  }));
  grid = new Tabulator($("grid"), {
    columns: definitions, layout: columns.length === 1 ? "fitColumns" : "fitDataStretch", maxHeight: "min(60vh, 40rem)", placeholder: "No rows.", index: "n",
    pagination: rows > PAGE, paginationMode: "remote", paginationSize: PAGE, paginationElement: $("pages"), sortMode: "remote", filterMode: "remote", ajaxURL: "rows",
    ajaxRequestFunc: async (_, __, { page = 1, sort = [], filter = [] }) => {
      const order = sort.map((key) => (key.dir === "desc" ? "-" : "") + key.field.slice(1)).join(",");
      const filters = JSON.stringify(Object.fromEntries(filter.map((f) => [f.field.slice(1), f.value])));
      const found = await api(`runs/${run.id}/rows?offset=${(page - 1) * PAGE}&limit=${PAGE}&order=${order}&filters=${encodeURIComponent(filters)}`);
      $("size").textContent = `${found.total === rows ? "" : `${whole(found.total)} of `}${counted(rows, "row")}`;
      const data = found.rows.map((values, i) => ({ n: found.numbers[i], ...Object.fromEntries(values.map((value, c) => [`c${c + 1}`, value])) }));
      return rows > PAGE ? { last_page: Math.max(1, Math.ceil(found.total / PAGE)), last_row: found.total, data } : data;
    },
    selectableRange: 1, selectableRangeAutoFocus: false, editTriggerEvent: "dblclick",
  });
  grid.on("tableBuilt", () => {  // a grid may hold row groups alone, and what scrolls is between the two
    $("grid").querySelector(".tabulator-tableholder").setAttribute("role", "rowgroup");
    $("grid").querySelector(".tabulator-table").setAttribute("role", "presentation");
  });
  grid.on("cellClick", (_, cell) => drawCell(cell));
  grid.on("dataLoadError", (error) => problem({ message: error.message, start: -1 }));
  $("grid").setAttribute("aria-label", "Rows of the result; arrows move, Enter shows the whole cell");
  $("grid").setAttribute("aria-rowcount", rows + 1);
  $("footer").textContent = footer.join("\n");
  $("tools").hidden = false;
  for (const ending of ["csv", "parquet", "md"]) $(ending).href = `/api/runs/${run.id}/rows.${ending}`;
}
const chosen = () => grid?.getRanges()[0]?.getCells()[0] ?? [];
$("grid").addEventListener("keydown", (event) => {
  const typing = event.target.closest("input, button"), [cell] = [chosen()].flat();
  if (typing && !["Enter", "Escape", "Tab"].includes(event.key)) event.stopPropagation();  // Tabulator would move in the grid
  if (event.key !== "Enter" || typing || !cell) return;
  event.preventDefault();
  event.stopPropagation();  // Tabulator would edit the cell
  drawCell(cell).then(() => $("cell").focus());
}, true);
$("filter").addEventListener("click", () => {
  $("filter").setAttribute("aria-pressed", $("filter").getAttribute("aria-pressed") !== "true");
  if (shown) drawGrid(shown);
});
$("copy").addEventListener("click", async () => {
  const cells = grid.getRanges()[0]?.getStructuredCells() ?? [];
  const many = cells.length > 1 || cells[0]?.length > 1;
  const head = many ? cells[0].map((cell) => cell.getColumn().getDefinition().title) : shown.result.columns;
  const lines = many ? cells.map((row) => row.map((cell) => cell.getValue())) : grid.getData().map((row) => head.map((_, i) => row[`c${i + 1}`]));
  await navigator.clipboard.writeText([head, ...lines].map((line) => line.map((value) => (value ?? "").replace(/[\t\r\n]+/g, " ")).join("\t")).join("\n"));
  $("size").textContent = `${counted(lines.length, "row")} copied`;
});

/** The whole value of a cell, why the row says what it says, and a form that corrects the answer. */
async function drawCell(cell) {
  const run = shown, row = cell.getData().n, at = Number(cell.getField().slice(1)) - 1, name = run.result.columns[at];
  const response = await fetch(`/api/${cellOf(run.id, row, at)}`);
  const media = response.headers.get("content-type").split("/")[0];
  const value = media === "image" ? make("img", { src: response.url, alt: name }) : media === "audio" || media === "video" ? make(media, { src: response.url, controls: true }) : make("pre", { textContent: await response.text() });
  let why;
  try { why = await api(`runs/${run.id}/why?row=${row}`); }
  catch (error) { why = { text: error.message, clauses: [] }; }
  if (shown !== run) return;
  const close = make("button", { textContent: "Close" });
  close.addEventListener("click", () => { $("cell").hidden = true; $("grid").focus(); });
  const parts = [make("div", { className: "bar" }, make("h2", { textContent: `${name}, row ${whole(row + 1)}` }), close), value];
  if (why.clauses.length || !why.text.startsWith("no model")) parts.push(make("h3", { textContent: "Why" }), make("pre", { textContent: why.text }));
  if (why.clauses.length) parts.push(correction(run, row, why.clauses));
  $("cell").replaceChildren(...parts);
  $("cell").hidden = false;
  $("cell").scrollIntoView({ block: "nearest" });
}
function correction(run, row, clauses) {
  const clause = make("select", { ariaLabel: "the text that is answered" }, ...clauses.map((c) => make("option", { textContent: c, value: c })));
  const value = make("input", { ariaLabel: "the right answer", placeholder: "yes, no, a label, a number; empty: the row does not say" });
  const note = make("span", { role: "status" });
  const form = make("form", { className: "bar" }, "The right answer to ", clause, value, make("button", { textContent: "Correct" }), note);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    try {
      const made = await api(`runs/${run.id}/correct`, { row, value: value.value.trim() || null, clause: clause.value });
      note.textContent = `kept as ${made.value}: run the statement again to see it`;
    } catch (error) { note.textContent = error.message; }
  });
  return form;
}

/** What the columns of a result hold: missing and distinct values, least and greatest, a small histogram or the most frequent values. */
export function columnsTable(found) {
  return table(["column", "type", "missing", "distinct", "values"], found.map((c) => {
    if (!c.bins) return [c.name, c.type.toLowerCase(), whole(c.missing), whole(c.distinct), bars(c.top ?? [])];
    const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    svg.setAttribute("viewBox", `0 0 ${c.bins.length * 10} 40`);
    svg.setAttribute("class", "histogram");
    svg.setAttribute("role", "img");
    svg.setAttribute("aria-label", `histogram of ${c.name}: ${c.bins.join(", ")}`);
    c.bins.forEach((n, i) => {
      const bar = document.createElementNS(svg.namespaceURI, "rect"), height = (n / Math.max(1, ...c.bins)) * 40;
      for (const [key, value] of Object.entries({ x: i * 10 + 1, y: 40 - height, width: 8, height })) bar.setAttribute(key, value);
      svg.append(bar);
    });
    return [c.name, c.type.toLowerCase(), whole(c.missing), whole(c.distinct), make("div", {}, svg, make("div", { className: "ends quiet" }, make("span", { textContent: c.low }), make("span", { textContent: c.high })))];
  }), "No column.");
}
function bars(values) {
  const most = Math.max(1, ...values.map(([, n]) => n));
  return make("div", {}, ...values.map(([value, n]) => make("div", { className: "top" }, make("meter", { max: most, value: n, ariaLabel: `${value}: ${counted(n, "row")}` }), make("span", { textContent: `${value} · ${whole(n)}` }))));
}
