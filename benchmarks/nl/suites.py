"""The suites of questions: what each asks, the tables it is asked of, who reads their texts and images, and how an answer is judged."""

from __future__ import annotations

import itertools
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import uql
from uql.base.names import free_names
from uql.benchmarks.nl import ehrxqa, metrics, plans, worlds
from uql.benchmarks.nl.reader import ABOUT, Reader
from uql.benchmarks.nl.references import Reference, equal, key_of, references, within_labels
from uql.nl.ask.answer_metrics import contains, coverage, hit, token_f1, tokens

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

    from uql.api.connection import Connection
    from uql.llm.providers.base import Provider
    from uql.nl.ask.answer import Answer
    from uql.nl.ask.outputs import Output

    Model: TypeAlias = str | Provider | None  # that reads where a suite has no reader

AROUND = 16  # words of a sentence that gives a value


@dataclass(frozen=True, slots=True)
class Asked:
    """One question of a suite.

    Attributes:
        id, words: as the suite has them.
        modalities: that it needs.
        output: value, table, plot …
        reference: its answer; `kind` says in which form.
        place: of the tables it is asked of, for `Suite.connection`.
        needed: tables that a right plan reads, where that is known.
        workflow: sequential or parallel, where M²EX says so.
    """

    id: str
    words: str
    modalities: tuple[str, ...]
    output: str
    reference: Any
    kind: str
    place: str = ""
    needed: tuple[str, ...] = ()
    workflow: str = ""


@dataclass(frozen=True, slots=True)
class Score:
    """The measures of one answer, each 0 to 1."""

    right: float = 0.0
    em: float = 0.0
    f1: float = 0.0
    hit: float = 0.0
    coverage: float = 0.0
    chart: float | None = None  # type of the chart, where one is asked for
    series: float | None = None


@dataclass(frozen=True, slots=True)
class Suite:
    """A suite.

    Attributes:
        name, about: for lists.
        questions: of the data folder.
        connection: (place, data folder, work folder, model) → a connection with the tables; the model reads texts and images where the
            suite has no reader of its own.
        judge: (answer, question) → its measures.
        words: the reference of a question in words; "" where it has none.
        reader: who reads: "labels" or "model".
        absent: why nothing can be asked of it, only routed; "" where it can.
    """

    name: str
    about: str
    questions: Callable[[Path], list[Asked]]
    connection: Callable[[str, Path, Path, Model], Connection]
    judge: Callable[[Answer, Asked], Score]
    words: Callable[[Asked], str] = field(default=lambda asked: reference_words(asked))
    reader: str = "model"
    absent: str = ""
    metrics: tuple[str, ...] = field(default=("right", "em", "f1", "hit", "coverage"))


# ------------------------------------------------------------------------------------ rotowire, countries_flags, artwork
def _read_once(questions: Callable[[Path], list[Asked]]) -> Callable[[Path], list[Asked]]:
    """The same questions, read once in a process: their plans are parsed, and SQL over labels gives their references."""
    read = cache(lambda shared: tuple(questions(shared)))
    return lambda shared: list(read(shared))


def _known(name: str) -> Callable[[Path], list[Asked]]:
    def questions(shared: Path) -> list[Asked]:
        known = references(shared, name)
        judged = within_labels(shared, name, known)
        needed = {f.id: tuple(sorted(plans.base_tables(f))) for f in plans.read(name)}
        found = []
        for r in known:
            if r.id not in needed or judged[r.id][1] == "no label":
                continue
            found.append(
                Asked(
                    r.id,
                    " ".join(r.question.split()),
                    r.modalities,
                    r.output,
                    judged[r.id][0],
                    str(r.kind),
                    worlds.place_of(name, r.id),
                    needed[r.id],
                    r.workflow,
                )
            )
        return found

    return _read_once(questions)


def _with_reader(name: str) -> Callable[[str, Path, Path, Model], Connection]:
    def connection(place: str, shared: Path, work: Path, model: Model) -> Connection:
        made = worlds.world(name, place, shared, work)
        reader = Reader(made.oracle, ABOUT[name])
        con = uql.connect(model=reader, ledger=":memory:", budget="all")
        made.fill(con)
        return con

    return connection


