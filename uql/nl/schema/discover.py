"""Discovery: which tables and columns of the database a question may need, what they hold, and how they are joined.

A text or image collection is a table with a text or image column. Tables and columns are ranked by the similarity of the question
to their names, comments and sampled values; values that stand in the question are shown first; foreign keys are found from names and
values. Source: CAESURA (Urban and Binnig, 2023), discovery phase.
"""

from __future__ import annotations

import logging
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import duckdb
import numpy as np

from uql.base.errors import DataError, QuestionError
from uql.base.printable import printable
from uql.base.schema import Field, Modality, Table
from uql.base.sql_text import first_line
from uql.compiler.sql import literal, quote
from uql.nl.ask.context import AskContext
from uql.nl.prompts import planner as words
from uql.nl.schema.foreign_keys import links_between
from uql.nl.schema.name_words import singular, spaced, stem
from uql.nl.schema.scope import Link, Scope, Source
from uql.nl.schema.semantic_model import UNKNOWN, SemanticModel
from uql.operators.texts import one_line, quoted, short

if TYPE_CHECKING:
    from uql.features.embedder import Embedder
    from uql.sources.catalog import Catalog

log = logging.getLogger("uql")
LOOK_SECONDS = 30.0  # that DuckDB has for one table, or for what a view does
SAMPLED = 1_000  # rows of a table that are looked at
SEARCHED = 2_000_000  # rows up to which all values of a column are searched for the words of the question
LONG = 8  # letters of a value that is named in another form too
READ_CHARS = 200  # of a value
VALUES = 3  # examples of a column
EXAMPLES = 2  # rows of a table
NAMED = 3  # values of a column that stand in the question
LONGEST_VALUE = 40  # characters of an example
FEW = 60  # values of a column that are all listed
PART_CHARS = 30  # of one of several values in a text
MAX_TABLES = 18
MOST_JOINS = 12  # that are written one by one
HEADLINE_WORDS = 6  # on average, from which on capitals make no name of them
PROSE_ROWS = 100  # of a table, whose words tell whether a column has sentences
CHARS_A_TOKEN = 3.2  # of a schema with names and numbers; measured low, so that a prompt is never longer than said
_AROUND_WORDS = ".,;:!?…\"'()[]"
_IN_WORDS = re.compile("['’，。、！？；：-]")
_WORD = re.compile(r"[^\W_]+")
_LISTED = re.compile(r"\s*[,;|]\s*")
_UNSAFE = re.compile(r"\W+")
_STOP_WORDS = (
    "a an and are as at by do does each for from has have how in is it its many me of "
    "on or that the their to was were what when where which who with show list give all any much more most than"
)
STOP = frozenset(_STOP_WORDS.split())


async def relevant(ctx: AskContext, scope: Scope, *, tokens: int = 3_500) -> Scope:
    """The scope with the columns that the model finds relevant; as it was where it says none.

    Args:
        scope: its columns are the choice.
        tokens: that the schema may take in the prompt.
    """
    names = [f"{n}.{f.name}" for n, s in scope.sources.items() for f in s.visible_fields]
    wording = words.columns(ctx.question, schema_text(scope, tokens=tokens), names)
    reply = await ctx.say_or(wording, {"columns": ()}, step="columns")
    chosen = {tuple(name.rsplit(".", 1)) for name in reply["columns"]}
    return replace(scope, relevant=frozenset((t, c) for t, c in chosen))


def discover(
    question: str,
    catalog: Catalog,
    embedder: Embedder | None,
    *,
    tables: Sequence[str] | None = None,
    most: int = MAX_TABLES,
    model: SemanticModel = UNKNOWN,
) -> Scope:
    """The tables that a question may need, the nearest first. Asks no model.

    Args:
        catalog: of the user's database.
        embedder: of names, comments and values; None: words in common alone.
        tables: names to choose from; None: all tables and views that a bare name reaches.
        most: tables.
        model: what a person has written of the database.
    Raises: QuestionError (UQL633) if the database has no tables; UnknownTableError for an unknown name; DataError (UQL503) where a
        table of `tables` cannot be read. Others are left out then, and `left_out` of the scope says so.
    """
    with catalog.listed_once(), catalog.hiding(model.private):
        names = list(tables) if tables is not None else catalog.names()
        if not names:
            raise QuestionError(
                "there are no tables to ask about",
                code="UQL633",
                help="open a database, or CREATE TABLE … first; `uql ask --table NAME=FILE` takes a file or a folder",
            )
        sources, left_out = _readable(names, catalog, question, model, skips=tables is None)
        scores = _scores(question, sources, embedder)
        by_name: dict[str, Source] = {}
        for i in np.argsort(-scores, kind="stable")[:most]:
            source = sources[i]
            name, n = source.name, 2
            while name.lower() in map(str.lower, by_name):
                name, n = f"{source.name}_{n}", n + 1
            by_name[name] = replace(source, name=name)
        links = model.links(by_name)
        pairs = {frozenset((x.left.table, x.right.table)) for x in links}
        found = links_between(list(by_name.values()), catalog)
        guessed = [x for x in found if frozenset((x.left.table, x.right.table)) not in pairs]
        return Scope(by_name, (*links, *guessed), left_out=left_out)


