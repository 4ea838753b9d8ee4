"""The grammar of llama.cpp (GBNF) for a query with typed slots over the columns of a scope.

Source: constrained decoding (Geng et al., grammar-constrained decoding, 2023). Every column is one that is there, a text or an image stands
in READ alone, and `answer` is used as its type allows.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from uql.base.schema import Field
from uql.nl.schema.join_paths import NUMBERS, is_called, named
from uql.nl.schema.scope import Scope, Source
from uql.nl.small.slots import AGGREGATES, ANSWER, NOTHING, PARTS

MOST_VALUES = 30  # of a column that are offered one by one
LONGEST_VALUE = 40  # characters of one
WORDS = 18  # of what is asked of a text
_ANSWERED = f' | "{ANSWER}"'
_DATED = re.compile(r"'?-?\d{4}-\d\d")
_YEAR = re.compile(r"\b(year|date|born|founded)|_(year|date)\b")
_OPS = ("=", "<>", ">", ">=", "<", "<=")


def grammar(scope: Scope) -> str:
    """The rules for one query, the first of which is `root`; "" where the scope has no text and no image."""
    pairs = [(source, f) for source in scope.sources.values() for f in source.shown]
    read = [_name(source, f) for source, f in pairs if f.is_unstructured]
    plain = [(source, f) for source, f in pairs if not f.is_unstructured]
    if not read or not plain:
        return ""
    called = [_name(s, f) for s, f in plain if f.type == "VARCHAR" and is_called(f.name)]
    numbers = [_name(s, f) for s, f in plain if f.type.startswith(NUMBERS) and not f.type.endswith("[]")]
    dated = [_name(s, f) for s, f in plain if _is_dated(s, f)]
    rules = [
        f"root ::= {_literal(NOTHING)} | first-yes rest-yes | first-number rest-number | first-text rest-text",
        f"read ::= {_either(read)}",
        f'words ::= word ((" " | ", ") word){{0,{WORDS}}}',
        # no line of the form is a word: of capital letters at most three
        "word ::= [A-Z]{1,3} [a-z0-9.'/-]{0,20} | [a-z0-9] [a-z0-9.'/-]{0,20}" + (" | hole" if called else ""),
        *(["hole ::= " + _either(f"{{{name}}}" for name in called)] if called else []),
        'also ::= ("ALSO " read " yes_no: " words "\\n")?',
        'string ::= "\'" [^\'\\n]{1,40} "\'"',
        'day ::= "\'" [0-9]{4} "-" [0-9]{2} "-" [0-9]{2} "\'"',
        'integer ::= "-"? [0-9]{1,9} ("." [0-9]{1,3})?',
        f"op ::= {_either(f' {op} ' for op in _OPS)}",
        f"column ::= {_either(_name(s, f) for s, f in plain)}",
        f"key ::= column{' | part' if dated else ''}",
        *([f'part ::= ({_either(PARTS)}) "(" ({_either(dated)}) ")"'] if dated else []),
        "plain ::= " + " | ".join(_condition(source, f) for source, f in plain),
        *(_figures(kind, numbers) for kind in ("yes", "number", "text")),
        'way ::= (" DESC" | " ASC")',
        'limit ::= ("\\nLIMIT " [1-9] [0-9]?)?',
    ]
    for kind, said, answer in (
        ("yes", "yes_no", f'("NOT ")? "{ANSWER}"'),
        ("number", "number", f'"{ANSWER}" op integer'),
        ("text", "text", f'"{ANSWER} = " string'),
    ):
        key = "key" + (_ANSWERED if kind == "text" else "")
        shown = "key" + (_ANSWERED if kind != "yes" else "")
        rules += [
            f'first-{kind} ::= "READ " read {_literal(f" {said}: ")} words "\\n" also',
            f"cond-{kind} ::= plain | {answer}",
            f"key-{kind} ::= {key}",
            f"item-{kind} ::= {shown} | figure-{kind}",
            f'rest-{kind} ::= ("WHERE " cond-{kind} (" AND " cond-{kind}){{0,3}} "\\n")? ("GROUP BY " key-{kind} "\\n")? '
            f'"SELECT " item-{kind} (", " item-{kind}){{0,2}} ("\\nORDER BY " item-{kind} way limit)?',
        ]
    return "\n".join(rules) + "\n"


def _figures(kind: str, numbers: Sequence[str]) -> str:
    of = [f'"{ANSWER}"'] * (kind == "number") + list(map(_literal, numbers))
    added = [f'({_either(AGGREGATES)}) "(" ({" | ".join(of)}) ")"'] if of else []
    share = [f'"percent({ANSWER})"'] if kind == "yes" else []
    return f"figure-{kind} ::= " + " | ".join(['"count(*)"', *added, *share])


def _condition(source: Source, f: Field) -> str:
    """What a plain column may be compared with: values that it holds where they are few, else any of its type."""
    name = _name(source, f)
    if f.type == "BOOLEAN":
        return f'("NOT ")? {_literal(name)}'
    if f.type.endswith("[]"):
        return _literal(f"list_contains({name}, ") + ' string ")"'
    if f.type.startswith(NUMBERS):
        return f"{_literal(name)} op integer"
    if f.type.startswith(("DATE", "TIMESTAMP")):
        return f"({_literal(name)} op day | {_literal(f'year({name})')} op integer)"
    matched = [value for column, value in source.matches if column == f.name]
    held = [v for v in (*matched, *source.values.get(f.name, ())) if _is_safe(v)]
    values = [_literal(f"'{value}'") for value in dict.fromkeys(held)][:MOST_VALUES]
    value = f"({' | '.join([*values, 'string'])})"
    return _literal(f"{name} = ") + f" {value} | " + _literal(f"{name} IN (") + f' {value} (", " {value}){{1,3}} ")"'


def _is_dated(source: Source, f: Field) -> bool:
    """A date, a text that begins as one, or the number of a year."""
    if f.type.startswith(("DATE", "TIMESTAMP")):
        return not f.type.endswith("[]")
    if f.type == "VARCHAR":
        samples = source.samples.get(f.name, ())
        return bool(samples) and all(_DATED.match(value) for value in samples)
    return f.type.startswith(NUMBERS) and _YEAR.search(f"{f.name} {f.description}".lower()) is not None


def _is_safe(value: str) -> bool:
    return value.isprintable() and "'" not in value and "…" not in value and len(value) <= LONGEST_VALUE


def _name(source: Source, f: Field) -> str:
    return named(source.name, f.name)


def _either(texts: Iterable[str]) -> str:
    return " | ".join(_literal(text) for text in texts)


def _literal(text: str) -> str:
    """A text as it stands.

    >>> _literal('a "b"')
    '"a \\\\"b\\\\""'
    """
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