def judge_rows(answer: Answer, asked: Asked) -> Score:
    """A result of the answer equals the reference, whatever its columns are called; measures of words on the text."""
    reference: Reference = asked.reference
    tables = _results(answer)
    right = float(any(same(table, reference) for table in tables) or spoken(answer.text, reference))
    if isinstance(reference.answer, list):
        right = float(any(equal(pair, reference) for pair in itertools.permutations(tables, len(reference.answer))))
    words = _words(reference.answer)
    drawn = None if "plot" not in asked.output else float(bool(answer.plots))
    return Score(
        right,
        metrics.exact(answer.text, words),
        token_f1(answer.text, words),
        hit(answer.text, words),
        coverage(answer.text, words),
        drawn,
        right if drawn else drawn,
    )


def outputs_of(answer: Answer) -> list[Output]:
    """What the answer was written from; none where it was not answered: what other nodes found on the way is not the answer."""
    return [answer.results[name] for name in answer.rests_on if name in answer.results] if answer.answered else []


def _results(answer: Answer) -> list[pa.Table]:
    """The tables that the answer was written from, and what adapters answered as tables; none where it was not answered."""
    import pyarrow as pa

    found = []
    for output in outputs_of(answer):
        value = output.sub.value if output.sub is not None else None
        if output.table is not None:
            found.append(output.table)
        elif isinstance(value, list) and value and all(isinstance(row, dict) for row in value):
            found.append(pa.Table.from_pylist(value))
        elif value is not None:
            found.append(pa.table({"value": value if isinstance(value, list) else [value]}))
    return found


def spoken(text: str, reference: Reference) -> bool:
    """Of a question for one value: whether each right one (the first column of the reference) stands in the words of the answer, and not
    many others beside them: a list that holds the value somewhere does not say which it is.
    """
    answer = reference.answer
    if "value" not in reference.output or not text:
        return False
    values = [answer] if isinstance(answer, str | int | float) else []
    if isinstance(answer, dict):
        values = [row[0] for row in answer.get("rows", ())]
    said = [str(value) for value in values]
    if not 0 < len(said) <= 3 or len(tokens(text)) > sum(len(tokens(value)) for value in said) + AROUND:
        return False
    return all(contains(text, value) for value in said)


def same(table: pa.Table, reference: Reference) -> bool:
    """Whether the rows equal the reference under some choice of the table's columns; of a single value its first column is enough."""
    answer = reference.answer
    if not isinstance(answer, dict) or "rows" not in answer:
        return bool(table.num_columns) and equal((table,), reference)
    rows = table.slice(0, 5_000).to_pylist()
    columns = [
        [key_of(row[name]) for row in rows]
        for name in table.column_names
        if not any(isinstance(row[name], bytes) for row in rows)
    ]
    readings = [
        answer["rows"],
        *([answer["rows_other_century_reading"]] if "rows_other_century_reading" in answer else []),
    ]
    widths = {len(answer["columns"])} | ({1} if reference.output == "value" else set())
    for width, reading in itertools.product(sorted(widths, reverse=True), readings):
        wanted = Counter(tuple(key_of(value) for value in row[:width]) for row in reading)
        for chosen in itertools.permutations(columns[:8], width):
            if Counter(zip(*chosen, strict=True)) == wanted:
                return True
    return False


def reference_words(asked: Asked) -> str:
    """The reference of a question in words; "" of a chart."""
    reference = asked.reference
    if asked.kind == "chart":
        return ""
    if isinstance(reference, Reference | float):
        return _words(reference.answer if isinstance(reference, Reference) else reference)
    answer, scale = reference
    return " ".join(filter(None, [", ".join(map(str, answer)) if isinstance(answer, list) else str(answer), scale]))


def _words(answer: Any) -> str:
    if isinstance(answer, dict) and "must" in answer:
        return ", ".join(answer["must"])
    if isinstance(answer, dict) and "rows" in answer:
        return "; ".join(", ".join(str(value) for value in row) for row in answer["rows"])
    return json.dumps(answer) if isinstance(answer, dict | list) else str(answer)


# ---------------------------------------------------------------------------------------------------------------- tatqa
def _tatqa(shared: Path) -> list[Asked]:
    import duckdb

    with duckdb.connect() as con:
        rows = con.execute(
            "SELECT question_id, question, modalities, output_type, json_extract_string(meta, '$.context_id'), answer, "
            f"json_extract_string(notes, '$.scale') FROM '{shared}/tatqa/questions.parquet' JOIN '{shared}/tatqa/answers.parquet' "
            "USING (question_id) ORDER BY question_id"
        ).fetchall()
    return [Asked(i, q, tuple(m), o, (_parsed(a), s or ""), "tatqa", place=c) for i, q, m, o, c, a, s in rows]


