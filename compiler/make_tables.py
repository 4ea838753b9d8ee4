"""Make compiler/_tables.py from the grammar: `python -m uql.compiler.make_tables [--check]`.

Run at build time only: building LALR tables takes seconds, reading them milliseconds.
"""

from __future__ import annotations

import sys
from pathlib import Path

from ply import yacc

from uql.compiler.grammar import PRECEDENCE, PRODUCTIONS, START, signature
from uql.compiler.lexer import tokens

TABLES = Path(__file__).with_name("_tables.py")


def build() -> yacc.LRGeneratedTable:
    """The LALR tables. Raises ValueError for a grammar with conflicts or with parts that nothing uses."""
    grammar = yacc.Grammar(list(tokens))
    for level, (assoc, *terms) in enumerate(PRECEDENCE, start=1):
        for term in terms:
            grammar.set_precedence(term, assoc, level)
    for name, function in PRODUCTIONS.items():
        for _, line, left, right in yacc.parse_grammar(function.__doc__, function.__module__, 1):
            grammar.add_production(left, right, name, function.__module__, line)
    grammar.set_start(START)
    wrong = [f"undefined: {symbol}" for symbol, _ in grammar.undefined_symbols()]
    wrong += [f"unused terminal: {term}" for term in grammar.unused_terminals()]
    wrong += [f"unused rule: {rule.name}" for rule in grammar.unused_rules()]
    if wrong:
        raise ValueError("\n".join(wrong))
    tables = yacc.LRGeneratedTable(grammar, "LALR", yacc.NullLogger())
    wrong = [f"shift/reduce: state {state}, {token}, {how}" for state, token, how in tables.sr_conflicts]
    wrong += [f"reduce/reduce: state {state}, {rule} or {other}" for state, rule, other in tables.rr_conflicts]
    if wrong:
        raise ValueError("\n".join(wrong))
    return tables


def source() -> str:
    """The text of _tables.py."""
    tables = build()
    terms = sorted({term for row in tables.lr_action.values() for term in row})
    rules = sorted({rule for row in tables.lr_goto.values() for rule in row})
    lines = [
        '"""The tables of the parser, made by `python -m uql.compiler.make_tables`; do not edit."""',
        "",
        f"SIGNATURE = {signature()!r}",
        f"TERMINALS = {' '.join(terms)!r}.split()",
        f"RULES = {' '.join(rules)!r}.split()",
        "# A state a line: terminal, action, terminal, action, … As text, since that compiles faster than numbers.",
        'ACTION = """',
        *(_row(tables.lr_action.get(state, {}), terms) for state in range(len(tables.lr_action))),
        '"""',
        "# A state a line: rule, state, rule, state, …",
        'GOTO = """',
        *(_row(tables.lr_goto.get(state, {}), rules) for state in range(len(tables.lr_action))),
        '"""',
        "# A production a line: left side, length of the right side, function.",
        'PRODUCTIONS = """',
        *(f"{p.name} {p.len} {p.func}" for p in tables.lr_productions),
        '"""',
    ]
    return "\n".join(lines) + "\n"


def _row(row: dict[str, int], names: list[str]) -> str:
    return " ".join(f"{names.index(name)} {row[name]}" for name in sorted(row))


def main() -> int:
    """Write the tables, or with --check say whether they are those of the grammar (exit code 1 when stale)."""
    text = source()
    if "--check" in sys.argv[1:]:
        fresh = TABLES.read_text(encoding="utf-8") == text
        print("compiler/_tables.py is up to date" if fresh else "compiler/_tables.py is stale: run make_tables")
        return 0 if fresh else 1
    TABLES.write_text(text, encoding="utf-8")
    print(f"{TABLES.name}: {text.count(chr(10))} lines")
    return 0


if __name__ == "__main__":
    sys.exit(main())