def shortlist(scope: Scope, *, tables: int = 6) -> Scope:
    """The nearest tables with those that connect them, where there are many.

    Args:
        scope: its tables in order, the nearest first.
        tables: kept, beside those that connect them.
    """
    if len(scope.sources) <= tables:
        return scope
    names = list(scope.sources)[:tables]
    for link in scope.links:  # a table between two that are kept
        for inner, outer in ((link.left.table, link.right.table), (link.right.table, link.left.table)):
            if inner in names or outer not in names:
                continue
            if (
                sum(
                    inner in (x.left.table, x.right.table) and bool({x.left.table, x.right.table} & set(names))
                    for x in scope.links
                )
                > 1
            ):
                names.append(inner)
    return scope.only(names)


# ----------------------------------------------------------------------------------------------------------- the prompt
def schema_text(scope: Scope, *, tokens: int = 4_000) -> str:
    """The scope as a prompt shows it, within so many tokens.

    Tables far from the question lose their examples first, then the columns that nothing points to; the nearest keep theirs as long as
    there is room.
    """
    levels = [2] * len(scope.sources)
    names = list(scope.sources)
    while True:
        text = _written(scope, dict(zip(names, levels, strict=True)))
        if len(text) <= tokens * CHARS_A_TOKEN or not any(levels):
            return text if len(text) <= tokens * CHARS_A_TOKEN else text[: int(tokens * CHARS_A_TOKEN)]
        worst = max(levels)
        last = max(i for i, level in enumerate(levels) if level == worst)
        levels[last] -= 1


def tokens_of(text: str) -> int:
    """About how many tokens a text has, rather too many."""
    return int(len(text) / CHARS_A_TOKEN) + 1


def _written(scope: Scope, levels: Mapping[str, int]) -> str:
    """The tables in order of their names, so that questions to one database begin alike; what the question names comes last."""
    lines: list[str] = []
    linked = {(x.table, x.name) for link in scope.links for x in (link.left, link.right)}
    for name, source in sorted(scope.sources.items()):
        level = levels[name]
        caption = f": {quoted(source.description)}" if source.description else ""
        lines.append(f"{name} ({source.row_count} rows){caption}")
        fields = [
            f for f in source.visible_fields if level or (name, f.name) in linked or (name, f.name) in scope.relevant
        ]
        if level == 2:
            for f in fields:
                lines.append("  " + _column(source, f, (name, f.name) in scope.relevant))
        elif fields:
            lines.append("  " + ", ".join(f"{one_line(f.name)} {_type(f)}" for f in fields))
    if scope.links:
        lines.append("Joins: " + "; ".join(_joins(scope.links)))
    matches = [f"{n}.{c} {_literal(v)}" for n, s in sorted(scope.sources.items()) for c, v in s.matches]
    if matches:
        lines.append("Values in the question: " + ", ".join(matches[:12]))
    return "\n".join(lines)


def _joins(links: Sequence[Link]) -> list[str]:
    """Each join; where there are many, those by one name together: "subject_id in admissions, patients, stays".

    >>> from uql.nl.schema.scope import Column
    >>> a, b, c = (Column(table, "id") for table in "abc")
    >>> _joins([Link(a, b)]), _joins([Link(a, b), Link(b, c)] * MOST_JOINS)
    (['a.id = b.id'], ['id in a, b, c'])
    """
    if len(links) <= MOST_JOINS:
        return [str(link) for link in sorted(links, key=str)]
    alike: dict[str, list[set[str]]] = {}  # column name → tables that hang together by it
    pairs: list[str] = []
    for link in sorted(links, key=str):
        if link.left.name.lower() != link.right.name.lower():
            pairs.append(str(link))
            continue
        groups = alike.setdefault(link.left.name, [])
        mine = {link.left.table, link.right.table}
        met = [group for group in groups if group & mine]
        alike[link.left.name] = [*(group for group in groups if not group & mine), mine.union(*met)]
    together = [f"{name} in {', '.join(sorted(group))}" for name, groups in sorted(alike.items()) for group in groups]
    return [*together, *pairs]