def _tatqa_tables(place: str, shared: Path, work: Path, model: Model) -> Connection:
    """The table of a context as `report`, a column for each of the page's under its heading, and its paragraphs."""
    import pyarrow as pa

    con = uql.connect(model=model, ledger=":memory:")
    path = shared / "tatqa" / "contexts.parquet"
    ((table, paragraphs),) = con.sql(
        f"SELECT \"table\", paragraphs FROM '{path}' WHERE context_id = '{place}'"
    ).fetchall()
    names, rows, aside = headed(table)
    given = {
        "report": pa.table({name: [row[i] for row in rows] for i, name in enumerate(names)}),
        "paragraphs": pa.table({"number": range(1, len(paragraphs) + 1), "paragraph": paragraphs}),
    }
    about = "; ".join(("table of a financial report", *aside))
    worlds.World("tatqa", given, Path(), {"report": about}).fill(con)
    return con


def _to_the_right(cells: Sequence[str]) -> list[str]:
    """Each empty cell as the one to its left: what a heading spans."""
    filled: list[str] = []
    for cell in cells:
        filled.append(cell or (filled[-1] if filled else ""))
    return filled


_FIGURE = re.compile(r"\W*(?!(?:1 ?9|2 ?0) ?\d ?\d\b)\d[\d,. ]*\W*|[—–-]")  # a number that is no year


def headed(table: Sequence[Sequence[str]]) -> tuple[list[str], list[list[str]], list[str]]:
    """A printed table with the headings above its first figures as names of its columns.

    The names are the cells of the heading row with most of them, as `pandas.read_html` takes them from a header; where two are
    equal, with what spans them.

    Returns: names, the first "item"; the rows below the headings; what else the headings say, as "in thousands".

    >>> headed([["", "Domestic", "", "Abroad"], ["$ million", "2019", "2018", "2019"], ["Sales", "5", "4", "3"]])
    (['item', '2019 Domestic', '2018', '2019 Abroad'], [['Sales', '5', '4', '3']], ['$ million'])
    """
    width = max(len(row) for row in table)
    rows = [[*(cell.strip() for cell in row), *[""] * (width - len(row))] for row in table]
    first = next((i for i, row in enumerate(rows) if any(map(_FIGURE.fullmatch, row[1:]))), 0)
    while first and not any(rows[first - 1][1:]):  # it heads the rows below it
        first -= 1
    heads = rows[:first]
    if not heads:
        return ["item", *(f"column{i}" for i in range(1, width))], rows, []
    head = max(heads, key=lambda row: (len(set(filter(None, row[1:]))), sum(map(bool, row[1:]))))
    spans = [_to_the_right(row[1:]) for row in heads if row is not head]
    names = ["item"]
    for i, cell in enumerate(head[1:]):
        more = [span[i] for span in spans if span[i]] if head[1:].count(cell) > 1 else []
        names.append(" ".join([cell, *more]).strip() or f"column{i + 1}")
    aside = dict.fromkeys(cell for row in heads for cell in row if cell and not any(cell in name for name in names))
    return list(free_names(names)), rows[first:], list(aside)


def judge_tatqa(answer: Answer, asked: Asked) -> Score:
    reference, scale = asked.reference
    em, f1 = metrics.tatqa(answer.text, reference, scale)
    words = ", ".join(map(str, reference)) if isinstance(reference, list) else str(reference)
    return Score(em, em, f1, hit(answer.text, words), coverage(answer.text, words))


# --------------------------------------------------------------------------------------------------------------- finmmr
def _finmmr(shared: Path) -> list[Asked]:
    import duckdb

    with duckdb.connect() as con:
        rows = con.execute(
            f"SELECT question_id, question, modalities, output_type, answer FROM '{shared}/finmmr/questions.parquet' "
            f"JOIN '{shared}/finmmr/answers.parquet' USING (question_id) ORDER BY question_id"
        ).fetchall()
    return [Asked(i, q, tuple(m), o, float(a), "number", place=i) for i, q, m, o, a in rows]


