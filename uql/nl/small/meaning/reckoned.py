"""Numbers reckoned from two columns: a price per square metre, a profit, the time between two dates; and one column against another.

In lines:

    SELECT avg(price / area)                      price per square metre
    SELECT name, 100 * bonus / salary             bonus as a percentage of salary
    SELECT sum(revenue - cost)                    profit, where there is no column of it
    SELECT sum(quantity * unit_price)             revenue, where there is no column of it
    WHERE days(ordered_on, shipped_on) > 5        days, hours or minutes between two dates
    WHERE paid_on > due_on                        paid late

Each counts only where the columns are there, and none is called so already; the words that say it are taken out of the question, with the
first of the columns in their place.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from uql.base.schema import Field
from uql.nl.schema.discover import stem, words_of
from uql.nl.schema.join_paths import NUMBERS, Column, Path, is_key_name
from uql.nl.schema.name_words import spaced
from uql.nl.schema.scope import Scope
from uql.nl.small.meaning.figures import numbers_named
from uql.nl.small.meaning.implied import last_word, numbers_called
from uql.nl.small.meaning.likeness import COMMON, names_of
from uql.nl.small.meaning.naming import Place
from uql.nl.small.word_forms import AMOUNTS, FLOWS, root, unit_names

MOST = 4  # readings of one phrase: asking or sold price
SPANS = {"days": 86_400, "hours": 3_600, "minutes": 60}  # seconds
NAME = r'(?:"[^"]*"|\w+)(?:\.(?:"[^"]*"|\w+))*'
_OF_TWO = re.compile(rf"(100 \* )?({NAME}) ([-+*/]) ({NAME})")
_SPAN = re.compile(rf"({'|'.join(SPANS)})\(({NAME}), ({NAME})\)")
_WORD = r"(?!(?:by|per|for|in|of|and|from|with|as|to|is|are|what|how)\b)[\w']+"
_NOUN = rf"((?:{_WORD} ){{0,2}}{_WORD})"
_SPELT = tuple(
    (re.compile(pattern), sign)
    for pattern, sign in (
        (rf"\(?{_NOUN} ?/ ?{_NOUN}\)?|\b{_NOUN} divided by (?:the )?{_NOUN}", "/"),
        (rf"\bratio (?:of|between) (?:the )?{_NOUN} (?:to|and) (?:the )?{_NOUN}", "/"),
        (rf"\b{_NOUN} as (?:an? |the )?(?:percent(?:age)?|share|fraction|proportion|%) of (?:(?:the|its|their|his|her) )?{_NOUN}", "%"),
        (rf"\(?\b{_NOUN} (?:\+|plus) {_NOUN}\)?|\b{_NOUN} and {_NOUN} (?:together|combined|added up)", "+"),
        (rf"\b(?:difference|gap|spread|discount|markup) between (?:the )?{_NOUN} and (?:the )?{_NOUN}", "-"),
        (rf"\(?\b{_NOUN} (?:-|minus) {_NOUN}\)?", "-"),
        (rf"\(?\b{_NOUN} (?:\*|×|multiplied by) {_NOUN}\)?", "*"),
    )
)  # fmt: skip
_PER = re.compile(r" (?:per|for each|for every) ((?:square |sq )?\w+)")
_BEFORE = re.compile(rf"{_NOUN}\Z")
_PROFIT = re.compile(r"\b(most |least )?(profits?|profitable|profitability)\b")
_REVENUE = re.compile(r"\b(revenue|turnover|sales|spen[dt]|spends|spending|order value|sales value)\b")
_INCOME = frozenset(("revenue", "turnover", "sale", "income", "proceed"))
_COST = frozenset(("cost", "expense", "expenditure"))
_QUANTITY = frozenset(("quantity", "unit", "copy", "piece", "item"))
_DUE = frozenset(
    map(stem, ("scheduled", "schedule", "planned", "due", "expected", "promised", "required", "target", "deadline"))
)
_LATE = re.compile(
    r"\b(?:too )?(late|delayed|on time|early)\b(?=\W*$|[,;?]| (?:in|by|for|of|and|or|last|this|to|from|at|per|were|are|is|was)\b| (\w+))"
)
_BY_HOW_MUCH = re.compile(r"(?<=\d) (days?|hours?|minutes?) (?:too )?(?:late|delayed|early|overdue|behind schedule)\b")
_DELAY = re.compile(r"\b(?:delays?|lateness)\b(?: in (?:days|hours|minutes))?")
_LENGTH = re.compile(
    r"\bhow (?:long|many (?:days|hours|minutes))\b(?=.*\b(?:take|takes|took|taken|last|lasts|lasted|stay|stays|stayed|pass|passed)\b)"
    r"|\b(?:days|hours|minutes) of\b|\b(?:length|duration) of (?:an? |the |each )?\w+|\btenure\b"
    r"|\b(?:days|hours|minutes|time) (?:between|from|until|to)\b"
)
_TIME = re.compile(r"\b(\w+)[ -](?:times?|durations?|periods?)\b")
_UNIT = re.compile(r"\b(?:in )?(days?|hours?|minutes?)\b")
_TIMED = frozenset(
    map(stem, ("response", "processing", "lead", "waiting", "wait", "handling", "turnaround", "cycle", "stay"))
)
_MORE = re.compile(
    r"\b(above|over|more than|higher than|greater than|exceed(?:s|ed|ing)?|after|later than|below|under|less than|lower than"
    r"|smaller than|before|earlier than)\b(?! (?:\d|the (?:average|mean|median)|average|mean))"
)
_LESS = frozenset(("below", "under", "less than", "lower than", "smaller than", "before", "earlier than"))


@dataclass(frozen=True, slots=True)
class Reckoned:
    """A number made of two columns: + - * /, % (of the second in percent), or a unit of the time between them."""

    left: Place
    sign: str
    right: Place

    @property
    def place(self) -> Place:
        """Where it stands among the columns of its tables."""
        return self.left[0], self.text(self.left[1], self.right[1])

    def text(self, left: str, right: str) -> str:
        """It, with the columns so named."""
        if self.sign in SPANS:
            return f"{self.sign}({left}, {right})"
        return f"100 * {left} / {right}" if self.sign == "%" else f"{left} {self.sign} {right}"


@dataclass(frozen=True, slots=True)
class Against:
    """A column against another of the same row: paid_on > due_on."""

    left: Place
    sign: str
    right: Place


# ---------------------------------------------------------------------------------------------------------- the question
def reckoned_in(question: str, scope: Scope) -> tuple[str, tuple[Reckoned, ...]]:
    """A question without the words for a number that is reckoned, and what that may be; as it is, and none, where it asks for none."""
    for find in (_spelt, _of_each, _profit, _revenue, _spans):
        left, found = find(question, scope)
        if found:
            return " ".join(left.split()), found[:MOST]
    return question, ()


def against_in(question: str, scope: Scope) -> tuple[str, tuple[Against, ...]]:
    """A question without the word for late or on time, and the columns that it compares with each other."""
    low = question.lower()
    late = _LATE.search(low)
    pairs = _due(low, scope) if late is not None and stem("delay") not in numbers_called(scope) else []
    if late is not None and pairs and not _flagged(late[1], scope) and _is_thing(late[2], scope):
        sign = {"on time": "<=", "early": "<"}.get(late[1], ">")
        return question[: late.start()] + question[late.end() :], tuple(Against(b, sign, a) for a, b in pairs)
    found = _MORE.search(low)
    if found is None:
        return question, ()
    behind = " ".join(low[found.end() :].split()[:4])
    for table, source in scope.sources.items():
        there = [f.name for f in source.shown if _is_number(f) or _is_time(f)]
        whole = [name for name in there if len(words_of(name)) > 1 and words_of(name) <= words_of(behind)]
        if len(whole) != 1:
            continue
        said = words_of(low[: found.start()])
        others = [
            name
            for name in there
            if name != whole[0]
            and last_word(name) == last_word(whole[0])
            and words_of(name) - words_of(whole[0]) <= said
        ]
        if len(others) == 1:
            return question, (Against((table, others[0]), "<" if found[1] in _LESS else ">", (table, whole[0])),)
    return question, ()


def means(found: Sequence[Reckoned], *, averaged: bool) -> tuple[str, ...]:
    """What is made of ratios: their average; of those over what all rows of a group share in another table the sum. () of anything else.

    Args:
        averaged: the question asks for an average.

    >>> means([Reckoned(("t", "price"), "/", ("t", "area"))], averaged=False)
    ('avg',)
    >>> means([Reckoned(("use", "kwh"), "/", ("site", "area"))], averaged=False)
    ('sum',)
    """
    if any(each.sign not in ("/", "%") for each in found):
        return ()
    shared = any(each.sign == "/" and each.left[0] != each.right[0] for each in found)
    return ("sum",) if shared and not averaged else ("avg",)


Found = tuple[str, tuple[Reckoned, ...]]


def _spelt(question: str, scope: Scope) -> Found:
    """`bonus as percent of salary`, `passengers / seats`: two columns and what is made of them."""
    for pattern, sign in _SPELT:
        for found in pattern.finditer(question.lower()):
            a, b = (group for group in found.groups() if group)
            pairs = _pairs(_columns(a, scope), _columns(b, scope), scope)
            if pairs:
                before = question[: found.start()]
                if found[0].startswith("("):  # load factor (passengers / seats)
                    before = _without_name(before, scope)
                kept = f"{before} {a} {question[found.end() :]}"
                return kept, tuple(Reckoned(x, sign, y) for x, y in pairs)
    return question, ()


def _without_name(text: str, scope: Scope) -> str:
    """A text without the last words, where the database has none of them: what is explained in brackets behind."""
    known = words_of(names_of(scope)) | COMMON
    words = text.split()
    while words and words_of(words[-1]) and not words_of(words[-1]) & known:
        words.pop()
    return " ".join(words)


def _of_each(question: str, scope: Scope) -> Found:
    """`price per square metre`: a number over another, where that is no group."""
    low = question.lower()
    for found in _PER.finditer(low):
        over = "square" if found[1].startswith(("square ", "sq ")) else found[1]
        before = _BEFORE.search(low[: found.start()])
        if before is None or any(words_of(name) == {stem(over)} for name in scope.sources):
            continue
        below = _counted_in(over, scope)
        above = [place for place in _columns(before[1], scope) if place not in below]
        pairs = _pairs(above, below, scope)
        if pairs and not any(stem(over) in words_of(column) for _, column in above):  # price_per_kg
            return question[: found.start()] + question[found.end() :], tuple(Reckoned(x, "/", y) for x, y in pairs)
    return question, ()


def _profit(question: str, scope: Scope) -> Found:
    """What comes in less what it costs, where no column is called profit."""
    found = _PROFIT.search(question.lower())
    if found is None or numbers_called(scope) & {"profit", "margin"}:
        return question, ()
    pairs = [
        ((table, a), (table, b))
        for table, source in scope.sources.items()
        for a in _named_so(_INCOME, source.shown)
        for b in _named_so(_COST, source.shown)
    ]
    if len(pairs) != 1:
        return question, ()
    said = spaced(pairs[0][0][1]).lower()
    said = said if found[2] != "profitable" else f"{'worst' if found[1] == 'least ' else 'best'} by {said}"
    before = "" if found[2] == "profitable" else found[1] or ""
    return question[: found.start()] + before + said + question[found.end() :], (
        Reckoned(pairs[0][0], "-", pairs[0][1]),
    )


def _revenue(question: str, scope: Scope) -> Found:
    """How many times what one costs, where no column is called revenue or amount."""
    numbers = [(table, f.name) for table, source in scope.sources.items() for f in source.shown if _is_number(f)]
    called = {last_word(column) for _, column in numbers}
    said = _REVENUE.search(question.lower())
    tables = words_of(" ".join(scope.sources))
    if (
        said is None
        or words_of(said[1]) & tables
        or called & ((FLOWS | AMOUNTS | _COST) - _QUANTITY | {"value", "subtotal", "spending"})
    ):
        return question, ()
    counts = [place for place in numbers if last_word(place[1]) in _QUANTITY]
    prices = [place for place in numbers if last_word(place[1]) in ("price", "rate", "fare")]
    beside = [(a, b) for a in counts for b in prices if a[0] == b[0]]
    return question, tuple(Reckoned(a, "*", b) for a, b in beside or _pairs(counts, prices, scope))


def _spans(question: str, scope: Scope) -> Found:
    """The time between two dates: a delay, a length of stay, how many days something took."""
    low = question.lower()
    said, called = _UNIT.search(low), numbers_called(scope)
    if called & {"delay", "duration"} or (said is not None and stem(said[1]) in called):
        return question, ()
    late = _BY_HOW_MUCH.search(low) or _DELAY.search(low)
    pairs = _due(low, scope) if late is not None else []
    cut = late if pairs else None
    if cut is None:
        cut = _LENGTH.search(low) or next((t for t in _TIME.finditer(low) if _is_timed(t[1], scope)), None)
        pairs = _lengths(low, scope) if cut is not None else []
    if cut is None or not pairs:
        return question, ()
    types = {(table, f.name): f.type for table, source in scope.sources.items() for f in source.shown}
    usual = "minutes" if late is not None else "days" if "tenure" in low else "hours"
    unit = f"{said[1].removesuffix('s')}s" if said is not None else usual
    kept = question[: cut.start()] + ("What is " if cut.start() == 0 else " ") + question[cut.end() :]
    kept = re.sub(r"\bin (?:days|hours|minutes)\b", "", kept)
    return kept, tuple(Reckoned(a, "days" if types[a] == types[b] == "DATE" else unit, b) for a, b in pairs)


# ----------------------------------------------------------------------------------------------------------- the columns
def _is_number(f: Field) -> bool:
    return f.type.startswith(NUMBERS) and not f.type.endswith("[]") and not is_key_name(f.name)


def _is_time(f: Field) -> bool:
    return f.type.startswith(("DATE", "TIMESTAMP")) and not words_of(f.name) & {"birth", "born"}


def _named_so(kinds: frozenset[str], fields: Iterable[Field]) -> list[str]:
    return [f.name for f in fields if _is_number(f) and last_word(f.name) in kinds]


def _columns(phrase: str, scope: Scope) -> list[Place]:
    """The columns of numbers that a phrase names, those with most of its words."""
    said = {w for w in re.findall(r"\w+", phrase) if w not in COMMON}
    stems, roots = {stem(w) for w in said}, {root(w) for w in said}
    scores: dict[Place, int] = {}
    for table, source in scope.sources.items():
        for f in source.shown:
            if _is_number(f):
                words = [w for w in re.split(r"[\W_]+", spaced(f.name).lower()) if w]
                scores[table, f.name] = sum(stem(w) in stems or root(w) in roots for w in words)
    most = max(scores.values(), default=0)
    if not most:
        return sorted(numbers_named(phrase, scope))
    return [place for place, score in scores.items() if score == most]


def _counted_in(word: str, scope: Scope) -> list[Place]:
    """The columns of numbers that a number may be divided by: called by a unit (m2), a plural (servings), or with a fraction (kwh)."""
    units = unit_names(word)
    found = []
    for table, source in scope.sources.items():
        for f in source.shown:
            words = [w for w in re.split(r"[\W_]+", spaced(f.name).lower()) if w]
            if not _is_number(f) or not words:
                continue
            is_plural = words[-1] == word + "s" or (
                words[-1].endswith("s") and stem(words[-1]) == stem(word) != words[-1]
            )
            is_part = last_word(f.name) == stem(word) and f.type.startswith(("DOUBLE", "FLOAT", "DECIMAL", "REAL"))
            if units & {*words, *map(stem, words)} or (is_plural and not word.endswith("s")) or is_part:
                found.append((table, f.name))
    return found


def _pairs(above: Sequence[Place], below: Sequence[Place], scope: Scope) -> list[tuple[Place, Place]]:
    """Each with each, of one table where there are such, else of two that are linked."""
    found = [(a, b) for a in above for b in below if a != b]
    beside = [(a, b) for a, b in found if a[0] == b[0]]
    linked = {frozenset((x.left.table, x.right.table)) for x in scope.links}
    far = {name: {other for pair in linked if name in pair for other in pair} for name in scope.sources}
    return beside or [(a, b) for a, b in found if b[0] in far[a[0]] or far[a[0]] & far[b[0]]]


def _due(low: str, scope: Scope) -> list[tuple[Place, Place]]:
    """When something was due and when it was: the pairs that the question names, or that have most in common."""
    found: list[tuple[int, Place, Place]] = []
    said = {w[:5] for w in re.findall(r"[a-z]{3,}", low)}
    for table, source in scope.sources.items():
        times = [f.name for f in source.shown if _is_time(f)]
        due = [name for name in times if words_of(name) & _DUE]
        for a in due:
            for n, b in enumerate(times):
                if b in due:
                    continue
                mine = {w[:5] for w in re.split(r"[\W_]+", spaced(b).lower()) if len(w) > 2}
                common = len((words_of(a) & words_of(b)) - COMMON)
                found.append((4 * len(mine & said) + 2 * common + (n > times.index(a)), (table, a), (table, b)))
    most = max((score for score, _, _ in found), default=0)
    return [(a, b) for score, a, b in found if score == most]


def _is_thing(word: str | None, scope: Scope) -> bool:
    """Is what is late a row of a table: late orders, and no late fee?"""
    return not word or any(stem(word) in words_of(name) for name in scope.sources)


def _flagged(word: str, scope: Scope) -> bool:
    """Does a column say itself whether it was late?"""
    return any(
        f.type == "BOOLEAN" and words_of(f.name) & {stem(word), "late", "delay", "delayed", "overdue"}
        for source in scope.sources.values()
        for f in source.shown
    )


def _is_timed(word: str, scope: Scope) -> bool:
    """Is `resolution time` the time until it was resolved?"""
    if stem(word) in _TIMED:
        return True
    return len(word) > 4 and any(
        w[:5] == word[:5]
        for source in scope.sources.values()
        for f in source.shown
        if _is_time(f)
        for w in re.split(r"[\W_]+", spaced(f.name).lower())
    )


def _lengths(low: str, scope: Scope) -> list[tuple[Place, Place]]:
    """From the first date of a table to the one that the question names, or to the last."""
    said = {form for w in re.findall(r"[a-z]{3,}", low) if w not in COMMON for form in (w[:5], root(w))}
    found: list[tuple[int, int, Place, Place]] = []
    for table, source in scope.sources.items():
        times = [f.name for f in source.shown if _is_time(f)]
        named = len({form for w in re.findall(r"[a-z]{3,}", spaced(table).lower()) for form in (w[:5],)} & said)
        named += bool(source.matches)  # days of sick leave
        for n, b in enumerate(times[1:], 1):
            words = [w for w in re.split(r"[\W_]+", spaced(b).lower()) if len(w) > 2]
            meant = sum(bool({w[:5], root(w)} & said) for w in words)
            found.append((2 * meant + named, n, (table, times[0]), (table, b)))
    most = max((score for score, *_ in found), default=0)
    best = [(n, a, b) for score, n, a, b in found if score == most]
    if most == 0 and len({a[0] for _, a, _ in best}) > 1:
        return []  # nothing says of what
    return [(a, b) for _, a, b in best]


# ----------------------------------------------------------------------------------------------------------- the grammar
def with_reckoned(path: Path, found: Sequence[Reckoned]) -> Path:
    """A path with what is reckoned from its columns among them."""
    by_place = {(c.table, c.field.name): c for c in path.columns}
    more = [
        Column(
            each.text(by_place[each.left].name, by_place[each.right].name),
            each.place[0],
            Field(each.place[1], "DOUBLE"),
            reckoned=True,
        )
        for each in found
        if each.left in by_place and each.right in by_place
    ]
    return replace(path, columns=(*path.columns, *more)) if more else path


def against_texts(path: Path, found: Sequence[Against]) -> Iterator[str]:
    """The conditions that set a column of a path against another."""
    by_place = {(c.table, c.field.name): c.name for c in path.columns}
    for each in found:
        if each.left in by_place and each.right in by_place:
            yield f"{by_place[each.left]} {each.sign} {by_place[each.right]}"


# ----------------------------------------------------------------------------------------------------------- the reading
def sql_of(text: str) -> str | None:
    """What is reckoned as SQL; None where a text is nothing of the kind.

    >>> sql_of("price / area"), sql_of("100 * bonus / pay"), sql_of("a - b"), sql_of("count(*)")
    ('CAST(price AS DOUBLE) / nullif(area, 0)', '100.0 * bonus / nullif(pay, 0)', 'a - b', None)
    >>> sql_of("days(ordered, shipped)")
    "date_diff('second', CAST(ordered AS TIMESTAMP), CAST(shipped AS TIMESTAMP)) / 86400.0"
    """
    if (span := _SPAN.fullmatch(text)) is not None:
        unit, a, b = span.groups()
        return f"date_diff('second', CAST({a} AS TIMESTAMP), CAST({b} AS TIMESTAMP)) / {SPANS[unit]}.0"
    two = _OF_TWO.fullmatch(text)
    if two is None:
        return None
    percent, a, sign, b = two.groups()
    if percent:
        return f"100.0 * {a} / nullif({b}, 0)"
    return f"CAST({a} AS DOUBLE) / nullif({b}, 0)" if sign == "/" else f"{a} {sign} {b}"
