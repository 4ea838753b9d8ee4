// The editor: a textarea whose letters are transparent over a copy of the text in colours, and completion of names.
const WORDS = new Set(`select from where group order by limit as and or not on join left right full inner semi anti union all having case when then else end
  with in is null like ilike between exists distinct count sum avg min max explain analyze sample to into many try prompt cast create table insert
  copy set using over partition asc desc true false filter format interval offset reset`.split(/\s+/));
const TOKEN = /(--[^\n]*|\/\*[\s\S]*?(?:\*\/|$))|("(?:[^"]|"")*"?)|('(?:[^']|'')*'?)|(\b\d+(?:\.\d+)?(?:[eE][+-]?\d+)?\b)|([A-Za-z_]\w*)/g;
const KINDS = ["comment", "text", "string", "number", "word"];

/** Spans of a statement: [kind or "", text, offset]. */
export function tokens(text) {
  const found = [];
  let at = 0;
  for (const match of text.matchAll(TOKEN)) {
    if (match.index > at) found.push(["", text.slice(at, match.index), at]);
    let kind = KINDS[match.slice(1).findIndex((group) => group !== undefined)];
    if (kind === "word" && !WORDS.has(match[0].toLowerCase())) kind = "";
    found.push([kind, match[0], match.index]);
    at = match.index + match[0].length;
  }
  if (at < text.length) found.push(["", text.slice(at), at]);
  return found;
}

export class Editor {
  constructor(area, shown, list, changed) {
    Object.assign(this, { area, shown, list, changed, names: [], bad: null, chosen: 0 });
    area.addEventListener("input", () => { this.bad = null; this.draw(); this.close(); changed(); });
    area.addEventListener("scroll", () => { shown.scrollTop = area.scrollTop; });
    area.addEventListener("keydown", (event) => this.key(event));
    area.addEventListener("blur", () => setTimeout(() => { if (document.activeElement !== area) this.close(); }, 150));
    this.draw();
  }
  get text() { return this.area.value; }
  set text(value) { this.area.value = value; this.bad = null; this.draw(); this.changed(); }
  mark(start, end) { this.bad = start >= 0 ? [start, end] : null; this.draw(); }
  insert(text) {
    this.area.focus();
    this.area.setRangeText(text, this.area.selectionStart, this.area.selectionEnd, "end");
    this.area.dispatchEvent(new Event("input"));
  }
  draw() {
    const pieces = [];
    for (const [kind, text, at] of tokens(this.text)) {
      const cut = this.bad ? [at, Math.max(at, Math.min(this.bad[0], at + text.length)), Math.max(at, Math.min(this.bad[1], at + text.length)), at + text.length] : [at, at + text.length];
      for (let i = 0; i + 1 < cut.length; i++) {
        if (cut[i] >= cut[i + 1]) continue;
        const span = document.createElement("span");
        span.textContent = text.slice(cut[i] - at, cut[i + 1] - at);
        if (kind) span.className = `t-${kind}`;
        if (this.bad && i === 1) span.classList.add("t-bad");
        pieces.push(span);
      }
    }
    this.shown.replaceChildren(...pieces, document.createTextNode("\n"));
    this.area.style.height = "auto";
    this.area.style.height = `${Math.min(480, Math.max(150, this.area.scrollHeight))}px`;
  }
  // ---------------------------------------------------------------------------------------------------- completion
  key(event) {
    if (this.list.hidden) {
      if (event.key === " " && event.ctrlKey) { event.preventDefault(); this.open(); }
      return;
    }
    const move = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (move) { event.preventDefault(); this.choose(this.chosen + move); }
    else if (event.key === "Enter" || event.key === "Tab") { event.preventDefault(); this.take(this.list.children[this.chosen].textContent); }
    else if (event.key === "Escape") { event.preventDefault(); event.stopPropagation(); this.close(); }
  }
  get begun() { return /[\w.]*$/.exec(this.text.slice(0, this.area.selectionStart))[0]; }
  open() {
    const begun = this.begun.toLowerCase();
    const fitting = this.names.filter((name) => name.toLowerCase().startsWith(begun)).slice(0, 40);
    if (!fitting.length) return;
    this.list.replaceChildren(...fitting.map((name) => {
      const item = document.createElement("li");
      item.setAttribute("role", "option");
      item.textContent = name;
      item.addEventListener("mousedown", (event) => { event.preventDefault(); this.take(name); });
      return item;
    }));
    this.list.hidden = false;
    this.choose(0);
  }
  choose(at) {
    const items = [...this.list.children];
    this.chosen = (at + items.length) % items.length;
    items.forEach((item, i) => item.setAttribute("aria-selected", i === this.chosen));
    items[this.chosen].scrollIntoView({ block: "nearest" });
  }
  take(name) {
    const end = this.area.selectionStart;
    this.area.setRangeText(name, end - this.begun.length, end, "end");
    this.close();
    this.area.dispatchEvent(new Event("input"));
  }
  close() { this.list.hidden = true; }
}