def _finmmr_tables(place: str, shared: Path, work: Path, model: Model) -> Connection:
    """The pictures of a question, numbered as its words and paragraphs number them, and its paragraphs where it has any."""
    import pyarrow as pa

    con = uql.connect(model=model, ledger=":memory:")
    folder = shared / "finmmr"
    ((context, names),) = con.sql(
        f"SELECT meta->>'context', (meta->'images')::VARCHAR[] FROM '{folder}/questions.parquet' WHERE question_id = '{place}'"
    ).fetchall()
    pictures = dict(con.sql(f"SELECT image_id, image FROM '{folder}/images.parquet'").fetchall())
    numbers = range(1, len(names) + 1)
    given = {"pictures": pa.table({"number": numbers, "picture": [pictures[name] for name in names]})}
    paragraphs = [part.strip() for part in context.split("\n\n") if part.strip()]
    if paragraphs:
        given["paragraphs"] = pa.table({"number": range(1, len(paragraphs) + 1), "paragraph": paragraphs})
    about = {"pictures": "tables and charts of a financial report; picture 1 is <image 1> of the texts"}
    worlds.World("finmmr", given, Path(), about).fill(con)
    return con


def judge_finmmr(answer: Answer, asked: Asked) -> Score:
    right = metrics.finmmr(answer.text, asked.reference)
    words = reference_words(asked)
    return Score(right, right, right, hit(answer.text, words), coverage(answer.text, words))


# -------------------------------------------------------------------------------------------------------------- nvbench
def _nvbench(shared: Path) -> list[Asked]:
    import duckdb

    with duckdb.connect() as con:
        rows = con.execute(
            "SELECT question_id, question, modalities, output_type, json_extract_string(meta, '$.db'), answer "
            f"FROM '{shared}/nvbench/questions.parquet' JOIN '{shared}/nvbench/answers.parquet' USING (question_id) ORDER BY question_id"
        ).fetchall()
    return [Asked(i, q, tuple(m), o, json.loads(a), "chart", place=d) for i, q, m, o, d, a in rows]


def _nvbench_tables(place: str, shared: Path, work: Path, model: Model) -> Connection:
    con = uql.connect(model=model, ledger=":memory:")
    fill_nvbench(con.catalog.cursor, place, shared, work)
    return con


def fill_nvbench(cursor: duckdb.DuckDBPyConnection, place: str, shared: Path, work: Path) -> None:
    """Makes the tables of a database of nvBench.

    Args:
        cursor: of the database that gets them.
        place: its name.
        shared: the data folder.
        work: where the rows are written, as CSV.
    """
    path = shared / "nvbench" / "tables.parquet"
    found = cursor.execute(f"SELECT \"table\", csv FROM '{path}' WHERE db = $1", [place]).fetchall()
    for number, (name, csv) in enumerate(found):
        file = work / f"{number}.csv"
        file.write_text(csv, encoding="utf-8")
        cursor.execute(
            f"CREATE TABLE \"{name}\" AS SELECT * FROM read_csv('{file}', header = true, nullstr = ['', 'NULL'])"
        )


def judge_chart(answer: Answer, asked: Asked) -> Score:
    kind, series = metrics.chart(answer.plots, asked.reference)
    return Score(float(kind and series), chart=float(kind), series=float(series))


# -------------------------------------------------------------------------------------------------------- sembench_mmqa
def _sembench(shared: Path) -> list[Asked]:
    return [
        Asked(r.id, r.question, r.modalities, r.output, r, str(r.kind), place=r.id.removeprefix("sembench-mmqa-"))
        for r in references(shared, "sembench_mmqa")
        if r.answer is not None
    ]


def _sembench_tables(place: str, shared: Path, work: Path, model: Model) -> Connection:
    from uql.benchmarks.sembench.scenarios import mmqa

    scenario = mmqa(shared, work, 0.0)
    oracle = next((query.oracle for query in scenario.queries if query.name == place), None)
    reader = model if oracle is None else Reader(oracle, ABOUT["sembench-mmqa"])
    con = uql.connect(model=reader, ledger=":memory:", budget="all")
    scenario.fill(con)
    return con


