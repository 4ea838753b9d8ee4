// The editor: CodeMirror with DuckDB's words, UQL's quoted texts in a colour of their own, and completion of tables and columns.
import {
  acceptCompletion, basicSetup, Compartment, completeFromList, EditorView, HighlightStyle, keymap, Prec, setDiagnostics, sql, SQLDialect, syntaxHighlighting, tags,
} from "/static/vendor/vendor.js";

const UQL = SQLDialect.define({
  keywords: `select from where group order by limit as and or not on join left right full inner semi anti cross union all having case when then else end
    with in is null like ilike between exists distinct explain analyze sample to into many try prompt cast create table view insert values
    copy set using over partition asc desc filter format interval offset reset refresh summarize describe show qualify recursive except intersect`,
  builtin: "count sum avg min max median list string_agg coalesce lower upper length round regexp_matches date_trunc",
  types: "varchar integer bigint double decimal boolean timestamp blob",
  operatorChars: "*+-%<>!=&|~^/", doubleDollarQuotedStrings: true,
});
const COLOURS = HighlightStyle.define([
  { tag: tags.special(tags.string), class: "t-text" }, { tag: tags.string, class: "t-string" }, { tag: [tags.keyword, tags.typeName], class: "t-word" },
  { tag: tags.number, class: "t-number" }, { tag: tags.comment, class: "t-comment" },
]);
/** A name as it stands in a statement. */
export const quoted = (name) => (/^[A-Za-z_]\w*$/.test(name) ? name : `"${name.replaceAll('"', '""')}"`);

export class Editor {
  constructor(parent, changed, run) {
    this.words = new Compartment();
    const listen = EditorView.updateListener.of((update) => { if (update.docChanged) changed(); });
    const keys = Prec.highest(keymap.of([{ key: "Mod-Enter", run: () => { run(); return true; } }, { key: "Tab", run: acceptCompletion }]));
    this.view = new EditorView({
      parent,
      extensions: [
        keys, basicSetup, listen, EditorView.lineWrapping, syntaxHighlighting(COLOURS), this.words.of(sql({ dialect: UQL })),
        EditorView.contentAttributes.of({ id: "text", "aria-label": "UQL statement", "aria-describedby": "price", autocapitalize: "off" }),
      ],
    });
  }
  get text() { return this.view.state.doc.toString(); }
  set text(insert) { this.view.dispatch({ changes: { from: 0, to: this.view.state.doc.length, insert } }); }
  /** Tables and columns to complete: [{table, columns}]. */
  set tables(tables) {
    const schema = Object.fromEntries(tables.map((t) => [t.table, t.columns]));
    const columns = [...new Set(tables.flatMap((t) => t.columns))].map((name) => ({ label: name, apply: quoted(name), type: "property" }));
    this.view.dispatch({ effects: this.words.reconfigure([sql({ dialect: UQL, schema, upperCaseKeywords: true }), UQL.language.data.of({ autocomplete: completeFromList(columns) })]) });
  }
  /** Underlines where an error is: offsets in characters, as Python counts them; null: nothing. */
  mark(error) {
    const at = (offset) => [...this.text].slice(0, offset).join("").length;
    const found = error && error.start >= 0 ? [{ from: at(error.start), to: Math.max(at(error.start), at(error.end)), severity: "error", message: error.message }] : [];
    this.view.dispatch(setDiagnostics(this.view.state, found));
  }
  insert(text) {
    this.view.dispatch(this.view.state.replaceSelection(text));
    this.view.focus();
  }
  focus() { this.view.focus(); }
}