def _column(source: Source, f: Field, relevant: bool) -> str:
    parts = [f"{one_line(f.name)} {_type(f)}"]
    if f.description:
        parts.append(quoted(f.description))
    examples = source.samples.get(f.name, ())
    if examples:
        parts.append("as " + ", ".join(examples))
    if relevant:
        parts.append("(relevant)")
    return " ".join(parts)


def _type(f: Field) -> str:
    match f.modality:
        case Modality.TEXT:
            return "TEXT (read by the model)"
        case Modality.IMAGE:
            return "IMAGE (seen by the model)"
        case Modality.AUDIO:
            return "AUDIO (heard by the model)"
        case Modality.VIDEO:
            return "VIDEO (seen frame by frame: FROM t, unnest(frames(t.column)) AS f)"
        case Modality.DOCUMENT:
            return "DOCUMENT (read by the model)"
    return one_line(f.type)


# ------------------------------------------------------------------------------------------------------------ the tables
def _readable(
    names: Sequence[str], catalog: Catalog, question: str, model: SemanticModel, *, skips: bool
) -> tuple[list[Source], tuple[str, ...]]:
    """The tables of these names, and a remark on each that is left out.

    Raises: DataError (UQL503) where one cannot be read, or none of them all.

    Args:
        model: what a person has written of the database.
        skips: is one that cannot be read left out? Anybody may have made a view without an end, or one of a table that is gone.
    """
    sources: list[Source] = []
    left_out: list[str] = []
    for name in names:
        try:
            with catalog.within(LOOK_SECONDS):
                sources.append(_source(model.described(catalog.named(name)), catalog, question))
        except (DataError, duckdb.Error) as error:
            failure = (
                error if isinstance(error, DataError) else DataError(f"{name}: {first_line(error)}", code="UQL503")
            )
            if not skips or (name == names[-1] and not sources):
                raise failure from error
            left_out.append(f"the table {printable(name)} is left out: {failure.message}")
            log.warning("%s", left_out[-1])
    return sources, tuple(left_out)


def _source(table: Table, catalog: Catalog, question: str) -> Source:
    plain = _UNSAFE.sub("_", table.name).strip("_") or "t"
    source = Source(plain, table.name, table.fields, table.row_count or 0, table.description)
    return _sampled(source, table, catalog, question)


def _sampled(source: Source, table: Table, catalog: Catalog, question: str) -> Source:
    """The source with frequent values of the columns that may be shown, and the values that stand in the question."""
    samples: dict[str, tuple[str, ...]] = {}
    matches: list[tuple[str, str]] = []
    question_words: dict[str, tuple[str, ...]] = {}
    telling = [w for w in _WORD.findall(question) if len(w) > 2 and w.lower() not in STOP]
    columns = [f for f in table.fields if not f.private and f.modality in (Modality.STRUCTURED, Modality.TEXT)]
    if not columns or not table.row_count:
        return source
    select_list = ", ".join(f"system.main.left(CAST({quote(f.name)} AS VARCHAR), {READ_CHARS})" for f in columns)
    rows = catalog.cursor.execute(f"SELECT {select_list} FROM {table.sql} LIMIT {SAMPLED}").fetchall()
    columns = [_plain_or_prose(f, [row[i] for row in rows[:PROSE_ROWS]]) for i, f in enumerate(columns)]
    looked_at = {f.name: f for f in columns}
    source = replace(source, fields=tuple(looked_at.get(f.name, f) for f in source.fields))
    for i, f in enumerate(columns):
        counts = Counter(str(row[i]) for row in rows if row[i] is not None)
        all_seen = len(rows) < SAMPLED
        if not all_seen and table.row_count <= SEARCHED and f.type == "VARCHAR" and f.modality is Modality.STRUCTURED:
            counts, all_seen = _frequent(f, table, catalog)  # the first rows of an ordered table hold some values alone
        values = sorted(counts, key=lambda v: (-counts[v], v))
        chosen = values[: 1 if f.modality is Modality.TEXT else VALUES]
        samples[f.name] = tuple(_literal(v) if f.type == "VARCHAR" else _cut(v) for v in chosen)
        if f.type == "VARCHAR" and f.modality is Modality.STRUCTURED:
            listed = _listed(values)
            values = listed or values
            mentions = [v for v in values if _named(v, question)]
            if len(rows) == SAMPLED and table.row_count <= SEARCHED and not listed:
                mentions += [
                    v for v in _whole(f, table, catalog, question) if v not in mentions and _named(v, question)
                ]
            others = _others(question, mentions)
            few = bool(listed) or (len(values) <= FEW and (all_seen or 4 * len(values) <= sum(counts.values())))
            # of many values those of one long word, in another form: impressionist, Impressionism
            in_form = values if few else [v for v in values if len(v) >= LONG and v.isalpha()]
            mentions += [v for v in in_form if v not in mentions and _is_said(v.lower(), others)]
            matches += [(f.name, _cut(v)) for v in mentions][:NAMED]
            if len(rows) < SAMPLED:
                inside = {w for v in values for w in _WORD.findall(v.lower())}
                forms = (w if w.lower() in inside else singular(w.lower()) for w in telling)
                question_words[f.name] = tuple(w for w in forms if w.lower() in inside)
            elif table.row_count <= SEARCHED:
                question_words[f.name] = _inside(f, table, catalog, telling, whole=True)
        elif f.type == "VARCHAR" and table.row_count <= SEARCHED:
            question_words[f.name] = _inside(f, table, catalog, list(dict.fromkeys(map(stem, map(str.lower, telling)))))
        elif f.type == "VARCHAR[]":
            items = sorted({item.strip() for v in values for item in v.strip("[]").split(",")})
            matches += [(f.name, _cut(v)) for v in items if _named(v, question)][:NAMED]
    names = [f.name for f in columns]
    return replace(
        source,
        samples=samples,
        matches=tuple(matches),
        words=question_words,
        rows=tuple(dict(zip(names, row, strict=True)) for row in rows[:EXAMPLES]),
    )


