// What of Tabulator (grid) and CodeMirror (editor) the page uses: `make page-vendor` bundles it into ../static/vendor/vendor.js.
export {
  Tabulator, AjaxModule, EditModule, FilterModule, FormatModule, FrozenColumnsModule, InteractionModule, KeybindingsModule,
  PageModule, ResizeColumnsModule, ResizeTableModule, SelectRangeModule, SortModule,
} from "tabulator-tables";
export { basicSetup, EditorView } from "codemirror";
export { Compartment, Prec } from "@codemirror/state";
export { keymap } from "@codemirror/view";
export { acceptCompletion, completeFromList } from "@codemirror/autocomplete";
export { HighlightStyle, syntaxHighlighting } from "@codemirror/language";
export { setDiagnostics } from "@codemirror/lint";
export { SQLDialect, sql } from "@codemirror/lang-sql";
export { tags } from "@lezer/highlight";
