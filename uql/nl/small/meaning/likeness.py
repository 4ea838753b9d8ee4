"""Which worked examples are nearest to a question: those of the same shape first, then those that sound alike."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from uql.nl.prompts.queries import EXAMPLES, Example
from uql.nl.schema.discover import stem, words_of
from uql.nl.schema.scope import Scope
from uql.nl.small.word_forms import is_another_form, is_doing, meant_columns, measures

Near = Callable[[str, Sequence[str]], Sequence[float]]
_SHAPES = (
    re.compile(r"\b(plot|chart|graph|draw|diagram|histogram|scatter|visuali[sz]e|bar|pie)\b"),
    re.compile(r"\b(per|each|every|different)\b|\bby \w+$"),
    re.compile(r"\b(most|least|highest|lowest|first|last|(?!for|inter|near|qu|w|b|r|n|t|g|ch)\w{3,}est)\b"),
    re.compile(r"\b(how many|number of|count)\b"),
    re.compile(r"\b(total|sum|average|mean)\b"),
    re.compile(r"\b(above|below|than|exceed\w*) (the )?(average|mean|median)\b"),
    re.compile(r"\b(more|less|fewer|\w{3,}er) \w* ?than (?!the average|average|\d|two|three)"),
    re.compile(r"\b(never|without|no|not|none)\b"),
    re.compile(r"\b(percentage|percent|share|proportion|fraction)\b"),
    re.compile(r"\bhow many\b.*\bhow many\b"),
    re.compile(r"\b(two|three|four|five|\d+)\b.*\b(each|per|every)\b"),
    re.compile(r"\bor\b"),
    re.compile(r"\b(century|year|decade|month)\b"),
    re.compile(r"\b(difference|gap)\b|\bhow (much|many) (more|less|fewer)\b"),
    re.compile(r"\btimes (as|more|higher|larger)\b|\bratio\b"),
    re.compile(r"\b(average|mean|highest|lowest|largest|smallest) (number|count|total|sum)\b|\bon average\b"),
    re.compile(r"\b(average|mean)\b.*\b(its|their|the same|his|her)\b"),
    re.compile(r"\bof the\b.*\b(oldest|newest|youngest|most|highest|lowest|largest|smallest)\b"),
)
# Words of questions that name no column and no value.
_GENERAL = (
    "most least highest lowest largest smallest oldest newest youngest tallest earliest latest first last number count total sum average "
    "mean minimum maximum plot chart graph draw bar line pie scatter histogram proportion distribution per each every different many "
    "database name names find get retrieve return display create show order sort ascending descending asc desc rank high low axis year "
    "month century decade visualize kind top both date age according him her they them he she made make come depict contain include live "
    "locate base belong work use using own exist available please give given tell present compare comparison relationship correlation "
    "visual whose there same also against over between about one two three term terms want could you would like result value values "
    "using after before during having indicating times group groups compute offer any some become became who whom together item items "
    "entry entries record records row rows table tables tell say list me us never without not no none neither percentage percent share "
    "proportion fraction median above below than exceed weekday weekend quarter day week two three four five six seven eight nine ten or "
    "best worst out off still ever yet already only just too very really quite rather often usually again once twice else even though "
    "can may might must shall should will be been being was were did done doing had go goes going went gone get gets got gotten take "
    "takes took taken come comes came put let see seen saw know known happen happened seem bring brought mean means sort "
    "answer question data total overall exactly approximately roughly least anything anyone anybody something someone nothing nobody "
    "everything everyone everybody what which who whom whose when where why how your our their his its mine yours ours theirs "
    "if so such than then because until since while through during without within across per via onto into upon toward towards "
    "other others rest used under beneath beyond amongst among along behind beside inside toward despite unlike around "
    "bottom but nor few word words older newer younger earlier later popular busiest better worse distinct unique single separate "
    "individual specific min max "
    "several various recently box less fewer greater larger actually "
    "up down here now today currently please kindly hello thanks thank difference gap ratio hold contribute account own apart twice"
)
COMMON = frozenset(stem(word) for word in _GENERAL.split()) | frozenset(_GENERAL.split())


MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_DATED = re.compile(r"'?-?\d{4}-\d\d")


def date_words(scope: Scope) -> frozenset[str]:
    """The names of months and days, and their stems, where the scope has dates: they are said in numbers there."""
    dated = any(
        f.type.startswith(("DATE", "TIMESTAMP")) or any(map(_DATED.match, source.samples.get(f.name, ())))
        for source in scope.sources.values()
        for f in source.shown
    )
    timed = (
        ["hour", "hours"]
        if any(f.type.startswith("TIMESTAMP") for s in scope.sources.values() for f in s.shown)
        else []
    )
    names = [form for name in (*MONTHS, *DAYS) for form in (name.lower(), f"{name.lower()}s")] if dated else []
    return frozenset([*names, *timed, *map(stem, names)])


def features(question: str, names: str) -> tuple[bool, ...]:
    """The shape of a question over tables with these names, in words: what it asks for, and whether a word of it is no name."""
    low = question.lower()
    unknown = words_of(question) - words_of(names) - COMMON
    return (*(shape.search(low) is not None for shape in _SHAPES), bool(unknown))


def names_of(scope: Scope, *, read: bool = True) -> str:
    """The names, values in the question and comments of a scope, in words; with `read` also of columns that only a model reads."""
    parts: list[str] = []
    for name, source in scope.sources.items():
        parts += [name, source.description]
        parts += [f"{f.name} {f.description}" for f in source.shown if read or not f.is_unstructured]
        parts += [f"{value} {column}" for column, value in source.matches]
    return " ".join(parts)


def nearest(question: str, scope: Scope, near: Near | None, *, most: int = 3) -> list[Example]:
    """The nearest of the examples that not every prompt has, the nearest last."""
    reads = any(f.is_unstructured for source in scope.sources.values() for f in source.shown)
    mine = (*features(question, names_of(scope)), reads)
    sounds = list(near(question, [e.question for e in EXAMPLES])) if near is not None else [0.0] * len(EXAMPLES)
    scores = []
    for example, sound in zip(EXAMPLES, sounds, strict=True):
        shape = (*features(example.question, example.tables), "ask" in example.query)
        wanted = (*mine[:-1], mine[-1] and mine[-2])
        scores.append(sum(a == b for a, b in zip(shape, wanted, strict=True)) + sound)
    order = sorted((i for i, e in enumerate(EXAMPLES) if not e.always), key=lambda i: -scores[i])[:most]
    return [EXAMPLES[i] for i in reversed(order)]


def left_out(question: str, bodies: Sequence[str], scope: Scope) -> list[str]:
    """The words of a question that a plan has nothing of: no name, no value, no text that a model reads.

    A name stands for its comment too, and a table for its own name.
    """
    text = " ".join(bodies)
    held = words_of(text)
    for name, source in scope.sources.items():
        if name.lower() in text.lower():
            held |= words_of(f"{name} {source.description}")
        for f in source.shown:
            if f.name.lower() in text.lower():
                held |= words_of(f"{f.name} {f.description}")
        for column, value in source.matches:
            if value.lower() in text.lower():
                held |= words_of(f"{value} {column}")
    said = {w.lower() for w in re.findall(r"[A-Za-z]+", question)}
    values = [
        value for source in scope.sources.values() for _, value in source.matches if value.lower() in text.lower()
    ]
    meant = {
        form
        for word in said
        if is_doing(word)
        or frozenset().union(meant_columns(word), *measures([word])) & held
        or any(is_another_form(word, value) for value in values)
        for form in (word, stem(word))
    }
    wanted = words_of(question) - COMMON - date_words(scope) - meant
    return sorted(word for word in wanted if not any(_near(word, other) for other in held))


def _near(word: str, other: str) -> bool:
    """One word but for its ending: artist and artistic, landlock and landlocked."""
    short = min(len(word), len(other))
    return word == other or (short > 3 and (word[:short] == other[:short] or (word[:5] == other[:5] and short > 5)))