def judge_set(answer: Answer, asked: Asked) -> Score:
    """F1 of the rows returned against those of the answer, by SemBench's measure; the best of the results counts."""
    from uql.benchmarks.sembench.scores import f1

    wanted = [
        tuple(map(key_of, row)) if isinstance(row, list) else (key_of(row),) for row in _rows(asked.reference.answer)
    ]
    best = 0.0
    for output in outputs_of(answer):
        if output.table is not None and wanted:
            rows = [tuple(key_of(value) for value in row.values()) for row in output.table.slice(0, 5_000).to_pylist()]
            width = len(wanted[0])
            best = max(
                [
                    best,
                    *(
                        f1([tuple(row[i] for i in pick) for row in rows], wanted)
                        for pick in itertools.permutations(range(min(8, output.table.num_columns)), width)
                    ),
                ]
            )
    return Score(float(best == 1.0), f1=best)


def _rows(answer: Any) -> list[Any]:
    return answer if isinstance(answer, list) else [answer]


# -------------------------------------------------------------------------------------------------- ehrxqa, routing only
def _ehrxqa(shared: Path) -> list[Asked]:
    with ehrxqa.judge() as con:
        found = []
        for q in ehrxqa.questions(shared):
            rows = [list(row) for row in con.execute(q.sql).fetchall()]
            modalities = tuple(q.scope.split("+"))
            held = Reference(
                q.id,
                q.words,
                "value" if len(rows) < 2 else "table",
                modalities,
                {"columns": ["answer"], "rows": rows},
                "rows",
                "ehrxqa",
                q.scope,
            )
            output = "binary" if isinstance(rows[0][0], bool) else held.output
            found.append(Asked(q.id, q.words, modalities, output, held, "rows"))
    return found


def _ehrxqa_tables(place: str, shared: Path, work: Path, model: Model) -> Connection:
    made = ehrxqa.world(work)
    con = uql.connect(model=Reader(made.oracle, ABOUT["ehrxqa"]), ledger=":memory:", budget="all")
    made.fill(con)
    return con


def _titles(name: str) -> Callable[[Path], list[Asked]]:
    def questions(shared: Path) -> list[Asked]:
        return [Asked(r.id, r.question, r.modalities, r.output, r, str(r.kind)) for r in references(shared, name)]

    return questions


def _nothing(place: str, shared: Path, work: Path, model: Model) -> Connection:
    raise ValueError("the evidence of this suite is not there: it can only be routed")


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


_NO_PAGES = "its evidence (tables, texts, images) is not there: routing only"
SUITES = {
    suite.name: suite
    for suite in (
        Suite(
            "rotowire",
            "CAESURA and M²EX: reports of games",
            _known("rotowire"),
            _with_reader("rotowire"),
            judge_rows,
            reader="labels",
        ),
        Suite(
            "countries",
            "countries, texts and flags",
            _known("countries_flags"),
            _with_reader("countries_flags"),
            judge_rows,
            reader="labels",
        ),
        Suite(
            "artwork",
            "CAESURA and M²EX: paintings, recorded answers",
            _known("artwork"),
            _with_reader("artwork"),
            judge_rows,
            reader="labels",
        ),
        Suite("tatqa", "tables and paragraphs of financial reports", _tatqa, _tatqa_tables, judge_tatqa),
        Suite("finmmr", "pictures and paragraphs of financial reports", _finmmr, _finmmr_tables, judge_finmmr),
        Suite(
            "nvbench",
            "charts over databases",
            _nvbench,
            _nvbench_tables,
            judge_chart,
            metrics=("right", "chart", "series"),
        ),
        Suite(
            "sembench-mmqa",
            "SemBench's MMQA scenario",
            _sembench,
            _sembench_tables,
            judge_set,
            reader="labels",
            metrics=("right", "f1"),
        ),
        Suite(
            "ehrxqa", "a hospital of EHRXQA's shape, made here", _ehrxqa, _ehrxqa_tables, judge_rows, reader="labels"
        ),
        Suite("mmqa-routing", "MultiModalQA: which modality", _titles("mmqa"), _nothing, judge_rows, absent=_NO_PAGES),
        Suite("m2qa", "M2QA-Bench: which modality", _titles("m2qa_bench"), _nothing, judge_rows, absent=_NO_PAGES),
    )
}


@contextmanager
def opened(suite: Suite, question: Asked, shared: Path, work: Path, model: Model) -> Iterator[Connection]:
    """A connection with the tables of a question."""
    work.mkdir(parents=True, exist_ok=True)
    con = suite.connection(question.place, shared, work, model)
    try:
        yield con
    finally:
        con.close()