def _plain_or_prose(field: Field, values: Sequence[str | None]) -> Field:
    """The column; a plain one where a text has no sentences to be read and its comment does not call it a text."""
    told = field.modality is not Modality.TEXT or field.description.lower().startswith("text")
    return field if told or is_prose(values) else replace(field, modality=Modality.STRUCTURED)


def is_prose(values: Sequence[str | None]) -> bool:
    """Are at least half of the words plain ones? Those of names, addresses, links and codes are not.

    In a headline they begin with capitals, as in a name, which has fewer.

    >>> is_prose(["It was a dull film", None]), is_prose(["Canon EF 70-300mm f/4", "https://shop.test/lens/7"])
    (True, False)
    >>> is_prose(["Oil Prices Soar to All-Time Record"]), is_prose(["12 Main Street, Springfield, IL 62704"])
    (True, False)
    """
    texts = [value for value in values if value]
    words = [word.strip(_AROUND_WORDS) for value in texts for word in value.split()]
    letters = [word for word in words if _IN_WORDS.sub("", word).isalpha()]
    if len(letters) >= HEADLINE_WORDS * len(texts):
        return 2 * len(letters) >= len(words)
    return 2 * sum(not word.istitle() for word in letters) >= len(words)


def _frequent(field: Field, table: Table, catalog: Catalog) -> tuple[Counter[str], bool]:
    """The most frequent values of a column with how often they stand there, and whether they are all."""
    column = f"system.main.left({quote(field.name)}, {READ_CHARS})"
    sql = f"SELECT {column}, system.main.count(*) FROM {table.sql} WHERE {column} IS NOT NULL GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT {SAMPLED}"
    rows = catalog.cursor.execute(sql).fetchall()
    return Counter(dict(rows)), len(rows) < SAMPLED


def _whole(field: Field, table: Table, catalog: Catalog, question: str) -> list[str]:
    """Values of a column, beyond the rows sampled too, that stand whole in the question."""
    column = quote(field.name)
    sql = f"SELECT DISTINCT {column} FROM {table.sql} WHERE system.main.contains(?, system.main.lower({column})) ORDER BY 1 LIMIT {FEW}"
    return [row[0] for row in catalog.cursor.execute(sql, [question.lower()]).fetchall()]


def _inside(
    field: Field, table: Table, catalog: Catalog, words: Sequence[str], *, whole: bool = False
) -> tuple[str, ...]:
    """Those of the words that stand in some value of a column, whatever rows were sampled; `whole`: not within a longer word."""
    if not words:
        return ()
    column = f"system.main.lower({quote(field.name)})"
    holds = f"system.main.contains({column}, ?)" + (f" AND system.main.regexp_matches({column}, ?)" if whole else "")
    checks = ", ".join(f"coalesce(system.main.bool_or({holds}), false)" for _ in words)
    parameters = [part for w in map(str.lower, words) for part in ((w, rf"\b{w}\b") if whole else (w,))]
    row = catalog.cursor.execute(f"SELECT {checks} FROM {table.sql}", parameters).fetchone()
    return tuple(w for w, is_there in zip(words, row or (), strict=False) if is_there)


