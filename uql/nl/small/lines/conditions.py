"""What WHERE may hold of a query in lines: values, numbers and days that the question names, and what a model reads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from uql.nl.schema.discover import words_of
from uql.nl.schema.join_paths import Column, Path, is_called, is_dated, is_key, is_plain
from uql.nl.small.lines.gbnf import Rules, either, literal, safe
from uql.nl.small.meaning import compounds
from uql.nl.small.meaning.likeness import DAYS
from uql.nl.small.meaning.narrow import Narrow
from uql.nl.small.meaning.reckoned import against_texts


def required(path: Path, narrow: Narrow) -> str:
    """The conditions that the question names; "" where there are none."""
    needed = []
    for each in narrow.required:
        alternatives = []
        for c in path.columns:
            is_row = narrow.than and is_called(c.name)  # that of title = 'Kettle'
            if (c.table, c.field.name) not in each.places or is_row or not safe(each.value) or not is_plain(c):
                continue
            if c.is_list:
                alternatives.append(literal(f"list_contains({c.name}, '{each.value}')"))
            elif c.parted:
                alternatives.append(literal(f"{c.name} LIKE '%{each.value}%'"))
            else:
                alternatives += [
                    literal(f"{c.name} {sign} '{each.value}'") for sign in ("=", "<>")[: 1 + narrow.denied]
                ]
        if alternatives:
            needed.append(f"({either(alternatives)})")
    for c in path.columns:
        if (c.table, c.field.name) in narrow.set_flags:
            turned = (c.table, c.field.name) in narrow.denied_flags and not narrow.denied
            needed.append(
                literal(f"NOT {c.name}") if turned else ('"NOT "? ' if narrow.denied else "") + literal(c.name)
            )
    if beside := [literal(f"{of} IN ({', '.join(narrow.periods.years)})") for of in years_in(path, narrow)]:
        needed.append(f"({either(beside)})")
    needed += [literal(each.text) for each in narrow.elsewhere if each.about in path.tables]
    if against := [literal(text) for text in against_texts(path, narrow.against)]:
        needed.append(f"({either(against)})")
    without = [literal(f"without {table}") for table, _, _ in path.others if table in narrow.lacking]
    if without:
        needed.append(f"({either(dict.fromkeys(without))})")
    return ' " AND " '.join(needed)


def years_in(path: Path, narrow: Narrow) -> list[str]:
    """What says the year of a row, where years are set beside each other."""
    if not narrow.periods.years:
        return []
    plain = [c for c in path.columns if is_plain(c)]
    return [f"year({c.name})" for c in plain if c.dated] or [c.name for c in plain if c.is_number and is_dated(c)]


def where(held: str, read: str, reads: int, must: str) -> str:
    """Conditions on columns, and at most so many that a model reads; "" where there are none."""
    plain = f'({held}) (" AND " ({held})){{0,3}}' if held else ""
    plain = f'{must} (" AND " ({held})){{0,3}}' if must and held else must or plain
    if not read:
        return f'"\\nWHERE " {plain}' if plain else ""
    more = f'(" AND " ({read})){{0,{reads - 1}}}' if reads > 1 else ""
    told = f"({read}) {more}"
    if must:
        return f'"\\nWHERE " {plain} (" AND " {told})?'
    return f'"\\nWHERE " ({plain} (" AND " {told})? | {told})' if plain else f'"\\nWHERE " {told}'


def told(held: str, asked: str, read: str, reads: int, must: str) -> str:
    """Conditions of which a model reads one at least."""
    before = f'(({held}) " AND "){{0,3}} ' if held else ""
    before = f'{must} " AND " {before}' if must else before
    more = f' (" AND " ({read})){{0,{reads - 1}}}' if reads > 1 else ""
    return f'"\\nWHERE " {before}{asked}{more}'


def conditions(rules: Rules, path: Path, dated: Sequence[str], narrow: Narrow, *, alone: bool = True) -> Iterator[str]:
    """What WHERE may hold of columns: those with values that are there, with numbers where the question has one.

    Args:
        alone: of two values of a column that the question names, one may stand alone.
    """
    counted = [part for part in narrow.parts if part not in ("weekday", "weekend", "week", "day", "hour")]
    if dated and counted and narrow.numbers:
        yield f'({either(map(literal, counted))}) "(" ({either(dated)}) ")" cmp number'
    if dated and "weekday" in narrow.parts:
        yield f'"weekday(" ({either(dated)}) ") = " ({either(literal(repr(day)) for day in DAYS)})'
    if dated and "weekend" in narrow.parts:
        yield f'"weekend(" ({either(dated)}) ") = " ({either(literal(repr(kind)) for kind in ("weekend", "weekday"))})'
    if narrow.never and not narrow.elsewhere:
        yield from (literal(f"without {table}") for table in dict.fromkeys(table for table, _, _ in path.others))
    if narrow.compound.own:
        yield from compounds.own_averages([c for c in path.columns if is_plain(c)], narrow.compound)
    elif narrow.average:
        numbers = [c.name for c in path.columns if is_plain(c) and c.is_number and not is_key(c)]
        yield from (literal(f"{name} {way} avg({name})") for name in numbers for way in "<>")
    if narrow.than and narrow.rival is None:
        yield from map(literal, _than(path))
    for c in path.columns:
        if not is_plain(c) or (narrow.rival is not None and narrow.rival.place == (c.table, c.field.name)):
            continue
        name = literal(c.name)
        yield from (literal(c.name + i.condition) for i in narrow.implied if i.place == (c.table, c.field.name))
        if c.is_boolean and (c.table, c.field.name) not in narrow.flags:
            continue
        if c.is_boolean:
            yield name if _is_said(c, narrow) and not narrow.denied else f'"NOT "? {name}'
        elif c.is_list and c.matches:
            there = rules.shared(either(literal(f"'{v}'") for v in c.matches if safe(v)) or "free")
            yield f'{literal("list_contains(" + c.name + ", ")} {there} ")"'
        elif c.is_time and _is_said(c, narrow) and (narrow.never or not narrow.numbers):
            yield f'{name} " IS {"" if narrow.never else "NOT "}NULL"'
        elif c.is_number and is_key(c):
            yield from _numbered(c, narrow)
        elif c.is_number and narrow.numbers:
            yield f"{name} cmp number"
        elif c.is_time and narrow.days:
            yield f"{name} when day"
        elif c.is_text:
            others = {v for other in path.columns if other is not c for v in other.matches}
            together = not alone and len(set(c.matches)) > 1 and others.isdisjoint(c.matches)
            yield from _texts(rules, c, name, narrow, together=together)


def _is_said(c: Column, narrow: Narrow) -> bool:
    """Does the question name this column, by more than the name of its table?"""
    is_more = not c.is_time or not words_of(c.field.name) - compounds.OF_TIME <= words_of(c.table)
    return is_more and (c.table, c.field.name) in narrow.compound.named


def _numbered(c: Column, narrow: Narrow) -> Iterator[str]:
    """A key by a number that stands behind a word of its name or table: race 7, order number 12."""
    mine = words_of(f"{c.table} {c.field.name}") | {"id", "number", "no"}
    said = [number for word, found in narrow.behind.items() if word in mine for number in found]
    if said:
        yield f'{literal(c.name)} " = " ({either(map(literal, dict.fromkeys(said)))})'


def _than(path: Path) -> Iterator[str]:
    """A number or date against that of the row of the same table that the question names."""
    for c in path.columns:
        if not is_plain(c) or is_key(c) or not (c.is_number or c.is_time):
            continue
        for other in path.columns:
            if other.table == c.table and other.is_text and is_called(other.name):
                for value in other.matches:
                    if safe(value):
                        yield from (f"{c.name} {way} that of {other.name} = '{value}'" for way in "<>")


def _texts(rules: Rules, c: Column, name: str, narrow: Narrow, *, together: bool = False) -> Iterator[str]:
    """Conditions on a column of words: its values where they are few, else what stands in the question and in a value."""
    values = [v for v in (c.values if narrow.values == "all" else c.matches) if safe(v)]
    if c.parted and values:
        yield f'{name} " LIKE " {rules.shared(either(literal(f"{chr(39)}%{v}%{chr(39)}") for v in values))}'
        return
    if len(c.matches) > 1 and len(values) > 1:
        some = rules.shared(either(literal(f"'{v}'") for v in c.matches if v in values) or literal("''"))
        sign = '" IN ("' if not narrow.never else '(" IN (" | " NOT IN (")'
        yield f'{name} {sign} {some} (", " {some}){{1,3}} ")"'
        if together:  # two that are compared, or grouped by
            return
    known = [literal(f"'{v}'") for v in c.matches if safe(v)]
    parts = [word for word in c.words or () if not c.values or not words_of(word) <= narrow.names]
    if parts and not known:
        word = rules.shared(either(map(literal, dict.fromkeys(parts))))
        yield f'{name} " LIKE \'%" {word} (" " {word}){{0,3}} "%\'"'
    if values and c.values:
        sign = '(" = " | " <> ")' if narrow.denied else '" = "'
        yield f"{name} {sign} {rules.shared(either(literal(f'{chr(39)}{v}{chr(39)}') for v in values))}"
        return
    if known:
        yield f'{name} " = " ({either(known)})'
    if c.words is None:
        yield f'{name} (" = " free | " LIKE " part)'
