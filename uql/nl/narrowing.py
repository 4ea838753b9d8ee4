"""What the words of a question leave open of its query: groups or none, the greatest or the least, what a model must read.

A small model that may write anything in scope takes the wrong of two directions, or a column that sounds alike for what only a text says.
These are rules of English words, not of a database: `oldest` is the earliest date, `per` is a group, and a word that is near to no
name, value or comment of the database is something to be read where there are texts or images.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from uql.nl.compounds import Compound, compounds_in
from uql.nl.dates import days_of
from uql.nl.discover import Scope, stem, words_of
from uql.nl.grounding import NEAR, Near, absent, tables_near, unheard, unsaid_words, vague
from uql.nl.implied import Implied, adds, amounts, implied, last_word, plainly
from uql.nl.likeness import COMMON, MONTHS
from uql.nl.naming import PARTS, Named, Place, named_in
from uql.nl.required import Required, flags, required_values
from uql.nl.words import ADJECTIVES, meant_columns, measures, root

_RECENT = re.compile(r"\b(most|least) recent(ly)?\b")
_UP = re.compile(
    r"\b(highest|largest|biggest|tallest|longest|greatest|most|maximum|max|top|best|heaviest|strongest|richest|dearest)\b"
)
_DOWN = re.compile(r"\b(lowest|smallest|shortest|least|fewest|minimum|min|worst|lightest|weakest|poorest|cheapest)\b")
_EST = re.compile(
    r"\b(?!for|inter|near|har|mod|hon|prot|dig|inv|sugg|requ|cont|arr|ear)[a-z]{3,}(?<!b|g)est\b"
)  # dearest, coldest
_EARLY = re.compile(r"\b(oldest|earliest|eldest)\b")
_LATE = re.compile(r"\b(youngest|newest|latest|recent)\b")
_MOST_OF = re.compile(
    r"\b(?:highest|largest|biggest|greatest|most|maximum|max|lowest|smallest|least|fewest|minimum|min|best|worst) ((?:\w+ ?){1,3})"
)
_ADJECTIVE = re.compile(
    r"\b(?:most|least|more|less) (\w+)|\b(\w{3,}est)\b(?! (?:number|amount|count|total|sum|average|mean|share|percent\w*|proportion)\b)"
    r"|\b(\w{3,}er)\b(?= than\b)|\b(\w+) (?:more|less) than\b"
)
_DESC = re.compile(r"\b(desc|descending|(high|large|big)(est)? to (low|small)(est)?|z to a)\b")
_ASC = re.compile(r"\b(asc|ascending|(low|small)(est)? to (high|large|big)(est)?|a to z|alphabetical(ly)?)\b")
_GROUP = re.compile(r"\b(per|each|every)\b")
_GROUPS = re.compile(r"\b(different|distribution|group(ed)?|respectively|by|all|distinct|categor\w+|kinds?|types?)\b")
_HAVING = re.compile(
    r"\b(?:more|less|fewer|at least|at most|over|under|exactly|only)\b.*\b(?:\d|two|three|four|five|six|seven|eight|nine|ten)"
)
_MEASURED = re.compile(
    r"\b(highest|lowest|most|least|largest|smallest|fewest|maximum|minimum|average|mean|total)\s+(number|percentage|percent|amount|count|share)\b"
)
_COUNTED = re.compile(r"\b(most|fewest|least|number|many|more|less|fewer)\b")
_ADDED = re.compile(r"\b(total|sum|average|mean|altogether)\b")
_ROW = re.compile(r"\b(who|which|whose)\b|\bof the \w+ (that|with|who|which|whose)\b")
_PART_OF = {
    "quarter": re.compile(r"\b((per|each|every|by|which|what) quarters?|quarterly|quarters? of (the year|\d{4}))\b"),
    "weekday": re.compile(r"\b(weekdays?|days? of the week|(mon|tues|wednes|thurs|fri|satur|sun)days?)\b"),
    "century": re.compile(r"\bcentur"),
}
_COUNTED_WORDS = ("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
_COUNTING = {word: n for n, word in enumerate(_COUNTED_WORDS, 2)}
_COUNTED_OF = re.compile(
    r"\b(?:than|least|most|over|under|above|below|exactly|only|with|has|have|had|between|and|are|is|was|equals?) "
    rf"({'|'.join(_COUNTED_WORDS)})\b"
)
_NUMBERED = re.compile(r"\b([a-z]+)(?: id| number| no\.?| #)? #?(\d+)\b")
_DIGITS = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?")
_AVERAGE = re.compile(r"\b(above|below|over|under|than|exceed\w*) (the )?(overall )?(average|mean|median)\b")
_WHETHER = re.compile(r"\W*(?:is|are|do|does|did|was|were|has|have|had)\b")
_MEAN = re.compile(r"\b(?:average|mean)\b")
_TOTAL = re.compile(r"\b(?:total|sum|altogether|in all)\b|\bthe (?:most|least)\b")
_MEASURING = re.compile(rf"\b(?:most|least|more|less) (?:{'|'.join(sorted(ADJECTIVES))})\b")
_LONGEST = re.compile(r"\bthe longest\W*$|\blongest[- ]\w+ing\b")
_OTHERS = re.compile(r"\bthan (?:the )?(?:others?|rest)\b")
_THAN = re.compile(r"\b(than|before|after|since|until)\b")
_NEVER = re.compile(r"\b(never|without|no|not|none|neither|nor|lack(s|ing)?)\b|n't\b")
_DENIED = re.compile(
    r"\b(out of|except|exclud\w+|outside|other than|non|un[a-z]{4,}|in(?:active|valid|complete|correct|dependent))\b"
)
_ALSO = re.compile(r"\b(and|but|also|both|while|plus|as well as)\b")
_ASIDE = re.compile(r"\([^)]*\)|\bboth\b(?=.*\band\b)|\bbetween\b.*?\band\b")
_SHARE = re.compile(r"\b(percentage|percent|share|proportion|fraction)\b|%")
_SHARE_ASKED = re.compile(
    r"\b(what|which|how (large|big|high)( is)?( a| the)?)( is)?( the)? (percentage|percent|share|proportion|fraction)\b"
)
_TALLIED = re.compile(
    r"\b(?:most|fewest|least)(?: \w+){0,2}? (?:complaints?|praise|criticisms?|thanks|requests?|mentions?|suggestions?|problems?|issues?"
    r"|questions?|remarks?|comments?|defects?|faults?|errors?|accidents?|injur(?:y|ies)|incidents?|compliments?|reports?)\b"
    r"|\bmost (?:often|frequently|commonly)\b|\b(?:complain|wr[io]te|talk|speak|ask|report)\w*(?: the)? most\b"
    r"|\b(?:complained|written|talked|asked|praised|criticised|criticized|mentioned|reported)(?: about)?(?: the)? most\b"
)
_HOW_MANY = re.compile(r"\b(how many|number of|how often|versus|vs|compared (to|with))\b")
_ROWS_OF = re.compile(r"(?:how many|count the|what is the number of|what's the number of) (?:of the |the )?([a-z]+)")
SUPERLATIVES = frozenset(
    word
    for line in (
        "highest largest biggest tallest longest greatest most maximum top lowest smallest shortest least fewest minimum",
        "oldest earliest youngest newest latest average total plot chart per each every median percentage percent",
    )
    for word in line.split()
)


@dataclass(frozen=True, slots=True)
class Narrow:
    """What a query may be.

    Attributes:
        group: "must", "may", "count" (only to count, and then the first of them or those above a number), or "no".
        keys: of a group at most.
        high, low: the greatest, the least of numbers may be asked for.
        late, early: of dates.
        down, up: rows may be sorted so, where no superlative says it.
        parts: of dates that may be named.
        ask: "must", "number": a number is read; "may".
        plot: a plot ends it.
        best: the greatest or the least are; timed: by date or age.
        read: words of which one stands in what is read; none: nothing has to be read, since names and values say it all.
        values: "named": only values that the question names; "all".
        which: it asks for rows: who, which; who: for somebody.
        row: it asks which row has the greatest or least of what is read.
        numbers: it has some, that a condition may compare with; first: those of them that may say how many rows are wanted.
        average: it compares with the average; than: with another row; never: it asks for rows to which others have nothing.
        share: "must": it asks for a percentage; "may"; "no". several: it counts more than one thing.
        median: it asks for one.
        measured: the columns, as (table, column), of which it names the greatest or the least.
        named: the tables and columns that it names.
        denied: it denies something, so that a condition may be turned round.
        reads: conditions that a model reads, at most.
        noun: what is read is a number, percentage … of something.
        compound: figures of figures.
        behind: the numbers that stand behind a word, by its stem.
        tables: those that its words may mean; others are read only where they link two.
        absent: the nouns that it asks for, and that nothing of the database is about.
        unheard: the proper names in it that stand nowhere.
        vague: `best`, where nothing says by what; measures: what it may be by.
        counted: it asks how many rows of a table there are: a number, not one that stands in a row.
        tallied: it asks of what most texts say something: they are counted by it.
        implied: conditions that its phrases imply.
        amounts: columns that say how many of a thing a row is about: they are added up where it asks how many.
        required: values that it names, which its query has to hold; flags: columns of booleans that it may mean; set_flags: those that
            its query has to hold.
        versus: it asks whether one value has more than another: groups against each other.
        days: the days and years that it names. adding: the averages, sums or both that it asks for.
    """

    group: str = "may"
    keys: int = 2
    high: bool = True
    low: bool = True
    late: bool = True
    early: bool = True
    down: bool = True
    up: bool = True
    parts: tuple[str, ...] = PARTS
    ask: str = "may"
    plot: bool = False
    best: bool = True
    timed: bool = False
    read: tuple[str, ...] = ()
    values: str = "all"
    which: bool = False
    row: bool = False
    numbers: bool = True
    first: tuple[int, ...] = ()
    average: bool = False
    than: bool = False
    never: bool = False
    share: str = "no"
    several: bool = False
    median: bool = False
    measured: frozenset[Place] = frozenset()
    named: Named = field(default_factory=Named)
    denied: bool = True
    reads: int = 3
    noun: str = ""
    compound: Compound = field(default_factory=Compound)
    behind: Mapping[str, Sequence[str]] = field(default_factory=dict)
    tables: frozenset[str] = frozenset()
    absent: tuple[str, ...] = ()
    who: bool = False
    unheard: tuple[str, ...] = ()
    vague: str = ""
    measures: tuple[str, ...] = ()
    counted: bool = False
    tallied: bool = False
    implied: tuple[Implied, ...] = ()
    amounts: frozenset[Place] = frozenset()
    required: tuple[Required, ...] = ()
    flags: frozenset[Place] = frozenset()
    set_flags: frozenset[Place] = frozenset()
    versus: bool = False
    days: tuple[str, ...] = ()
    adding: tuple[str, ...] = ("avg", "sum")

    def aggregates(self, *, dated: bool = False, aged: bool = False) -> tuple[str, ...]:
        """min, max or both, of a column of numbers or dates; of an age the oldest is the greatest."""
        high, low = (
            (self.late, self.early)
            if dated
            else (self.early and self.high, self.late and self.low)
            if aged
            else (self.high, self.low)
        )
        return tuple(name for name, may in (("min", low), ("max", high)) if may) or ("min", "max")


def numbers_of(question: str) -> list[str]:
    """The numbers that stand in a question in digits, or in words where something is compared, and those of the months that it names.

    >>> numbers_of("more than three orders over 1,250.5 in March 2024")
    ['1250.5', '2024', '3']
    """
    named = [str(MONTHS.index(word) + 1) for word in re.findall(r"[A-Za-z]+", question) if word in MONTHS]
    said = [str(_COUNTING[word]) for word in _COUNTED_OF.findall(question.lower())]
    return list(dict.fromkeys([*_digits(question), *said, *named]))


def numbers_behind(question: str) -> dict[str, list[str]]:
    """The numbers that stand behind a word, by its stem: those of keys.

    >>> numbers_behind("the story of race 7 and of order number 12")
    {'race': ['7'], 'order': ['12']}
    """
    found: dict[str, list[str]] = {}
    for word, number in _NUMBERED.findall(question.lower()):
        found.setdefault(stem(word), []).append(number)
    return found


def _digits(question: str) -> list[str]:
    return [match.replace(",", "") for match in _DIGITS.findall(question)]


def _counts(question: str) -> list[str]:
    return _digits(question) + [str(_COUNTING[w]) for w in re.findall(r"[a-z]+", question.lower()) if w in _COUNTING]


def _parts(question: str, low: str) -> tuple[str, ...]:
    """The parts of dates that a question names; a year in digits is one."""
    named = any(word in MONTHS for word in re.findall(r"[A-Za-z]+", question))
    found = []
    for part in PARTS:
        pattern = _PART_OF.get(part)
        is_said = pattern.search(low) is not None if pattern is not None else part in low
        if is_said or (part == "year" and re.search(r"\b\d{4}\b", low)) or (part == "month" and named):
            found.append(part)
    return tuple(found)


def narrowed(question: str, scope: Scope, near: Near | None, *, plot: bool) -> Narrow:
    """What the question leaves open.

    Args:
        near: similarities of words; None: nothing must be read.
        plot: it asks for one.
    """
    question = plainly(question)
    low = _RECENT.sub("recent", question.lower())
    high, least = _UP.search(low) is not None, _DOWN.search(low) is not None
    early, late = _EARLY.search(low) is not None, _LATE.search(low) is not None
    down, up = _DESC.search(low) is not None, _ASC.search(low) is not None
    words_left = unsaid_words(question, scope, near)
    unknown = [word for word, likeness in words_left if likeness < NEAR]
    likely = {word for word, likeness in words_left if likeness >= NEAR}
    unsaid, measures = vague(question, scope, near)
    reads = any(f.is_unstructured for source in scope.sources.values() for f in source.shown)
    ask = "may"
    if unknown and reads:
        ask = "number" if _MEASURED.search(low) else "must"
    figures = (
        any(p.search(low) for p in (_COUNTED, _ADDED, _SHARE, _HOW_MANY, _AVERAGE)) or high or least or early or late
    )
    named = named_in(question, scope)
    group = (
        "must"
        if (_GROUP.search(low) or named.groups) and (figures or unknown)
        else "may"
        if _GROUP.search(low) or plot or _GROUPS.search(low) or _HAVING.search(low)
        else "no"
    )
    compound = compounds_in(question, scope, plot=plot)
    group = "may" if group == "no" and compound.nested else group
    counts = [int(text) for text in _counts(question) if text.isdigit() and len(text) < 3]
    superlative = high or least or early or late or _EST.search(low) is not None
    measured, most_of, least_of = _measured_columns(low, scope)
    if _LONGEST.search(low) and not measured:  # a customer the longest: since the earliest day
        early, superlative = True, True
    if not (high or least) and bool(most_of) != bool(least_of):  # of the fastest the speed, or the fewest minutes
        high, least = bool(most_of), bool(least_of)
    which = _ROW.search(low) is not None
    sums = _ADDED.search(_AVERAGE.sub(" ", low)) is not None
    versus = _WHETHER.match(low) is not None and _THAN.search(low) is not None and not compound.compare
    versus = versus and (_is_versus(scope) or _OTHERS.search(low) is not None)
    added = sums or adds(low)
    averaged, totalled = _MEAN.search(low) is not None, _TOTAL.search(low) is not None
    of_things = amounts(question, scope)
    if group == "no" and ask == "may" and not versus:
        first = superlative or _HAVING.search(low) is not None
        counts_them = _COUNTED.search(_MEASURING.sub(" ", low)) is not None or bool(of_things) or (which and added)
        group = "count" if first and counts_them else "no"
    compared = versus or bool(compound.compare) or _SHARE.search(low) is not None or len(_HOW_MANY.findall(low)) > 1
    meant, said = flags(question, scope, near)
    group = "count" if group == "no" and ask == "may" and of_things and superlative else group  # which sells best
    return Narrow(
        group,
        2 if re.search(r"\b(and|stack\w*|group\w*|colou?r)\b", low) else 1,
        high or not least,
        least or not high,
        late or not early,
        early or not late,
        down or not up or superlative,
        up or not down or superlative,
        _parts(question, low),
        ask,
        plot,
        superlative,
        (early or late) and (not (high or least) or (_LONGEST.search(low) is not None and not measured)),
        tuple(w for w in dict.fromkeys(re.findall(r"[A-Za-z]+", question)) if w.lower() in (unknown or likely))
        if reads
        else (),
        "all" if unknown and not reads else "named",
        which,
        ask == "number" and group not in ("must", "may") and high != least and which,
        bool(numbers_of(question)),
        tuple(n for n in counts if n),
        _AVERAGE.search(low) is not None,
        _THAN.search(low) is not None,
        _NEVER.search(low) is not None,
        "no" if ask == "number" or not _SHARE.search(low) else "must" if _SHARE_ASKED.search(low) else "may",
        len(_HOW_MANY.findall(low)) > 1,
        "median" in low,
        measured,
        named,
        _NEVER.search(low) is not None or _DENIED.search(low) is not None,
        1 + len(_ALSO.findall(_ASIDE.sub(" ", low))),
        found[2] if (found := _MEASURED.search(low)) is not None and ask == "number" else "",
        compound,
        numbers_behind(question),
        tables_near(question, scope, near),
        tuple(absent(question, unknown, scope)),
        re.search(r"\b(who|whose|whom)\b", low) is not None,
        tuple(unheard(question, scope)),
        unsaid,
        tuple(measures),
        not of_things and _counts_rows(low, scope),
        ask == "must" and which and _TALLIED.search(low) is not None,
        tuple(implied(question, scope)),
        of_things,
        () if compared else required_values(question, scope),
        meant,
        said if not compared and group in ("no", "count") else frozenset(),
        versus,
        tuple(days_of(question)),
        ()
        if not added
        else ("avg",)
        if averaged and not totalled
        else ("sum",)
        if totalled and not averaged
        else ("avg", "sum"),
    )


def _is_versus(scope: Scope) -> bool:
    """Does the question name two values of one column?"""
    return any(
        len({v for column, v in source.matches if column == f.name}) > 1
        for source in scope.sources.values()
        for f in source.shown
    )


def _counts_rows(low: str, scope: Scope) -> bool:
    """Is the question `how many X …` alone, X a table and no column of numbers?"""
    found = _ROWS_OF.match(low.strip())
    if found is None or len(_HOW_MANY.findall(low)) > 1 or _THAN.search(low) or _AVERAGE.search(low):
        return False
    noun = stem(found[1])
    columns = {
        last_word(f.name)
        for source in scope.sources.values()
        for f in source.shown
        if f.type not in ("VARCHAR", "BOOLEAN") and not f.is_unstructured
    }
    return noun not in columns and any(last_word(name) == noun for name in scope.sources)


def _measured_columns(low: str, scope: Scope) -> tuple[frozenset[Place], frozenset[Place], frozenset[Place]]:
    """The columns of numbers of which the greatest or least is asked for; of them those of which an adjective means the most, the least.

    By their names where they end as what stands behind a superlative: of `the largest area` those called area; else by what the
    adjective measures: of `the cheapest` those called price or cost.
    """
    said: set[str] = set()
    for found in _MOST_OF.finditer(low):
        said |= words_of(found[1].split(" of ")[0]) - COMMON
    numbers = [
        ((name, f.name), last_word(f.name))
        for name, source in scope.sources.items()
        for f in source.shown
        if f.type not in ("VARCHAR", "BOOLEAN") and not f.is_unstructured
    ]
    adjectives = [word for found in _ADJECTIVE.findall(low) for word in found if word]
    roots = set(map(root, adjectives))
    verbs = frozenset().union(*map(meant_columns, adjectives)) if adjectives else frozenset()
    named = frozenset(place for place, last in numbers if last in said | verbs or root(last) in roots)
    most, least = measures(adjectives)
    most_of = frozenset(place for place, last in numbers if last in most)
    least_of = frozenset(place for place, last in numbers if last in least)
    return named or most_of | least_of, most_of, least_of