def _is_said(value: str, words: Sequence[str]) -> bool:
    """Does each word of a value stand in the question in some form?

    >>> _is_said("religious art", ["oldest", "religious", "artwork"]), _is_said("impressionism", ["impressionist"])
    (True, True)
    """
    parts = _WORD.findall(value)
    return bool(parts) and max(map(len, parts)) > 4 and all(any(_alike(part, word) for word in words) for part in parts)


def _others(question: str, values: Sequence[str]) -> list[str]:
    """The words of a question that stand in none of the values that it names.

    >>> _others("what people like about Virgin America", ["Virgin America"])
    ['what', 'people', 'like', 'about']
    """
    low = question.lower()
    for value in values:
        low = low.replace(value.lower(), " ")
    return _WORD.findall(low)


def _alike(part: str, word: str) -> bool:
    """One word, but for its ending."""
    same = next((i for i, (a, b) in enumerate(zip(part, word, strict=False)) if a != b), min(len(part), len(word)))
    return (same == len(part) and same > 2) or same >= max(5, 0.75 * len(part))


def _listed(values: Sequence[str]) -> list[str]:
    """The parts of values that are lists in a text, `Action, Comedy`, the most frequent first; none where they are not lists.

    They are where parts come again in other values, so that there are fewer parts than values.

    >>> _listed(["Action, Comedy", "Drama", "Comedy, Drama", "Drama, Action", "Action, Drama"])
    ['Drama', 'Action', 'Comedy']
    >>> _listed(["Holm, Ada", "Reed, Tom", "Holt, Mia", "Reed, Ann"]), _listed(["red", "blue"])
    ([], [])
    """
    parts = [[part for part in _LISTED.split(value) if part] for value in values]
    several = sum(len(each) > 1 for each in parts)
    counts = Counter(part for each in parts for part in each)
    again = sum(n for n in counts.values() if n > 1)
    is_list = several >= max(3, 0.2 * len(values)) and len(counts) < len(values) and again >= 0.8 * counts.total()
    if not is_list or len(counts) > FEW or max(map(len, counts)) > PART_CHARS:
        return []
    return [part for part, _ in counts.most_common()]


def _named(value: str, question: str) -> bool:
    """Does the question name a value? A short one as it is written, and no word that every question has.

    >>> _named("AND", "Sun and rain"), _named("EUR", "the euro (EUR)"), _named("Leeds", "letters from leeds")
    (False, True, True)
    """
    if len(value) < 2 or value.lower() in STOP:
        return False
    return _stands_in(value, question) if len(value) < 4 else _stands_in(value.lower(), question.lower())


def _stands_in(value: str, question: str) -> bool:
    at = question.find(value)
    if at < 0:
        return False
    before, after = question[at - 1 : at], question[at + len(value) :].removeprefix("s")[:1]
    return not before.isalnum() and not after.isalnum()


def _literal(value: str) -> str:
    """A value as a string of SQL, shortened; nothing in it ends the string."""
    return literal(_cut(value))


def _cut(value: str) -> str:
    line = short(value)
    return line if len(line) <= LONGEST_VALUE else line[: LONGEST_VALUE - 1] + "…"


def _scores(
    question: str, sources: Sequence[Source], embedder: Embedder | None
) -> np.ndarray[Any, np.dtype[np.float64]]:
    """(n,) similarity of each table: that of its text, or of its nearest column, with words and values in common."""
    texts, owner = [], []
    for i, source in enumerate(sources):
        texts.append(
            f"{spaced(source.name)} {source.description} {' '.join(spaced(f.name) for f in source.visible_fields)}"
        )
        owner.append(i)
        for f in source.visible_fields:
            values = " ".join(source.samples.get(f.name, ()))
            texts.append(f"{spaced(source.name)} {spaced(f.name)} {f.description} {values}")
            owner.append(i)
    question_words = words_of(question)
    common = np.array([len(question_words & words_of(text)) / (1 + len(question_words)) for text in texts])
    near = np.zeros(len(texts))
    if embedder is not None:
        vectors = embedder.embed([question, *texts])
        near = (vectors[1:] @ vectors[0]).astype(np.float64)
    score = np.zeros(len(sources))
    for i in range(len(sources)):
        mine = np.flatnonzero(np.array(owner) == i)
        score[i] = near[mine].max() + common[mine].max() + 0.5 * near[mine[0]] + common[mine].sum() / 4
        score[i] += 0.3 * bool(sources[i].matches)  # a value of it is named
    return score


def words_of(text: str) -> set[str]:
    """The stems of a text's words, roughly: players and player are one."""
    return {stem(w) for w in (word.lower() for word in _WORD.findall(spaced(text))) if w not in STOP and len(w) > 1}
