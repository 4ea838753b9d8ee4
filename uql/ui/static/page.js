// What all parts of the page use. Text of the data is only ever set as text.
export const $ = (id) => document.getElementById(id);
export const whole = (n) => Math.round(n).toLocaleString("en");
export const counted = (n, word) => `${whole(n)} ${word}${n === 1 ? "" : "s"}`;
export const range = (r, show) => (r.low === r.high ? show(r.expected) : `${show(r.expected)} (${show(r.low)}–${show(r.high)})`);
export const worded = (error) => `${error.code ? `${error.code}: ` : ""}${error.message}${error.help ? `\nhelp: ${error.help}` : ""}`;

/** Asks the server; a body makes it a POST: an object as JSON, a file as it is. */
export async function api(path, body) {
  const sent = body instanceof Blob ? body : JSON.stringify(body);
  const response = await fetch(`/api/${path}`, body === undefined ? {} : { method: "POST", headers: { "X-UQL": "1" }, body: sent });
  const found = (response.headers.get("content-type") || "").includes("json") ? await response.json() : { error: { message: await response.text() } };
  if (!response.ok) throw new Error(worded(found.error));
  return found;
}
export function make(name, properties = {}, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}
export function button(text, act, properties = {}) {
  const made = make("button", { type: "button", textContent: text, ...properties });
  made.addEventListener("click", act);
  return made;
}
export function table(names, rows, empty) {
  if (!rows.length) return make("p", { className: "quiet", textContent: empty });
  const cell = (value) => make("td", {}, value instanceof Node ? value : make("pre", { textContent: value ?? "NULL" }));
  return make("table", {}, make("thead", {}, make("tr", {}, ...names.map((n) => make("th", { textContent: n, scope: "col" })))), make("tbody", {}, ...rows.map((r) => make("tr", {}, ...r.map(cell)))));
}
export function problem(error) {
  $("problem").hidden = !error;
  $("problem").textContent = error ? worded(error) : "";
}
/** Arrow keys walk a list of tabs, and choose each as they reach it. */
export function walk(list) {
  list.addEventListener("keydown", (event) => {
    const tabs = [...list.querySelectorAll("[role=tab]")], at = tabs.indexOf(document.activeElement);
    const move = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!move || at < 0) return;
    event.preventDefault();
    const next = tabs[(at + move + tabs.length) % tabs.length].id;
    $(next).click();
    $(next).focus();
  });
}
