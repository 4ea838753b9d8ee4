"""Words of English that mean a name or a value in another form: irregular plurals, sexes, peoples, units, what an adjective measures.

Rules of the language, not of any database: each counts only where a column or value of the scope is so called.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator


def _pairs(text: str) -> dict[str, str]:
    return dict(pair.split("=") for pair in text.split())


def _sets(text: str) -> dict[str, frozenset[str]]:
    """Lines of `word other: name name`."""
    made: dict[str, frozenset[str]] = {}
    for line in text.strip().splitlines():
        words, _, names = line.partition(":")
        made |= dict.fromkeys(words.split(), frozenset(names.split()))
    return made


# Plurals that no rule of endings makes, and past forms, which count where verbs are compared.
PLURALS = _pairs(
    "children=child women=woman men=man people=person feet=foot teeth=tooth mice=mouse geese=goose wives=wife knives=knife shelves=shelf "
    "thieves=thief halves=half"
)
_PAST = _pairs(
    "won=win wrote=write written=write sang=sing sung=sing drove=drive driven=drive led=lead taught=teach built=build sold=sell "
    "bought=buy paid=pay flew=fly flown=fly drew=draw drawn=draw rode=ride ridden=ride spoke=speak spoken=speak threw=throw "
    "thrown=throw grew=grow grown=grow caught=catch spent=spend lent=lend sent=send told=tell swam=swim fought=fight"
)
_FEMALE = frozenset(("f", "female", "females", "w", "woman", "women", "girl", "girls", "lady", "ladies"))
_MALE = frozenset(("m", "male", "males", "man", "men", "boy", "boys", "gentleman", "gentlemen"))
_PEOPLES = _pairs(
    "spanish=spain french=france german=germany dutch=netherlands british=britain english=england scottish=scotland welsh=wales "
    "irish=ireland danish=denmark swedish=sweden norwegian=norway finnish=finland polish=poland turkish=turkey swiss=switzerland "
    "greek=greece chinese=china japanese=japan portuguese=portugal czech=czechia belgian=belgium thai=thailand filipino=philippines "
    "peruvian=peru ukrainian=ukraine hungarian=hungary argentinian=argentina"
)
_CODES = _pairs(
    "us=united_states usa=united_states gb=united_kingdom uk=united_kingdom de=germany fr=france it=italy es=spain pt=portugal "
    "nl=netherlands be=belgium lu=luxembourg ch=switzerland at=austria ie=ireland dk=denmark se=sweden no=norway fi=finland is=iceland "
    "pl=poland cz=czechia sk=slovakia hu=hungary ro=romania bg=bulgaria gr=greece tr=turkey ua=ukraine ru=russia cn=china jp=japan "
    "kr=south_korea in=india au=australia nz=new_zealand ca=canada mx=mexico br=brazil ar=argentina cl=chile co=colombia pe=peru "
    "za=south_africa eg=egypt ng=nigeria ke=kenya ma=morocco il=israel sa=saudi_arabia ae=emirates sg=singapore th=thailand vn=vietnam "
    "id=indonesia my=malaysia ph=philippines en=england ja=japan zh=china ko=south_korea sv=sweden da=denmark"
)
_MONEY = "euro euros dollar dollars pound pounds cent cents franc francs yen krona kronor rupee rupees usd eur gbp chf"
_UNITS = _sets(
    """
    kilometre kilometres kilometer kilometers: km kilometre kilometer
    metre metres meter meters: m metre meter
    centimetre centimetres centimeter centimeters: cm
    kilogram kilograms kilo kilos: kg kilogram kilo
    gram grams: g gram
    hour hours: h hr hour
    minute minutes: min minute
    second seconds: s sec second
    mile miles: mi mile
    litre litres liter liters: l litre liter
    percent: pct percent percentage rate share
    square feet foot sqft sqm m2: area size surface
    people persons places seats spots: capacity population seat
    """
)
_UNIT = re.compile(r"\d ?([a-z]+)\b")
# What an adjective measures, as columns are called; the second of two rows is one where the least of it is meant.
_MOST = _sets(
    """
    expensive dearest dear dearer costly costliest pricey priciest: price cost fare fee rent rate
    fastest fast faster quickest quick quicker: speed pace velocity
    slowest slow slower: time minute second duration hour
    longest long longer: length duration distance minute hour day page runtime km
    heaviest heavy heavier: weight mass kg
    tallest tall taller: height
    deepest deep deeper: depth
    widest wide wider: width
    warmest hottest hot warm warmer hotter: temperature
    loudest loud louder: loudness volume
    largest biggest large big larger bigger: size area surface capacity population
    richest rich richer: wealth income
    """
)
_LEAST = _sets(
    """
    cheapest cheap cheaper: price cost fare fee rent rate
    fastest fast faster quickest quick quicker: time minute second duration hour
    slowest slow slower: speed pace velocity
    shortest short shorter: length duration distance minute hour day page runtime km height
    lightest light lighter: weight mass kg
    coldest coolest cold cool colder cooler: temperature
    shallowest: depth
    narrowest: width
    smallest small smaller: size area surface capacity population
    poorest poor poorer: wealth income
    """
)
ADJECTIVES = frozenset(_MOST) | frozenset(_LEAST)
# Verbs for how the rows of two tables belong together; a text need not be read for them.
_DOING_WORDS = (
    "stay pay visit attend join rent borrow buy sell order register enrol sign receive send hire employ offer provide publish release "
    "owe teach handle manage supervise conduct organise organize host process "
    "launch start begin finish deliver ship arrive depart leave spend earn carry participate"
)
# Participles that say how rows came about.
_MADE_WORDS = (
    "placed created submitted filed recorded entered write writes wrote written posted uploaded issued complete completed added raised "
    "logged located situated measured observed place"
)
_MADE = frozenset(_MADE_WORDS.split())
_SAYING_WORDS = (
    "say think want need like love hate dislike feel wish complain criticise criticize praise suggest recommend request mention describe "
    "enjoy appreciate admire regret report thank ask"
)
# What a noun or verb is measured by, as columns are called; the first of those behind a bar that are there.
_MEANS_WORDS = """
revenue turnover proceeds: revenue turnover sale income | total amount payment | price fee fare
sales: sale revenue turnover | total amount payment | quantity unit
spend spends spent spending expense expenses: spending expense | total amount payment revenue cost | price fee fare
pay pays paid paying: pay wage salary payment | price amount fee fare
earn earns earned earning earnings: salary wage income earnings pay | revenue amount
stay stays stayed staying: night stay duration
hold holds seat seats seating: capacity seat size
rated rating ratings: rating star score grade mark point
size: size area surface capacity
"""
_MEANS = {
    word: tuple(frozenset(tier.split()) for tier in names.split("|"))
    for words, _, names in (line.partition(":") for line in _MEANS_WORDS.strip().splitlines())
    for word in words.split()
}
# What adds up: of a shop the revenue of all its sales is meant.
FLOWS = frozenset(("revenue", "turnover", "proceed", "sale", "profit", "income", "expense"))
AMOUNTS = FLOWS | frozenset(("quantity", "amount", "unit", "cost", "total", "hour", "payment"))
# A flag is denied by its contrary.
_CONTRARY = _pairs("fail=pass fails=pass failed=pass absent=present closed=open offline=online lost=won sold=available")


def stem(word: str) -> str:
    """A word without its ending, roughly.

    >>> [stem(word) for word in ("notes", "prices", "boxes", "cities", "seen", "joined", "children", "ratings")]
    ['note', 'price', 'box', 'city', 'seen', 'join', 'child', 'rat']
    """
    word = _one(word)
    return next((word[: -len(end)] for end in ("ed", "ing") if word.endswith(end) and len(word) - len(end) >= 3), word)


def _one(word: str) -> str:
    """A word without its plural."""
    if word in PLURALS or len(word) < 4 or word.endswith("ss"):
        return PLURALS.get(word, word)
    if word.endswith("ies"):
        return word[:-3] + "y" if len(word) > 5 else word[:-1]
    return word[:-2] if word.endswith(("sses", "xes", "ches", "shes")) else word.removesuffix("s")


def singular(name: str) -> str:
    """A name without the plural of its last word.

    >>> [singular(name) for name in ("order_items", "companies", "people", "glass", "boxes", "bookings")]
    ['order_item', 'company', 'person', 'glass', 'box', 'booking']
    """
    before, line, last = name.rpartition("_")
    return f"{before}{line}{_one(last)}"


def meant_values(values: Iterable[str], words: Iterable[str]) -> Iterator[str]:
    """Of a column's values those that words mean in another form: women, f; Spanish, Spain.

    >>> list(meant_values(["f", "m"], ["women"])), list(meant_values(["Spain", "Peru"], ["spanish"]))
    (['f'], ['Spain'])
    >>> list(meant_values(["DE", "FR"], ["germany"])), list(meant_values(["DE", "FR"], ["french"]))
    (['DE'], ['FR'])
    >>> forms = ("Italy", "italian"), ("Austria", "australian"), ("rain", "rainy"), ("sun", "sunny")
    >>> [list(meant_values([value], [word])) for value, word in forms]
    [['Italy'], [], ['rain'], ['sun']]
    """
    there = {value.lower(): value for value in values}
    said = {word.lower() for word in words}
    if there and all(value in _FEMALE | _MALE for value in there):
        for sex in (_FEMALE, _MALE):
            if said & sex:
                yield from (there[value] for value in there if value in sex)
    if len(there) > 1 and all(value in _CODES for value in there):  # DE: Germany, German
        countries = {value: _CODES[value].rpartition("_")[2] for value in there}
        for low, country in countries.items():
            if country in said or any(_is_of(word, country, is_name=True) for word in said):
                yield there[low]
        return
    for word in sorted(said):
        yield from (value for low, value in there.items() if _is_of(word, low, is_name=value[:1].isupper()))


def _is_of(word: str, value: str, *, is_name: bool) -> bool:
    """Is a word the adjective of a value: Spanish of Spain, Kenyan of Kenya, rainy of rain?"""
    if (country := _PEOPLES.get(word)) is not None:
        return re.search(rf"\b{country}\b", value) is not None
    if word.endswith("y") and value.rstrip("y").removesuffix("s") in {
        word[:-1],
        word[:-2] if word[-2:-1] == word[-3:-2] else word[:-1],
    }:
        return len(value) > 2 and value != word
    bases = (word.removesuffix(ending) for ending in ("ian", "an", "n", "ese", "ish", "ic") if word.endswith(ending))
    return is_name and any(len(base) > 3 and value.startswith(base) and len(value) - len(base) < 4 for base in bases)


def is_another_form(word: str, value: str) -> bool:
    """Does a word of a question mean this value in another form?"""
    return any(meant_values([value], [word])) or (len(value) == 2 and any(meant_values([value, "US", "DE"], [word])))


def root(word: str) -> str:
    """A word without the endings of verbs and of those who do it: manage, manages, managed and manager are one.

    >>> [root(word) for word in ("manages", "manager", "winner", "won", "directed", "directors", "writes")]
    ['manag', 'manag', 'win', 'win', 'direct', 'direct', 'writ']
    """
    word = PLURALS.get(word) or _PAST.get(word, word)
    for ending in ("ers", "ors", "er", "or", "ing", "ies", "ed", "es", "s", "e"):
        if word.endswith(ending) and len(word) - len(ending) >= 3 and not word.endswith("ss"):
            word = word[: -len(ending)]
            break
    return word[:-1] if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "ls" else word


def units_said(question: str, names: Iterable[str], *, numbers: bool) -> set[str]:
    """The units behind a number that say nothing more: of money where there are numbers, others where a name has them.

    >>> units_said("over 20 euros or 5 kilometres", ["distance", "km"], numbers=True) == {"euros", "kilometres"}
    True
    """
    there = frozenset(names)
    return {
        word
        for word in _UNIT.findall(question.lower())
        if (numbers and word in _MONEY.split()) or _UNITS.get(word, frozenset()) & there
    }


def unit_names(word: str) -> frozenset[str]:
    """What a column is called that holds this unit.

    >>> "area" in unit_names("square"), unit_names("city")
    (True, frozenset())
    """
    return _UNITS.get(word, frozenset())


def is_doing(word: str) -> bool:
    """Is this a verb for how two things belong together: stayed, paid, ordered?

    >>> is_doing("stayed"), is_doing("complained")
    (True, False)
    """
    return root(word) in _DOING or word in _MADE


def is_participle(word: str) -> bool:
    """Is this, roughly, what was done: stolen, decided, sold?

    >>> is_participle("stolen"), is_participle("decided"), is_participle("profit")
    (True, True, False)
    """
    return word in _PAST or (len(word) > 4 and word.endswith(("ed", "en", "wn")))


def is_saying(word: str) -> bool:
    """Is this a verb for what somebody says or feels of a thing: liked, mentions?

    >>> is_saying("liked"), is_saying("mentions"), is_saying("borrowed")
    (True, True, False)
    """
    return root(word) in _SAYING


def meant_columns(word: str) -> frozenset[str]:
    """What a noun or verb is measured by, as columns are called, by their stems: revenue, a price or an amount."""
    return frozenset().union(*_MEANS.get(word, ()))


def meant_among(word: str, names: Collection[str]) -> frozenset[str]:
    """What a noun or verb is measured by among some names: the nearest that are there.

    >>> sorted(meant_among("revenue", {"amount", "price"})), sorted(meant_among("revenue", {"price"}))
    (['amount'], ['price'])
    """
    return next((found for tier in _MEANS.get(word, ()) if (found := tier & frozenset(names))), frozenset())


def contrary(word: str) -> str:
    """The word that this one denies: fail, pass; unverified, verified; as it is where it denies none.

    >>> contrary("failed"), contrary("unverified"), contrary("inactive"), contrary("union")
    ('pass', 'verified', 'active', 'union')
    """
    bare = re.sub(
        r"^(?:un(?=\w{4,}(?:ed|able|al|t)\b|(?:sold|paid|read|told|known)\b)|in(?=active|valid|complete|correct|visible)|non)",
        "",
        word,
    )
    return _CONTRARY.get(word, bare)


def measures(words: Iterable[str]) -> tuple[frozenset[str], frozenset[str]]:
    """The names of what adjectives measure: where the most of it is meant, and where the least.

    >>> most, least = measures(["which", "fastest"])
    >>> sorted(most), "minute" in least
    (['pace', 'speed', 'velocity'], True)
    """
    said = list(words)
    most, least = (
        frozenset(name for word in said for name in table.get(word, frozenset())) for table in (_MOST, _LEAST)
    )
    return most, least


_DOING = frozenset(map(root, _DOING_WORDS.split()))
_SAYING = frozenset(map(root, _SAYING_WORDS.split()))
