"""What the words of a question leave open of its query: groups or none, the greatest or the least, what a model must read.

A small model that may write anything in scope takes the wrong of two directions, or a column that sounds alike for what only a text says.
These are rules of English words, not of a database: `oldest` is the earliest date, `per` is a group, and a word that is near to no
name, value or comment of the database is something to be read where there are texts or images.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import replace

from uql.nl.schema.discover import stem, words_of
from uql.nl.schema.scope import Scope
from uql.nl.schema.spelling import well_spelt
from uql.nl.small.meaning.compounds import compounds_in
from uql.nl.small.meaning.dates import days_of, years_of
from uql.nl.small.meaning.elsewhere import Elsewhere, elsewhere
from uql.nl.small.meaning.figures import flows, is_entity, numbers_by, numbers_named
from uql.nl.small.meaning.grounding import NEAR, TOLD, Near, absent, tables_near, unheard, unsaid_words, vague
from uql.nl.small.meaning.implied import adds, amounts, implied, last_word
from uql.nl.small.meaning.kinds import kinds_in
from uql.nl.small.meaning.likeness import COMMON, DAYS, MONTHS, names_of
from uql.nl.small.meaning.naming import PARTS, Named, Place, named_in
from uql.nl.small.meaning.narrow import Narrow
from uql.nl.small.meaning.opinions import Opinions, opinions_in
from uql.nl.small.meaning.periods import Periods, periods_in
from uql.nl.small.meaning.reckoned import Against, Reckoned, against_in, means, reckoned_in
from uql.nl.small.meaning.required import Required, flags, required_values, told_of
from uql.nl.small.meaning.rivals import Rival, rival_in
from uql.nl.small.meaning.synonyms import in_its_words
from uql.nl.small.word_forms import ADJECTIVES, is_saying, meant_among, measures, root

_RECENT = re.compile(r"\b(most|least) recent(ly)?\b")
_UP = re.compile(
    r"\b(highest|largest|biggest|tallest|longest|greatest|most|maximum|max|top|best|heaviest|strongest|richest|dearest)\b"
)
_DOWN = re.compile(
    r"\b(bottom|lowest|smallest|shortest|least|fewest|minimum|min|worst|lightest|weakest|poorest|cheapest)\b"
)
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
    r"|\b(\w{3,}er)\b(?= than\b)|\b(\w+) (?:more|less|better|worse|higher|lower) than\b|\b(\w+) the (?:most|least)\b"
)
_DESC = re.compile(r"\b(desc|descending|(high|large|big)(est)? to (low|small)(est)?|z to a)\b")
_ASC = re.compile(r"\b(asc|ascending|(low|small)(est)? to (high|large|big)(est)?|a to z|alphabetical(ly)?)\b")
_GROUP = re.compile(r"\b(per|each|every)\b")
_TWO_KEYS = re.compile(r"\b(and|stack\w*|group\w*|colou?r)\b|\b(per|each|every)\b.*\bby\b|\bby\b.*\b(per|each|every)\b")
_GROUPS = re.compile(r"\b(different|distribution|group(ed)?|respectively|by|all|distinct|categor\w+|kinds?|types?)\b")
_HAVING = re.compile(
    r"\b(?:more|less|fewer|at least|at most|over|under|above|below|exactly|only)\b.*\b(?:\d|two|three|four|five|six|seven|eight|nine|ten)"
)
_MEASURED = re.compile(
    r"\b(highest|lowest|most|least|largest|smallest|fewest|maximum|minimum|average|mean|total)\s+(number|percentage|percent|amount|count|share)\b"
)
_COUNTED = re.compile(r"\b(busiest|most|fewest|least|number|many|more|less|fewer)\b")
_ADDED = re.compile(r"\b(total|sum|average|mean|altogether)\b")
_ROW = re.compile(r"\b(who|which|whose)\b|\bof the \w+ (that|with|who|which|whose)\b")
_PART_OF = {
    "quarter": re.compile(
        r"\b((per|each|every|by|and|which|what) quarters?|quarterly|quarters? of (the year|\d{4})|quarters? [1-4])\b"
    ),
    "week": re.compile(r"\b(per|each|every|by|which|what) (calendar )?weeks?\b"),
    "day": re.compile(r"\b(per|each|every|by|which|what) (calendar )?day\b(?! of)"),
    "hour": re.compile(r"\b(per|each|every|by|which|what|busiest|peak) hours?\b|\bhours? of the day\b"),
    "weekday": re.compile(r"\b(weekdays?|days? of the week|(mon|tues|wednes|thurs|fri|satur|sun)days?)\b"),
    "weekend": re.compile(r"\bweek-?ends?\b"),
    "century": re.compile(r"\bcentur"),
}
_COUNTED_WORDS = ("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
_COUNTING = {word: n for n, word in enumerate(_COUNTED_WORDS, 2)}
_COUNTED_OF = re.compile(
    r"\b(?:than|least|most|over|under|above|below|exactly|only|with|has|have|had|between|and|are|is|was|equals?) "
    rf"({'|'.join(_COUNTED_WORDS)})\b"
)
_QUARTERS = ("first", "second", "third", "fourth")
_UP_TO_TWELVE = ("one", *_COUNTED_WORDS)
_HYPHENED = re.compile(rf"\b({'|'.join(_UP_TO_TWELVE)})-(?=[a-z])")  # a one-star review
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
_ENDS_OF = re.compile(r"\b(?:first|last|range|span|when|ever|begin\w*|began|start\w*|end\w*|from|until|up to|record)\b")
_NONE_OF = re.compile(
    r"\b(?:with(?:out| no)|(?:has|have|had|got) no|(?:not|n't) (?:have|had|has|got) any)(?: any)? (\w+)\W*$|\bthere (?:is|are) no (\w+)\W*$"
)
_NEVER = re.compile(r"\b(never|without|no|not|none|neither|nor|lack(s|ing)?)\b|n't\b")
_DENIED = re.compile(
    r"\b(out of|except|exclud\w+|outside|other than|non|un[a-z]{4,}|in(?:active|valid|complete|correct|dependent))\b"
)
_ALSO = re.compile(r"\b(and|but|also|both|while|plus|as well as)\b")
_ASIDE = re.compile(r"\([^)]*\)|\bboth\b(?=.*\band\b)|\bbetween\b.*?\band\b")
_SHARE = re.compile(r"\b(percentage|percent|share|proportion|fraction)\b|%")
_SHARE_OF = re.compile(r"\b(?:percentage|percent|share|proportion|fraction) of ((?:\w+ ?){1,4})")
_SHARE_ASKED = re.compile(
    r"^\W*(?:the )?(?:percentage|percent|share|proportion|fraction) of\b"
    r"|\b(what|which|how (large|big|high)( is)?( a| the)?)( is)?( the)? (percentage|percent|share|proportion|fraction)\b"
)
_TALLIED = re.compile(
    r"\b(?:most|fewest|least)(?: \w+){0,2}? (?:complaints?|praise|criticisms?|thanks|requests?|mentions?|suggestions?|problems?|issues?"
    r"|questions?|remarks?|comments?|defects?|faults?|errors?|accidents?|injur(?:y|ies)|incidents?|compliments?|reports?)\b"
    r"|\bmost (?:often|frequently|commonly)\b|\b(?:complain|wr[io]te|talk|speak|ask|report)\w*(?: the)? most\b"
    r"|\b(?:complained|written|talked|asked|praised|criticised|criticized|mentioned|reported)(?: about)?(?: the)? most\b"
)
_MOST_TEXTS = re.compile(
    rf"\b(?:most|fewest|least|(?:more|fewer|less) than (?:\d+|{'|'.join(_COUNTED_WORDS)})|at least (?:\d+|{'|'.join(_COUNTED_WORDS)}))"
    r" ((?:\w+ ?){1,2})"
)
_SAYING = re.compile(r"\W*(?:what|why|how)(?: \w+){0,2}? (?:do|does|did)\b(.*)")
_MORE_THAN = re.compile(
    rf"\W*(?:is|are|was|were|do|does|did) .*\b(?:more|fewer|less)\b(?! than (?:\d|{'|'.join(_COUNTED_WORDS)}|half))(?: \S+)+? than\b"
)
_SHOW = re.compile(
    r"\W*(?:please )?(?:show|list|give|name|find|get|display|return|fetch)(?: me| us)?(?: any| some)? "
    rf"(\d{{1,3}}|{'|'.join(_COUNTED_WORDS)}) (?!per\b|of each\b)"
)
_RETOLD = re.compile(r"\W*(?:please )?(?:summari[sz]e|describe|translate|extract|classify|categori[sz]e|paraphrase)\b")
_COMPARE = re.compile(r"\W*(?:please )?(?:compare|contrast)\b|\b(?:versus|vs)\b")
_ORDERED = re.compile(r"\b(?:\w{3,}est|(?:most|least) \w+|best|worst) first\b")
_FIRST_FEW = re.compile(r"\b(?:top|first|bottom|last) (?:\d+|two|three|four|five|six|seven|eight|nine|ten)\b")
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


def numbers_of(question: str) -> list[str]:
    """The numbers that stand in a question in digits, or in words where something is compared, and those of the months that it names.

    >>> numbers_of("more than three orders over 1,250.5 in March 2024")
    ['1250.5', '2024', '3']
    """
    named = [str(MONTHS.index(word) + 1) for word in re.findall(r"[A-Za-z]+", question) if word in MONTHS]
    said = [str(_COUNTING[word]) for word in _COUNTED_OF.findall(question.lower())]
    said += [
        str(1 + _QUARTERS.index(word))
        for word in re.findall(r"\b(\w+) quarter\b", question.lower())
        if word in _QUARTERS
    ]
    said += [str(1 + _UP_TO_TWELVE.index(word)) for word in _HYPHENED.findall(question.lower())]
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
        if is_said or (part == "year" and years_of(low)) or (part == "month" and named):
            found.append(part)
    if "weekend" in found and "weekday" in found and not any(day.lower() in low for day in DAYS):
        found.remove("weekday")  # weekdays against weekends
    return tuple(found)


def said_plainly(question: str, scope: Scope) -> tuple[str, Periods, tuple[Reckoned, ...], tuple[Against, ...]]:
    """A question as the database says it, without the words for periods and for what is reckoned, which stand beside it."""
    spelt = well_spelt(question, list(scope.sources.values()), COMMON)
    plain, periods = periods_in(in_its_words(spelt, scope))
    plain, made = reckoned_in(plain, scope)
    plain, against = (plain, ()) if made else against_in(plain, scope)
    return plain, periods, made, against


def narrowed(question: str, scope: Scope, near: Near | None, *, plot: bool) -> Narrow:
    """What the question leaves open.

    Args:
        near: similarities of words; None: nothing must be read.
        plot: it asks for one.
    """
    asked = question
    question, periods, made, columns_against = said_plainly(question, scope)
    gone = words_of(asked) - words_of(question)
    reckoned = frozenset(each.place for each in made)
    low = _RECENT.sub("recent", question.lower())
    high, least = _UP.search(low) is not None, _DOWN.search(low) is not None
    early, late = _EARLY.search(low) is not None, _LATE.search(low) is not None
    down, up = _DESC.search(low) is not None, _ASC.search(low) is not None
    words_left = unsaid_words(question, scope, near)
    unknown = [word for word, likeness in words_left if likeness < NEAR]
    likely = {word for word, likeness in words_left if likeness >= NEAR}
    others = elsewhere(question, scope, named_in(question, scope).asked)
    if others:  # what stands before what rows elsewhere have or lack links them
        unknown = [word for word in unknown if not re.search(rf"\b{word} (?:both|any|no|only|neither|the|an?)\b", low)]
    unsaid, measures = vague(question, scope, near)
    reads = any(f.is_unstructured for source in scope.sources.values() for f in source.shown)
    ask = "may"
    if unknown and reads:
        ask = "number" if _MEASURED.search(low) else "must"
    figures = (
        any(p.search(low) for p in (_COUNTED, _ADDED, _SHARE, _HOW_MANY, _AVERAGE)) or high or least or early or late
    )
    named = named_in(question, scope)
    named = replace(named, part="year") if periods.years else named
    group = (
        "must"
        if (_GROUP.search(low) or named.groups or periods.years)
        and (figures or periods.years or unknown)
        and not _of_each_row(low, scope, named)
        else "may"
        if _GROUP.search(low) or plot or _GROUPS.search(low) or _HAVING.search(low)
        else "no"
    )
    compound = compounds_in(question, scope, plot=plot)
    rival = rival_in(question, scope) if not compound.compare else None
    compound = replace(compound, named=compound.named | reckoned)
    group = "may" if group == "no" and compound.nested else group
    counts = [int(text) for text in _counts(question) if text.isdigit() and len(text) < 3]
    superlative = high or least or early or late or _EST.search(low) is not None
    measured, most_of, least_of = _measured_columns(low, scope)
    if _LONGEST.search(low) and {t for t, _ in measured}.isdisjoint(t for t, _ in named.asked):
        early, superlative, measured = True, True, frozenset()  # a customer the longest: since the earliest day
    if not (high or least) and bool(most_of) != bool(least_of):  # of the fastest the speed, or the fewest minutes
        high, least = bool(most_of), bool(least_of)
    which = _ROW.search(low) is not None
    versus = _WHETHER.match(low) is not None and _THAN.search(low) is not None and not compound.compare
    versus = versus and (_is_versus(scope) or _OTHERS.search(low) is not None)
    against = _COMPARE.search(low) is not None and not (plot or named.groups or compound.compare) and _is_versus(scope)
    of_things = amounts(question, scope) if ask == "may" else frozenset()
    adding = _adding(low)
    counting = _COUNTED.search(_MEASURING.sub(" ", low)) is not None
    if group == "no" and ask == "may" and not versus:
        first = superlative or _HAVING.search(low) is not None
        counts_them = counting or bool(of_things) or (bool(adding) and (which or _are_names(named.asked, scope)))
        group = "count" if first and counts_them else "no"
    group = "count" if group == "no" and ask == "may" and of_things and superlative else group  # which sells best
    numbers = reckoned or numbers_named(low, scope)
    ordered = _ORDERED.search(low) is not None
    best = superlative and not (ordered and not _FIRST_FEW.search(low))
    if best:
        group, adding, measured = _of_first(
            question, scope, named, (group, adding, measured), numbers, sure=ask == "may"
        )
    elif numbers and ask == "may" and not adding and not counting and not _HOW_MANY.search(low):
        if named.groups or named.part or _GROUP.search(low):  # revenue per month
            adding = ("sum",) if flows(low, numbers, amounts=True) else ("avg", "sum")
            group = "must" if (named.groups or named.part) and not plot else group
        elif versus or against:
            amounts_of = ("avg", "sum") if flows(low, numbers, amounts=True) else ("avg",)
            adding = ("sum",) if flows(low, numbers, amounts=False) else amounts_of
    if made and adding:
        adding = means(made, averaged=_MEAN.search(low) is not None) or adding
    measured = measured or numbers if versus or against else measured
    measured = reckoned or (rival.by if rival is not None and rival.by else measured)
    several = len(_HOW_MANY.findall(low)) > 1
    compared = versus or against or bool(compound.compare) or _SHARE.search(low) is not None or several
    meant, said, contraries = flags(question, scope, near)
    to_read = {*(unknown or likely), *(told_of(question, scope) if reads else ())}
    saying = _SAYING.match(low) if reads and ask == "may" else None
    if saying is not None and (said_so := [word for word in saying[1].split() if is_saying(word.strip("?.,!"))]):
        ask = "must"
        to_read |= {word.strip("?.,!") for word in said_so}
    if reads and _RETOLD.match(low):
        ask, group = "must", "no"
        to_read |= set(low.split()[:1])
    kinds = kinds_in(low, unknown) if reads and not named.groups else None
    ask = "must" if kinds is not None or (ask == "number" and which and best and _shares_texts(low, scope)) else ask
    some = _some(low) if ask == "must" and not best else 0
    group = "no" if some and not named.groups else group
    opinions = Opinions()
    plainly = high or least or early or late or bool(measured)
    if reads and (ask == "must" or (ask == "may" and which and superlative and not plainly)):
        opinions = opinions_in(low, unknown, words_of(names_of(scope)), measured=bool(measured))
        ask = "must" if opinions.ranked else ask
    if ask == "must" and not _is_versus(scope):  # more complaints about this than about that
        if _MORE_THAN.match(low):
            compound, group = replace(compound, compare="difference", figure="count"), "no"
        compound = replace(compound, of_read=bool(compound.compare) and compound.figure == "count")
    return Narrow(
        group=group,
        keys=2 if _TWO_KEYS.search(low) or (periods.years and named.groups) else 1,
        high=high or not least,
        low=least or not high,
        late=late or not early,
        early=early or not late,
        down=down or not up or superlative,
        up=up or not down or superlative,
        parts=_parts(question, low),
        ask=ask,
        plot=plot,
        best=best,
        timed=(early or late) and (not (high or least) or (_LONGEST.search(low) is not None and not measured)),
        read=_read(question, to_read, opinions) if reads else (),
        values="all" if unknown and not reads else "named",
        which=which,
        row=ask == "number" and group not in ("must", "may") and high != least and which,
        numbers=bool(numbers_of(question)),
        first=tuple(n for n in counts if n),
        average=_AVERAGE.search(low) is not None,
        than=_THAN.search(low) is not None,
        never=_NEVER.search(low) is not None,
        share="no" if ask == "number" or not _SHARE.search(low) else "must" if _SHARE_ASKED.search(low) else "may",
        several=several,
        median="median" in low,
        measured=measured,
        named=named,
        denied=_NEVER.search(low) is not None or _DENIED.search(low) is not None,
        reads=1 + len(_ALSO.findall(_ASIDE.sub(" ", low))),
        noun=found[2] if (found := _MEASURED.search(low)) is not None and ask == "number" else "",
        compound=compound,
        behind=numbers_behind(question),
        tables=tables_near(question, scope, near),
        absent=() if kinds is not None or (ask == "must" and several) else tuple(absent(question, unknown, scope)),
        who=re.search(r"\b(who|whose|whom)\b", low) is not None,
        unheard=tuple(unheard(question, scope)),
        vague=unsaid,
        measures=tuple(measures),
        counted=not of_things and _counts_rows(low, scope, unknown),
        tallied=ask == "must" and which and (_TALLIED.search(low) is not None or _tallies_texts(low, scope)),
        implied=tuple(implied(question, scope)),
        amounts=of_things,
        required=() if compared else _left_to_hold(required_values(question, scope), others, rival, gone),
        flags=meant,
        set_flags=said - _places_of(others, said) if not compared and group in ("no", "count") else frozenset(),
        versus=versus or against,
        days=tuple(days_of(question)),
        adding=adding,
        denied_flags=contraries,
        ordered=ordered,
        summed=(_sums(low) or bool(made)) and not counting and not _HOW_MANY.search(low) and not plot,
        ends=plot or _ENDS_OF.search(low) is not None,
        lacking=_lacking(low, scope) if ask == "may" else frozenset(),
        names=frozenset(words_of(names_of(scope))) | COMMON,
        opinions=opinions,
        some=some,
        kinds=kinds,
        told=("sum",) if ask == "must" and _counts_told(low, unknown, scope) else (),
        elsewhere=others,
        rival=rival,
        periods=periods,
        reckoned=made,
        against=columns_against,
    )


def _left_to_hold(
    values: Sequence[Required], others: Sequence[Elsewhere], rival: Rival | None, gone: set[str]
) -> tuple[Required, ...]:
    """The values that a query has to hold, but for those of rows of other tables, and a group that others are compared with.

    Args:
        gone: the words that stand for how something is reckoned, and for no value.
    """
    kept = [v for v in values if rival is None or v.value != rival.value]
    kept = [v for v in kept if not words_of(v.value) or not words_of(v.value) <= gone]
    return tuple(v for v in kept if not any(f"'{v.value}'" in each.held for each in others))


def _places_of(others: Sequence[Elsewhere], places: frozenset[Place]) -> frozenset[Place]:
    """Those columns that rows of other tables are told by."""
    return frozenset(place for place in places if any(each.table == place[0] for each in others))


def _read(question: str, words: Collection[str], opinions: Opinions) -> tuple[str, ...]:
    """The words of which one stands in what is read: those of no name or value, adjectives as the texts have them."""
    said = (w for w in dict.fromkeys(re.findall(r"[A-Za-z]+", question)) if w.lower() in words)
    kept = [w for w in said if not (opinions.ranked and w.lower() in opinions.superlative)]
    return tuple(dict.fromkeys([*kept, *opinions.positive]))


def _some(low: str) -> int:
    """How many rows are wanted, whichever they are: `show five tweets that …`; 0: all."""
    found = _SHOW.match(low)
    return (_COUNTING.get(found[1]) or int(found[1])) if found is not None else 0


def _are_names(places: frozenset[Place], scope: Scope) -> bool:
    """Are these columns of words?"""
    return bool(places) and all(f.type == "VARCHAR" for t, c in places for f in scope.sources[t].shown if f.name == c)


def _of_each_row(low: str, scope: Scope, named: Named) -> bool:
    """Is `per sale` no group, since each row of the number that is asked for is one?"""
    tables = {table for table, _ in numbers_named(low, scope)}
    each = re.search(r"\b(?:per|each|every) (\w+)", low)
    return (
        bool(tables)
        and not (named.groups or named.part)
        and each is not None
        and all(last_word(table) == stem(each[1]) for table in tables)
    )


def _sums(low: str) -> bool:
    """Does it ask for a total or an average, and compare nothing with one?"""
    return _ADDED.search(_AVERAGE.sub(" ", low)) is not None


def _adding(low: str) -> tuple[str, ...]:
    """The averages, sums or both that a question asks for."""
    if not _sums(low) and not adds(low):
        return ()
    averaged, totalled = _MEAN.search(low) is not None, _TOTAL.search(low) is not None
    return ("avg",) if averaged and not totalled else ("sum",) if totalled and not averaged else ("avg", "sum")


_Figures = tuple[str, tuple[str, ...], frozenset[Place]]  # the group, what is added, the columns measured


def _of_first(
    question: str, scope: Scope, named: Named, found: _Figures, numbers: frozenset[Place], *, sure: bool
) -> _Figures:
    """The figures by which the first of something are found: of all rows that belong to it, or what stands in its own.

    Args:
        numbers: that the question names.
        sure: nothing is read.
    """
    group, adding, measured = found
    by = numbers_by(question, scope)
    measured = by or measured
    asked = {table for table, _ in named.asked}
    apart = bool(measured) and bool(asked) and asked.isdisjoint(table for table, _ in measured)
    repeated = bool(asked) and not any(is_entity(place, scope) for place in named.asked)  # by which reviewer
    low = question.lower()
    if sure and not adding and (apart or (repeated and by)) and (by or flows(low, measured, amounts=False)):
        group = "count" if not named.groups else group
        adding = ("sum",) if flows(low, measured, amounts=True) else ("avg", "sum")
    elif (
        sure and not adding and group == "no" and (apart or repeated) and _are_many(low, measured)
    ):  # which brand gets the best ratings
        group, adding = "count", ("avg",)
    own = {place[0] for place in named.asked if is_entity(place, scope)}
    said = _ADDED.search(_AVERAGE.sub(" ", low)) is not None
    if (
        adding and not said and numbers and {table for table, _ in numbers} <= own
    ):  # who earns most: it stands in the row
        return "no", (), numbers
    return group, adding, measured


def _are_many(low: str, measured: frozenset[Place]) -> bool:
    """Is what is measured said in the plural: ratings, which are those of several rows?"""
    lasts = {last for _, column in measured for last in (last_word(column),)}
    found = re.search(r"\b(?:best|worst|highest|lowest|greatest|largest|smallest) (\w+s)\b", low)
    found = found or re.search(r"\b(?:best|worst|highest|lowest)[- ](rated)\b", low)
    return found is not None and bool(({stem(found[1])} | meant_among(found[1], lasts)) & lasts)


def _counts_told(low: str, unknown: Sequence[str], scope: Scope) -> bool:
    """Does it ask how many there are of what only texts tell of?"""
    found = re.search(r"\bhow many (\w+)", low)
    tables = words_of(" ".join(scope.sources))
    return found is not None and found[1] in unknown and stem(found[1]) not in TOLD and stem(found[1]) not in tables


def _lacking(low: str, scope: Scope) -> frozenset[str]:
    """The tables of which rows have none: of `departments without employees` the employees."""
    nouns = {stem(word) for found in _NONE_OF.findall(low) for word in found if word}
    return frozenset(
        name
        for name in scope.sources
        if nouns & words_of(name) and any(name in (x.left.table, x.right.table) for x in scope.links)
    )


def _texts(scope: Scope) -> frozenset[str]:
    """The last words of the names of tables that hold texts or images."""
    return frozenset(
        last_word(name) for name, source in scope.sources.items() if any(f.is_unstructured for f in source.shown)
    )


def _shares_texts(low: str, scope: Scope) -> bool:
    """Does it ask for a share of the texts themselves: the highest share of angry letters?"""
    texts = _texts(scope)
    return any(stem(word) in texts for found in _SHARE_OF.findall(low) for word in found.split())


def _tallies_texts(low: str, scope: Scope) -> bool:
    """Does it ask of what there are most, or more than so many, of the texts of a table: most reviews about delivery?"""
    texts = _texts(scope)
    return any(stem(word) in {*texts, "time"} for found in _MOST_TEXTS.finditer(low) for word in found[1].split())


def _is_versus(scope: Scope) -> bool:
    """Does the question name two values of one column?"""
    return any(
        len({v for column, v in source.matches if column == f.name}) > 1
        for source in scope.sources.values()
        for f in source.shown
    )


def _counts_rows(low: str, scope: Scope, unknown: Sequence[str]) -> bool:
    """Is the question `how many X …` alone, X a table and no column of numbers, with nothing unknown before it?"""
    found = _ROWS_OF.match(low.strip())
    if found is None or len(_HOW_MANY.findall(low)) > 1 or _THAN.search(low) or _AVERAGE.search(low):
        return False
    words = low[found.start(1) :].split()[:3]
    tables = {last_word(name) for name in scope.sources}
    is_plain = not set(words[:2]) & {*unknown, "of"}
    noun = next((stem(word) for word in words if is_plain and stem(word) in tables), stem(words[0]))
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
    meant: set[str] = set()
    for found in _MOST_OF.finditer(low):
        behind = found[1].split(" of ")[0]
        said |= words_of(behind) - COMMON
        meant |= set(re.findall(r"[a-z]+", behind))
    numbers = [
        ((name, f.name), last_word(f.name))
        for name, source in scope.sources.items()
        for f in source.shown
        if f.type not in ("VARCHAR", "BOOLEAN") and not f.is_unstructured
    ]
    adjectives = [word for found in _ADJECTIVE.findall(low) for word in found if word]
    roots = set(map(root, adjectives))
    called = {last for _, last in numbers}
    verbs = frozenset[str]().union(*(meant_among(word, called) for word in [*adjectives, *sorted(meant)]))
    named = frozenset(place for place, last in numbers if last in said | verbs or root(last) in roots)
    most, least = measures(adjectives)
    most_of = frozenset(place for place, last in numbers if last in most)
    least_of = frozenset(place for place, last in numbers if last in least)
    return named or most_of | least_of, most_of, least_of
