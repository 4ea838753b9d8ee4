"""A query in lines, the source first, whose grammar holds every table, column, join and value to the names in scope.

For models of this machine: what a small model writes under this grammar parses and binds. One reply is

    FROM players JOIN games ON players.name = games.name
    WHERE players.position = 'Center'
    GROUP BY players.team
    SELECT max(ask_number('the points of {players.name}'))
    ORDER BY max(…) DESC
    LIMIT 3
    PLOT bar

Source: constrained decoding (Scholak et al., PICARD, 2021; Geng et al., grammar-constrained decoding, 2023), with the tables before the
columns, so that a column is chosen among those of the tables read.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence

from uql.nl.schema.discover import STOP
from uql.nl.schema.join_paths import Column, Path, is_age, is_called, is_dated, is_key, is_plain
from uql.nl.schema.scope import Scope
from uql.nl.small.lines import conditions as where_of
from uql.nl.small.lines import of_texts
from uql.nl.small.lines.gbnf import Rules, either, literal, reachable, safe
from uql.nl.small.meaning import compounds
from uql.nl.small.meaning.comparisons import SIGNS, signs
from uql.nl.small.meaning.fitting import fitting
from uql.nl.small.meaning.naming import Place
from uql.nl.small.meaning.narrow import Narrow
from uql.nl.small.meaning.narrowing import SUPERLATIVES, numbers_of
from uql.nl.small.meaning.opinions import SUMMARY

MARKS = ("bar", "line", "point", "arc", "area")
YEARS = ("decade", "century")  # that a number of years has too
AGGREGATES = ("count", "sum", "avg", "min", "max", "median", "percent", SUMMARY)
_WORD = re.compile(r"[A-Za-z][A-Za-z'’-]*|\d+")


def _words(text: str) -> list[str]:
    return text.split()


# Words that a condition in words may need beside those of the question.
GLUE = _words(
    "a an the is are was were has have had be been of in on at to for with and or not no by from it its there that which who whose "
    "this text image picture shows show says number year name made became as than more least about how many what when where"
)


def grammar(scope: Scope, question: str, narrow: Narrow) -> str:
    """The grammar of llama.cpp for one query over the scope.

    Args:
        question: its words and numbers are those that conditions may hold.
        narrow: what it leaves open of the query.
    """
    rules = Rules()
    ways = [way for n, path in enumerate(fitting(scope, narrow)) if (way := _way(rules, n, path, narrow, question))]
    rules.add("root", "(" + " | ".join(ways) + ")" + (' "\\nPLOT " mark' if narrow.plot else ""))
    named = _marks(question) or list(MARKS)
    rules.add("mark", " | ".join(map(literal, named)))
    numbers = numbers_of(question)
    rules.add("number", " | ".join(map(literal, numbers)) if numbers else '"-"? [0-9]{1,9}')
    rules.add("limit", '"\\nLIMIT " (' + either(f'"{n}"' for n in dict.fromkeys([*narrow.first, 1])) + ")")
    rules.add("cmp", either(literal(f" {sign} ") for sign in signs(question, len(numbers))))
    rules.add("when", either(literal(f" {sign} ") for sign in SIGNS))
    rules.add("day", either(literal(f"'{day}'") for day in narrow.days) or literal("''"))
    said = [w.replace("'", "’") for w in dict.fromkeys(_WORD.findall(question))]
    command = set(question.lower().split()[:3]) if narrow.some else set()  # show me five
    said = [w for w in said if w.lower() not in narrow.opinions.superlative | command] + [*narrow.opinions.positive]
    words = [w for w in dict.fromkeys([*said, *_schema_words(scope), *GLUE]) if w.lower() not in SUPERLATIVES]
    rules.add("word", " | ".join(map(literal, words)))
    spans = said_spans(question)
    rules.add("free", either(literal(f"'{span}'") for span in spans) or literal("''"))
    rules.add("part", either(literal(f"'%{span}%'") for span in spans) or literal("'%%'"))
    return "\n".join(reachable(rules.lines)) + "\n"


# ------------------------------------------------------------------------------------------------------------ one path
def _way(rules: Rules, n: int, path: Path, narrow: Narrow, question: str) -> str:
    """The rules of queries over one path; the name of the first, "" where it has none that the question wants."""
    plain = [c for c in path.columns if is_plain(c)]
    col = rules.add(f"col{n}", either(literal(c.name) for c in plain))
    dated = [literal(c.name) for c in plain if c.dated]
    years = [literal(c.name) for c in plain if c.is_number and is_dated(c)]
    stamps = [literal(c.name) for c in plain if c.field.type.startswith("TIMESTAMP")]
    spans = [part for part in narrow.parts if part in YEARS]
    days = [part for part in narrow.parts if part != "hour"]
    hours = [part for part in narrow.parts if part == "hour"]
    parts = [
        f'({either(map(literal, names))}) "(" ({either(columns)}) ")"'
        for names, columns in ((days, dated), (hours, stamps), (spans, years))
        if names and columns
    ]
    key = rules.add(f"key{n}", either([col, *parts]))
    lead = _of_places(rules, plain, narrow.named.asked) or key
    group = _of_places(rules, plain, narrow.named.groups) or key
    of_part = stamps if narrow.named.part == "hour" else [*dated, *(years if narrow.named.part in YEARS else ())]
    if narrow.named.part and of_part and group == key and not narrow.periods.years:
        group = rules.shared(f'"{narrow.named.part}(" ({either(of_part)}) ")"')
    asked, value = _asking(rules, n, plain, narrow) if path.reads and narrow.read else ("", "")
    if (of_years := where_of.years_in(path, narrow)) and group == key:
        group = rules.shared(either(map(literal, of_years)))
    of_dates = dated if narrow.parts else []
    held = either(where_of.conditions(rules, path, of_dates, narrow, alone=False))
    told = either([asked, *([f"{value} cmp number"] if narrow.numbers else [])]) if asked else ""
    single = either(where_of.conditions(rules, path, of_dates, narrow))
    cond = rules.add(f"cond{n}", either(filter(None, [single, told])) or f'{literal(plain[0].name)} " IS NOT NULL"')
    must = where_of.required(path, narrow)
    where = rules.add(f"where{n}", where_of.where(held, told, narrow.reads, must) or f'"\\nWHERE " {cond}') + (
        "" if must else "?"
    )
    agg = rules.add(f"agg{n}", either(_figures(plain, asked, value, narrow, col, cond)))
    source = literal("FROM " + path.source)
    told_of = f"{source} {where_of.where(held, '', 0, must)}" + ("" if must or not held else "?")
    reading_of = where_of.told(held, *of_texts.conditions(narrow, asked, told), must)
    if path.reads and (alone := of_texts.only(path, plain, narrow, question, asked, group, cond)):
        return rules.add(f"way{n}", f"{told_of} {alone}")
    if asked and narrow.some and not narrow.best:
        rows = f'"\\nSELECT " {lead} (", " {key}){{0,3}} "\\nLIMIT {narrow.some}"'
        return rules.add(f"way{n}", f"{source} {reading_of} {rows}")
    if narrow.periods.kind and group != key:
        return rules.add(
            f"way{n}", f'{source} {where} "\\nGROUP BY " {group} "\\nSELECT {narrow.periods.kind}(" {agg} ")"'
        )
    if made := _compounds(plain, group, cond, where, narrow):
        return rules.add(f"way{n}", f"{source} {where} ({made})")
    if rivals := _rivals(plain, narrow):
        if asked and narrow.ask != "may":
            where = where_of.told(held, asked, told, narrow.reads, must)
        return rules.add(f"way{n}", f"{source} {where} {rivals}")
    if narrow.tallied and asked:
        sort = either(f'"{way}"' for way in _ways(narrow, "", number=True))
        tally = f'"\\nGROUP BY " {lead} "\\nSELECT " ({key} ", ")? "count(*)" "\\nORDER BY count(*)" ({sort}) limit'
        if not narrow.best and narrow.numbers:
            tally = f'"\\nGROUP BY " {lead} "\\nSELECT " ({key} ", ")? "count(*)" "\\nHAVING count(*)" cmp number'
        return rules.add(f"way{n}", f"{source} {reading_of} {tally}")
    if narrow.versus and (two := _versus(plain, narrow)):
        beside = f' (" AND " ({held})){{0,2}}' if held else ""
        share = asked and narrow.share != "no"  # of the rows of each that a model says yes to
        figure = f'"percent(" {asked} ")"' if share else two[2]
        conditions = (
            where_of.told(held, asked, told, narrow.reads, two[0])
            if asked and narrow.ask != "may" and not share
            else two[0] and f'"\\nWHERE " {two[0]}{beside}'
        )
        return rules.add(f"way{n}", f'{source} {conditions} "\\nGROUP BY " {two[1]} "\\nSELECT " ({figure})')
    bodies = _groups(plain, agg, key, group, narrow, lead)
    only_groups = narrow.group == "must" or (
        narrow.group == "count" and narrow.which and narrow.best and narrow.adding and bodies
    )
    if not only_groups:
        names_rows = any(c.is_text and (c.table, c.field.name) in narrow.named.asked for c in plain)
        figures = narrow.adding or narrow.share != "no" or narrow.several or narrow.counted
        no_figure = narrow.group == "no" and (
            (narrow.best and (narrow.which or names_rows)) or (names_rows and not figures)
        )
        whole = [] if no_figure else [f'"\\nSELECT " {agg} (", " {agg}){{0,2}}']
        one_figure = (
            narrow.summed
            and not narrow.reckoned
            and narrow.group == "no"
            and not (narrow.which or narrow.best or names_rows or no_figure)
        )
        figures_alone = narrow.counted or one_figure or (narrow.amounts and not narrow.which)
        bodies = [*([] if figures_alone else [_rows(plain, lead, key, narrow)]), *whole, *bodies]
    free = f"{source} {where} ({either(bodies)})"
    if narrow.ask == "may":
        reads = path.reads and narrow.read and not narrow.counted
        return rules.add(f"way{n}", _with_asks(free, path, asked, value, key, narrow, where) if reads else free)
    names = [*(narrow.aggregates() if narrow.best else ()), *(narrow.adding or narrow.told)]
    read = rules.add(f"read{n}", either(f'"{name}(" {value} ")"' for name in names or AGGREGATES[1:5]))
    sort = either(f'"{way}"' for way in _ways(narrow, "", number=True))
    item = f'{value} " AS answer"' if narrow.ask == "number" else f'({asked} | {value}) " AS answer"'
    first = f'"\\nORDER BY answer" ({sort}) limit'
    shown = f'{lead} ", " ({key} ", "){{0,2}}' if narrow.row or lead != key else f'({key} ", "){{0,3}}'
    rows = f'"\\nSELECT " {shown} {item} ' + (first if narrow.row else f"({first}?)?")
    grouped = _groups([], read, key, group, narrow) if narrow.group in ("must", "may") and names else []
    whole = [] if narrow.row or not names or (narrow.which and narrow.group == "no") else [f'"\\nSELECT " {read}']
    reading = grouped if narrow.group == "must" and grouped and not narrow.told else [rows, *whole, *grouped]
    if narrow.ask == "number":
        plainly = f'("\\nWHERE " ({held}) (" AND " ({held})){{0,2}})? ' if held else ""
        plainly = f'"\\nWHERE " {must} (" AND " ({held})){{0,2}} ' if must else plainly
        return rules.add(f"way{n}", f"{source} {plainly}({either(reading)})")
    dates = narrow.timed and any(is_dated(c) or is_age(c) for c in plain)
    plainly_best = narrow.best and (dates or narrow.measured)  # what is the greatest stands in a column
    read_too = f" | {where} ({either(reading)})" if not plainly_best and not narrow.counted else ""
    counted = _counted_reading(asked, key, group, where, narrow)
    summed = f" | {told_of} {of_texts.summary(narrow, question, group)}" if narrow.opinions.summed == "may" else ""
    return rules.add(
        f"way{n}",
        f"{source} ({reading_of} ({either(bodies)}){read_too}{counted}){summed}",
    )


def _versus(plain: Sequence[Column], narrow: Narrow) -> tuple[str, str, str] | None:
    """Two groups against each other, or those with a flag against the others: the condition, the key, the figure; None: no such key."""
    of = [c for c in plain if (c.table, c.field.name) in narrow.measured and c.is_number]
    names = narrow.adding or ("avg",)
    figures = [literal(f"{name}({c.name})") for c in of for name in names] or [_count(plain, narrow)]
    for c in plain:
        values = [v for v in dict.fromkeys(c.matches) if safe(v)]
        if len(values) > 1 and c.is_text:
            chosen = ", ".join(f"'{v}'" for v in values)
            return literal(f"{c.name} IN ({chosen})"), literal(c.name), either(figures)
    flag = next((c for c in plain if c.is_boolean and (c.table, c.field.name) in narrow.flags), None)
    return None if flag is None else ("", literal(flag.name), either(figures))


def _rivals(plain: Sequence[Column], narrow: Narrow) -> str:
    """Groups against one of them; "" where the question compares none, or this path has no such column."""
    rival = narrow.rival
    key = next((c.name for c in plain if rival is not None and rival.place == (c.table, c.field.name)), "")
    if rival is None or not key:
        return ""
    figure, _ = _first_figures(plain, narrow)
    than = literal(f" {rival.sign} that of {key} = '{rival.value}'")
    return f'"\\nGROUP BY " {literal(key)} "\\nSELECT " {figure} "\\nHAVING " {figure} {than}'


def _of_places(rules: Rules, plain: Sequence[Column], places: Collection[Place]) -> str:
    """The rule of the columns of some places; "" where there are none."""
    found = [literal(c.name) for c in plain if (c.table, c.field.name) in places]
    return rules.shared(either(found)) if found else ""


def _asking(rules: Rules, n: int, plain: Sequence[Column], narrow: Narrow) -> tuple[str, str]:
    """The rules of a condition and of a number that a model reads."""
    texts = [c for c in plain if c.is_text]
    holes = [literal("{" + c.name + "}") for c in [c for c in texts if is_called(c.name)] or texts]
    piece = rules.add(f"piece{n}", either(["word", *holes]))
    some = f'{piece} (" " {piece}){{1,12}}'
    if narrow.read:  # it is about what no column holds
        some = f'({piece} " "){{0,6}} ({either(map(literal, narrow.read))}) (" " {piece}){{0,8}}'
    text = rules.add(f"text{n}", f'"\'" {some} "\'"')
    number = text
    if narrow.noun:
        number = rules.add(f"number{n}", f'"\'the {narrow.noun} of " {some} "\'"')
    return f'"ask(" {text} ")"', f'"ask_number(" {number} ")"'


def _compounds(plain: Sequence[Column], group: str, cond: str, where: str, narrow: Narrow) -> str:
    """Figures of figures, where the question asks for nothing else; "" where it may."""
    compound = narrow.compound
    if compound.compare and (two := compounds.compared(plain, compound, cond)):
        keys = (
            f'("\\nGROUP BY " {group})' + ("" if narrow.group == "must" else "?")
            if narrow.group in ("must", "may")
            else ""
        )
        return f'{keys} "\\nSELECT " {two}'
    if compound.must and (over := compounds.over_groups(plain, compound)):
        return f'"\\nGROUP BY " {group} "\\nSELECT " {over}'
    return ""


def _counted_reading(asked: str, key: str, group: str, where: str, narrow: Narrow) -> str:
    """The rows of which a model says yes, in percent or counted beside each other; "" where neither is asked for."""
    name = "percent" if narrow.share != "no" else "count" if narrow.several else ""
    if not name:
        return ""
    keys = "" if narrow.group == "no" else f'("\\nGROUP BY " {group})' + ("" if narrow.group == "must" else "?")
    figure = f'"{name}(" {asked} ")"'
    return f' | {where} {keys} "\\nSELECT " ({key} ", ")? {figure} (", " {figure}){{0,2}}'


def _with_asks(free: str, path: Path, asked: str, value: str, key: str, narrow: Narrow, where: str) -> str:
    """Queries that may read, or not."""
    if narrow.group == "must":
        return free
    sort = either(f'"{way}"' for way in _ways(narrow, "", number=True))
    item = f'({asked} | {value}) " AS answer"'
    source = literal("FROM " + path.source)
    return f'{free} | {source} {where} "\\nSELECT " ({key} ", "){{0,3}} {item} ("\\nORDER BY answer" ({sort}) limit?)?'


def _rows(plain: Sequence[Column], lead: str, key: str, narrow: Narrow) -> str:
    """SELECT of columns, sorted in the directions that the question leaves open; where it asks for the first, no row without a sort."""
    sorts = _sorts(plain, narrow)
    first = f'"\\nORDER BY " ({sorts}) limit'
    sorted_ = first if narrow.best and narrow.group == "no" else f"({first}?)?"
    order = sorted_ if sorts else ""
    return f'"\\nSELECT " "DISTINCT "? {lead} (", " {key}){{0,3}} {order}'


def _sorts(plain: Sequence[Column], narrow: Narrow) -> str:
    """What rows may be sorted by, with the directions; "" where nothing is."""
    return either(
        f"{literal(c.name)} ({either(literal(way) for way in _ways(narrow, c.name, number=c.is_number, dated=is_dated(c)))})"
        for c in _compared(plain, narrow)
        if not c.is_boolean and not c.is_list
    )


def _first_figures(plain: Sequence[Column], narrow: Narrow) -> tuple[str, str]:
    """The figures by which the first groups are found, and the directions: how many, or the average or sum where it is asked for."""
    of = [c for c in plain if (c.table, c.field.name) in narrow.measured]
    numbers = _numbers(plain)
    ages = [c for c in numbers if is_age(c)] if narrow.timed else []
    sort = either(f'"{way}"' for way in _ways(narrow, ages[0].name if ages else "", number=True))
    if narrow.adding and (of or ages or numbers):
        figures = [literal(f"{name}({c.name})") for c in ages or of or numbers for name in narrow.adding]
    else:
        figures = [_count(plain, narrow), *(literal(f"{name}({c.name})") for c in of for name in ("avg", "sum"))]
    return f"({either(figures)})", sort


def _compared_figures(plain: Sequence[Column], narrow: Narrow) -> str:
    """The figures of a group that are compared with a number."""
    names = [*narrow.adding, *(narrow.aggregates() if narrow.best else ())]
    numbers = [literal(c.name + ")") for c in _numbers(plain)]
    return either([_count(plain, narrow), *(f'"{name}(" ({either(numbers)})' for name in names if numbers)])


def _numbers(plain: Sequence[Column]) -> list[Column]:
    """The columns that may be added up: those that are reckoned where the question asks for such."""
    return [c for c in plain if c.reckoned] or [c for c in plain if c.is_number and not is_key(c)]


def _count(plain: Sequence[Column], narrow: Narrow) -> str:
    """How many there are: the rows, or what each says of how many of a thing it is about."""
    added = [literal(f"sum({c.name})") for c in plain if (c.table, c.field.name) in narrow.amounts]
    return f"({either(added)})" if added else '"count(*)"'


def _groups(plain: Sequence[Column], agg: str, key: str, group: str, narrow: Narrow, lead: str = "") -> list[str]:
    """GROUP BY with figures; where the question names no groups, only to find the first of them, or those above a number.

    Without a figure: the first so many rows of each group.
    """
    sorts, counted = _sorts(plain, narrow), _compared_figures(plain, narrow)
    keys = f'"\\nGROUP BY " {group}' + (f' (", " {key})?' if narrow.keys > 1 else "")
    select = f'"\\nSELECT " ({key} ", "){{0,3}} {agg}' + (f' (", " {agg})?' if narrow.keys > 1 else "")
    sort = either(f'"{way}"' for way in _ways(narrow, "", number=True))
    having = f'("\\nHAVING " ({counted}) cmp number)?' if narrow.numbers else ""
    order = f'"\\nORDER BY " ({agg} ({sort}) | {key} (" DESC" | " ASC")) limit?'
    if narrow.group == "no":
        return []
    if narrow.group == "count":
        figure, ways = _first_figures(plain, narrow)
        keys = f'"\\nGROUP BY " {lead}' if lead != key else keys
        more = f'({key} ", ")? ' if narrow.keys > 1 or lead == key else ""
        first = f'{keys} "\\nSELECT " {more}{figure} "\\nORDER BY " {figure} ({ways}) limit'
        above = f'{keys} "\\nSELECT " ({key} ", ")? {figure} "\\nHAVING " {figure} cmp number'
        return [*([first] if narrow.best or narrow.first else []), *([above] if narrow.numbers else [])]
    grouped = [f"{keys} {select} {having} ({order})?"]
    if plain and narrow.share == "must":
        grouped.append(
            f'{keys} "\\nSELECT " ({compounds.shares(plain, narrow.compound)}) ("\\nORDER BY share" ({sort}) limit?)?'
        )
    if plain and narrow.compound.nested and (over := compounds.over_groups(plain, narrow.compound)):
        grouped.append(f'{keys} "\\nSELECT " {over}')
    if narrow.group == "must" and narrow.best and narrow.first and sorts:  # the two dearest of each kind
        grouped.append(f'{keys} "\\nSELECT " {key} (", " {key}){{0,3}} "\\nORDER BY " ({sorts}) limit')
    return grouped


def _figures(plain: Sequence[Column], asked: str, value: str, narrow: Narrow, col: str, cond: str) -> Iterator[str]:
    """count, sum, avg, min and max of what they make sense of; the rows of which a condition holds, counted or in percent."""
    if narrow.share != "no":
        yield f'"percent(" {asked if asked and narrow.ask == "must" else cond} ")"'
        if of := compounds.percents(plain, narrow.compound, cond):
            yield of
    if narrow.share == "must":
        return
    if narrow.several:
        yield f'"count(" {cond} ")"'
    count = _count(plain, narrow)
    added = [literal(c.name) for c in _numbers(plain)]
    if not added or not (narrow.summed or narrow.median):
        yield count if "sum(" in count else f'{count} | "count(DISTINCT " {col} ")"'
    if narrow.counted:
        return
    if narrow.median and added:
        yield f'"median(" ({either(added)}) ")"'
    if narrow.adding and (added or value):
        names_ = either(f'"{name}("' for name in narrow.adding)
        yield f'({names_}) ({either([*added, *([value] if value else [])])}) ")"'
    for c in _compared(plain, narrow) if narrow.best or narrow.ends else ():
        if narrow.which and (c.table, c.field.name) in narrow.amounts:
            continue
        if (c.is_number and not is_key(c)) or c.dated:
            names = narrow.aggregates(dated=is_dated(c), aged=is_age(c))
            yield f"({either(literal(name + '(') for name in names)}) {literal(c.name + ')')}"
    if value and narrow.best and not narrow.timed and narrow.ask != "may":
        yield f'({either(literal(name + "(") for name in narrow.aggregates())}) {value} ")"'


def _compared(plain: Sequence[Column], narrow: Narrow) -> list[Column]:
    """The columns by which rows may be sorted: of dates or ages where the oldest are asked for, of numbers where the greatest."""
    times = [c for c in plain if is_dated(c) or is_age(c)]
    if narrow.timed and times:
        return times
    named_ = [c for c in plain if (c.table, c.field.name) in narrow.measured]
    if (narrow.best or narrow.ordered) and named_ and not narrow.timed:
        return named_
    numbers = [c for c in plain if c.is_number and not is_key(c)]
    return numbers if narrow.best and not narrow.timed and numbers else list(plain)


def _ways(narrow: Narrow, name: str, *, number: bool = False, dated: bool = False) -> list[str]:
    """The directions in which a column may be sorted."""
    if number or dated:
        aged = "age" in re.split(r"[\W_]+", name.lower())
        names = narrow.aggregates(dated=dated, aged=aged)
        if len(names) == 1:
            return [" DESC" if names == ("max",) else " ASC"]
    return [way for way, may in ((" DESC", narrow.down), (" ASC", narrow.up)) if may] or [" DESC", " ASC"]


def said_spans(question: str, most: int = 6) -> list[str]:
    """What of a question may name a value: up to `most` words as they stand, with no word at an end that names nothing.

    >>> said_spans("Who sold the Red Kettle?")
    ['sold', 'sold the Red', 'sold the Red Kettle', 'Red', 'Red Kettle', 'Kettle']
    """
    empty = SUPERLATIVES | STOP | set(GLUE)
    found = list(_WORD.finditer(question))
    # "The" and "May" may begin a name, but for the first word of a sentence
    names = [w.group() not in empty and (w.group().lower() not in empty or n > 0) for n, w in enumerate(found)]
    spans = (
        question[found[i].start() : found[j].end()].removesuffix("'s").removesuffix("’s")
        for i in range(len(found))
        for j in range(i, min(i + most, len(found)))
        if names[i] and names[j]
    )
    return [span for span in dict.fromkeys(spans) if safe(span)]


def _marks(question: str) -> list[str]:
    """The kinds of chart that a question names."""
    low = question.lower()
    names = {
        "bar": ("bar", "histogram"),
        "line": ("line chart", "line graph", "trend"),
        "point": ("scatter",),
        "arc": ("pie",),
        "area": ("area chart",),
    }
    return [mark for mark, words in names.items() if any(word in low for word in words)]


def _schema_words(scope: Scope) -> list[str]:
    text = " ".join(
        f"{name} {' '.join(f.name for f in source.shown if f.is_unstructured)}"
        for name, source in scope.sources.items()
    )
    return sorted(set(_WORD.findall(text.replace("_", " "))))
