"""What a question says of its candidates without a model: evidence makes a candidate count half or is told in a note; it removes none.

Words that no plain column holds speak for reading a text; a value that the question names should be in the query; the direction of
"oldest" is said to the model; rows that tie with the last one shown are told.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import sqlglot
from sqlglot import exp

from uql.base.schema import Modality
from uql.nl.schema.discover import words_of
from uql.nl.schema.name_words import spaced
from uql.nl.schema.scope import Scope, Source

Near = Callable[[str, Sequence[str]], Sequence[float]]
NEAR = 0.3  # similarity from which a word is one for a name
# Words of asking, which name no column and no value; stems, as `words_of` makes them.
_ASKING = """
many much most least more less fewer than number count total sum average mean median minimum maximum highest lowest largest
smallest oldest newest youngest earliest latest first last longest shortest best worst top bottom plot chart graph draw bar
line pie scatter histogram percentage percent share proportion ratio difference distribution per each every all any both only
also not no none never without between above below over under before after during since until at list show give find get tell
name names return display sort order ascending descending database table data question which who whom whose what when where
why how there one two three four five six seven eight nine ten have has had been being was were did done make made some same
different distinct unique kind type year month day week century decade date age time according text profile report picture
image photo shown depict contain become can could would should please year's long old new high low exist belong term use
combine include yet live recently zero item fewest greatest nobody somebody anybody everybody them they their tie use used
monday tuesday wednesday thursday friday saturday sunday january february march april june july august september october
november december
"""
# The closed classes of English: prepositions, conjunctions, pronouns, adverbs of degree and place. They name nothing either.
_FUNCTION_WORDS = """
aboard about across against along alongside although amid among amongst another anyone anything anywhere apart around atop
because behind beneath beside besides beyond but concerning considering despite down either enough everyone everything
everywhere except excluding few following hers herself himself inside instead into itself just like minus myself near neither
nor nothing nowhere off onto opposite ours out outside past plus rather regarding respectively round several someone something
somewhere such themselves though through throughout till together toward towards underneath unless unlike unto upon various
versus very via whereas whether while within yours yourself already almost always approximately exactly here nearly now often
quite sometimes still then today tomorrow too twice usually yesterday
"""
# values of words; codes and dates are said otherwise
_COMPARED = re.compile(r"(?:=|<>) '((?:[^']|'')*[A-Za-z]{3}(?:[^']|'')*)'")
_CLOCK = re.compile(r"'(\d{4}-\d\d-\d\d \d\d:(\d\d)(?::\d\d)?)'")
_EARLY = re.compile(r"\b(oldest|earliest|eldest)\b", re.IGNORECASE)
_LATE = re.compile(r"\b(youngest|newest|latest|most recent)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Evidence:
    """What speaks for and against candidates.

    Attributes:
        unheard: words of the question that are near to no name, comment or value of a plain column, in lower case.
        foreign: no word of the question is near to any of these.
        values: that the question names, in lower case.
        words: stems of all words of the question.
    """

    unheard: tuple[str, ...] = ()
    foreign: bool = False
    values: tuple[str, ...] = ()
    words: frozenset[str] = frozenset()

    def of_the_kind(self, *, reads: bool, readable: bool) -> list[str]:
        """What speaks against a plan because it reads texts or images, or because it does not.

        Args:
            reads: the plan does.
            readable: the scope has texts or images.
        """
        if reads:
            return [] if self.unheard else ["plain columns hold all that the question names"]
        strange = self.unheard and (readable or self.foreign)
        return [f"no plain column is about {', '.join(self.unheard)}"] if strange else []

    def of_the_values(self, text: str) -> list[str]:
        """The values that a statement leaves out, and those that it makes up."""
        low = text.lower().replace("''", "'")
        missing = [value for value in self.values if value not in low]
        reasons = [f"the question names {', '.join(missing)}"] if missing else []
        compared = [value.replace("''", "'") for value in _COMPARED.findall(text)]
        strange = [value for value in compared if (own := words_of(value)) and self.words and not own & self.words]
        strange += [time for time, minute in _CLOCK.findall(text) if self.words and minute not in self.words | {"00"}]
        return reasons + ([f"the question does not name {', '.join(strange)}"] if strange else [])

    def of_the_keys(self, sql: str, scope: Scope) -> list[str]:
        """The columns of a statement of SQL that show the key of a thing which has a name, where the question asks for no key."""
        select = sqlglot.parse_one(sql, read="duckdb").find(exp.Select)
        tables = (
            {table.alias_or_name.lower(): table.name.lower() for table in select.find_all(exp.Table)} if select else {}
        )
        reasons = []
        for item in select.expressions if select is not None else ():
            column = item.unalias()
            if not isinstance(column, exp.Column):
                continue
            own = {tables.get(column.table.lower(), "")} if column.table else {*tables.values()}
            for link in scope.links:
                side = next(
                    (
                        x
                        for x in (link.right, link.left)
                        if x.table.lower() in own and x.name.lower() == column.name.lower()
                    ),
                    None,
                )
                name = name_of(scope.sources[link.right.table]) if side is not None else None
                if (
                    name is not None
                    and name != column.name
                    and not words_of(column.name) - words_of(link.right.table) & self.words
                ):
                    reasons.append(f"it shows {column.sql()} in place of {link.right.table}.{name}")
                    break
        return reasons


def name_of(source: Source) -> str | None:
    """The one column of a table that holds the name or the title of its things; None: there is none, or several."""
    names = [f.name for f in source.visible_fields if f.type == "VARCHAR" and words_of(f.name) & {"name", "title"}]
    return names[0] if len(names) == 1 else None


def gathered(question: str, scope: Scope, near: Near | None) -> Evidence:
    """The evidence of a question.

    Args:
        near: similarities of a word and others; None: by equal stems alone.
    """
    mentions = [value.lower() for source in scope.sources.values() for _, value in source.matches]
    values = [value for value in dict.fromkeys(mentions) if len(value) > 2 and "…" not in value]
    inner = [v for v in values if any(v != other and v in other for other in values)]
    words = _telling(question)
    strange = unheard(words, scope, near)
    foreign = len(strange) == len(words) and not values
    question_words = (
        words_of(question)
        | {w.lower() for w in re.findall(r"\w+", question)}
        | {w for v in values for w in words_of(v)}
    )
    return Evidence(tuple(strange), foreign, tuple(v for v in values if v not in inner), frozenset(question_words))


def _telling(question: str) -> list[str]:
    """The words of a question without question words, in lower case."""
    asking = words_of(_ASKING) | {*_ASKING.split()}
    words = dict.fromkeys(word.lower() for word in re.findall(r"[A-Za-z]{3,}", question))
    telling = (word for word in words if word not in asking | {*_FUNCTION_WORDS.split()})
    return [word for word in telling if (stems := words_of(word)) and not stems & asking]


def unheard(words: Sequence[str], scope: Scope, near: Near | None) -> list[str]:
    """Those of some words that are near to no table, plain column, comment or value.

    Args:
        words: of the question.
        near: cosine of a word and names; None: only equal words and stems are near.
    """
    names: set[str] = set()
    heard: set[str] = set()
    for name, source in scope.sources.items():
        fields = [f for f in source.visible_fields if f.modality is Modality.STRUCTURED]
        for text in (name, *(f.name for f in fields)):
            names |= {word.lower() for word in re.findall(r"[A-Za-z]{3,}", spaced(text))}
        heard |= words_of(" ".join([source.description, *(f.description for f in fields)]))
        heard |= words_of(" ".join(value for _, value in source.matches))
        heard |= {stem for f in fields for word in source.words.get(f.name, ()) for stem in words_of(word)}
    heard |= words_of(" ".join(names))

    def is_near(word: str) -> bool:
        if words_of(word) & heard or any(_same_start(word, name) for name in names):
            return True
        return near is not None and bool(names) and max(near(word, sorted(names))) >= NEAR

    return [word for word in words if not is_near(word)]


def _same_start(word: str, name: str) -> bool:
    """One word but for its ending: landlock and landlocked, artist and artistic."""
    short = min(len(word), len(name))
    return short > 4 and word[: short - 1] == name[: short - 1]


def hinted(question: str, scope: Scope) -> str:
    """The question with what oldest and youngest mean: the least and greatest date, or age where the tables have one."""
    aged = any("age" in re.split(r"[_\W]", f.name.lower()) for s in scope.sources.values() for f in s.visible_fields)
    early, late = ("highest age", "lowest age") if aged else ("earliest date", "latest date")
    return _LATE.sub(rf"\1 ({late})", _EARLY.sub(rf"\1 ({early})", question))


def tie_check(sql: str) -> tuple[str, int] | None:
    """A statement whose rows tell whether others tie with the last that this one shows, and its LIMIT; None where it has none to check.

    >>> tie_check("SELECT name FROM t ORDER BY height DESC LIMIT 1")
    ('SELECT height AS place FROM t ORDER BY height DESC LIMIT 2', 1)
    >>> tie_check("SELECT name FROM t") is None, tie_check("SELECT count(*) FROM t LIMIT 5") is None
    (True, True)
    """
    tree = sqlglot.parse_one(sql, read="duckdb")
    limit, order = tree.args.get("limit"), tree.args.get("order")
    if not isinstance(tree, exp.Select) or limit is None or order is None or tree.args.get("distinct") is not None:
        return None
    most = limit.expression
    if not isinstance(most, exp.Literal) or most.is_string or len(order.expressions) != 1:
        return None
    by = order.expressions[0].this
    aliases = {item.alias.lower(): item.this for item in tree.expressions if isinstance(item, exp.Alias)}
    if isinstance(by, exp.Column) and not by.table:
        by = aliases.get(by.name.lower(), by)
    if isinstance(by, exp.Literal):  # ORDER BY 2
        return None
    check = tree.copy()
    check.set("expressions", [exp.alias_(by.copy(), "place")])
    check.args["order"].expressions[0].set("this", by.copy())
    n = int(most.this)
    return check.limit(n + 1).sql(dialect="duckdb"), n
