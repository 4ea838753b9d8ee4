"""Write docs/grammar.md from the productions of the parser; with --check say whether it is current (exit code 1 when not)."""

from __future__ import annotations

import sys

from generated import main
from ply import yacc

from uql.compiler.grammar import PRODUCTIONS, START
from uql.compiler.lexer import RESERVED, SYMBOLS

HEAD = """# The grammar

Made from the productions of the parser by `python docs/make_grammar.py`; a test fails when it is stale. What each construct means is in
[the language](language.md).

Words in capitals are keywords or kinds of token: NAME is a name without quotes, QUOTED a text in double quotes, STRING one in single
quotes, NUMBER a number, PARAMETER a `$name`. Only these words are reserved: {reserved}.
Every other keyword is a name wherever the grammar has no place for the keyword. `ε` stands for nothing. Clauses come in any order.

```text
{rules}
```
"""


def page() -> str:
    """The page: every rule once, its alternatives one under another; the start rule first, the others as they are first named."""
    written: dict[str, str] = {}
    for symbol, kind in SYMBOLS.items():
        written.setdefault(kind, f"'{symbol}'")
    rules: dict[str, dict[str, None]] = {START: {}}
    for function in PRODUCTIONS.values():
        for _, _, left, right in yacc.parse_grammar(function.__doc__, function.__module__, 1):
            symbols = [written.get(symbol, symbol) for symbol in right]
            if "%prec" in symbols:
                symbols = symbols[: symbols.index("%prec")]
            rules.setdefault(left, {})[" ".join(symbols) or "ε"] = None
    lines = []
    for left in _as_named(rules):
        first, *others = rules[left]
        lines.append("\n".join([f"{left}\n    : {first}", *(f"    | {other}" for other in others)]))
    return HEAD.format(reserved=" ".join(sorted(RESERVED)), rules="\n\n".join(lines))


def _as_named(rules: dict[str, dict[str, None]]) -> list[str]:
    """The rules that the start rule leads to, level by level."""
    found = [START]
    for left in found:
        symbols = (symbol for alternative in rules[left] for symbol in alternative.split())
        found += [symbol for symbol in dict.fromkeys(symbols) if symbol in rules and symbol not in found]
    return found


if __name__ == "__main__":
    sys.exit(main(__file__, page))
