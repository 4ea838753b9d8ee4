"""The UQE suite runs every row of the paper's tables or says why not; its baselines, written apart, agree with the engine's forms."""

from __future__ import annotations

import os
import re
from collections import Counter
from dataclasses import replace
from itertools import takewhile
from pathlib import Path

import numpy as np
import pytest

from uql.benchmarks.runner.records import Measured, Record
from uql.benchmarks.runner.suite import Choice
from uql.benchmarks.uqe import paper
from uql.benchmarks.uqe.data import CONDITIONS, GROUPINGS, SOURCES, World
from uql.benchmarks.uqe.emd import emd
from uql.benchmarks.uqe.suite import SUITE
from uql.benchmarks.uqe.systems import algorithm1, long_context
from uql.benchmarks.uqe.tasks import COUNT_CALLS, FIND_CALLS, count_with_engine, f1_of, relative_error, tasks
from uql.compiler.parser import parse
from uql.compiler.syntax import Quoted
from uql.compiler.walk import walk

DATA = Path(os.environ.get("UQL_DATA", "../shared/data")).resolve()
needs_data = pytest.mark.skipif(not (DATA / "airdialogue").is_dir(), reason="no labelled data: set UQL_DATA")
CHOICE = Choice(DATA, Path("/nowhere"))


@pytest.fixture(scope="module")
def planned():
    return list(tasks(replace(CHOICE, models=("labels", "labels-5", "labels-10", "local"))))


@pytest.mark.parametrize(
    ("table", "rows"),
    [
        ("table 1", paper.COUNT),
        ("table 2", paper.FIND),
        ("table 3", paper.GROUP),
        ("table 4", paper.SHARE),
        ("figure 5", paper.FIGURE_5),
    ],
)
def test_every_row_of_a_table_is_run_or_has_a_reason(planned, table, rows):
    there = {task.query for task in planned if task.table == table}
    assert set(rows) <= there
    assert all(task.run is not None or task.reason for task in planned)


def test_figure_4_and_table_5_are_read_from_runs_of_tables_1_and_2(planned):
    counted = {(t.query, t.system) for t in planned if t.table == "table 1" and t.model == "labels" and t.run}
    assert {(q, s) for q in paper.FIGURE_4 for s in ("uniform", "algorithm-1", "uql")} <= counted
    assert set(paper.SECONDS) <= set(SOURCES)


def test_every_system_of_the_paper_is_run_on_every_row_of_tables_1_and_2_with_each_label_table(planned):
    for table, systems in (
        ("table 1", ("udf", "algorithm-1", "long-context")),
        ("table 2", ("udf", "mips", "algorithm-2", "long-context")),
    ):
        for model in ("labels", "labels-5", "labels-10"):
            there = Counter((t.query, t.system) for t in planned if t.table == table and t.model == model)
            assert all(there[c.name, system] == 1 for c in CONDITIONS for system in systems)


def test_what_cannot_be_run_says_why(planned):
    reasons = {(t.query, t.system): t.reason for t in planned if t.run is None and t.model == "labels"}
    assert "embedder" in reasons["clevr_few_objects", "mips"]
    assert "34 and 81 rows" in reasons["abcd_account_access_type", "uql"]
    assert all(t.reason for t in planned if t.model == "local" and t.query.startswith("clevr"))


def test_simulated_models_have_200_seeds_and_the_papers_budgets(planned):
    simulated = [
        t for t in planned if t.table in ("table 1", "table 2") and t.model == "labels" and t.run and t.system != "mips"
    ]
    assert {t.seeds for t in planned if t.model == "labels" and t.run and t.system != "mips"} == {200}
    assert {t.settings["budget"] for t in simulated if t.table == "table 1"} == {COUNT_CALLS}
    assert {t.settings["budget"] for t in simulated if t.table == "table 2"} == {FIND_CALLS}


def test_another_model_groups_too_and_only_the_long_prompt_is_left_out(planned):
    local = [t for t in planned if (t.table, t.model) == ("table 3", "local") and t.query in paper.GROUP]
    asked = {t.system for t in local if t.run}
    assert asked == {"uql", "uniform", "udf", "algorithm-1"}
    assert {t.reason.partition(" are")[0] for t in local if t.system == "long-context"} == {"groups and their sizes"}


def test_what_a_cut_table_gave_is_another_run_than_what_the_whole_one_gives():
    def settings(rows):
        return [dict(t.settings) for t in tasks(replace(CHOICE, models=("labels",), rows=rows)) if t.table == "table 4"]

    assert settings(None)[0] == {}
    assert settings(500)[0] == {"rows": 500}


def test_runs_over_cut_tables_stand_in_tables_of_their_own_and_each_says_its_calls():
    def counted(quality, model="labels", **settings):
        return Record(
            "uqe", "table 1", "uql", "imdb_positive", model, 0, settings, quality=quality, measure="relative error"
        )

    made = SUITE.tables(
        [counted(0.1, budget=128), counted(0.3, budget=128, rows=500), counted(0.2, "local", budget=24)]
    )
    whole, local, cut = (table for table in made if table.title.startswith("Table 1"))
    assert [t.rows[0][1] for t in (whole, local, cut)] == ["10.00", "20.00", "30.00"]
    assert "tables cut to 500 random rows" in cut.notes
    assert "tables cut to 500 random rows" not in whole.notes
    assert any("128 calls" in note for note in whole.notes)
    assert any("24 calls" in note for note in local.notes)
    assert not any("interval" in note for note in local.notes)


def test_a_line_of_figure_5_and_of_the_budgets_has_what_all_its_runs_cost():
    from uql.benchmarks.runner.records import Measured
    from uql.benchmarks.uqe.tasks import _sum

    one = Measured(calls=3, requests=2, input_tokens=10, output_tokens=4, usd=0.5, seconds=1.0)
    found = _sum([one, one])
    assert (found.calls, found.requests, found.input_tokens, found.output_tokens, found.usd) == (6, 4, 20, 8, 1.0)
    assert _sum([one, replace(one, usd=None)]).usd is None


def test_the_questions_of_the_files_are_those_of_the_list():
    for c in CONDITIONS:
        for kind in ("count", "find"):
            texts = [node.text for node in walk(parse(c.query(kind))) if isinstance(node, Quoted)]
            assert texts == [c.text]
            assert f"FROM {SOURCES[c.source].table} " in c.query(kind)
    for g in GROUPINGS:
        assert f'"{g.text}"' in g.query


def test_f1_is_of_the_rows_that_may_be_returned():
    truth = [True] * 10 + [False] * 10
    assert f1_of([], truth, 4) == (0.0, 0.0, 0.0)
    assert f1_of([0, 1, 2, 3], truth, 4) == (1.0, 1.0, 1.0)
    assert f1_of([0, 1, 10, 11], truth, 4) == (0.5, 0.5, 0.5)
    assert (relative_error(150, 100), relative_error(float("nan"), 100)) == (0.5, 1.0)


def test_the_earth_movers_distance_is_none_for_the_truth_and_grows_with_what_is_moved():
    pytest.importorskip("wordllama")
    truth = {"book": 6.0, "cancel": 2.0}
    assert emd({"book": 3, "cancel": 1}, truth) == pytest.approx(0)
    assert emd({}, truth) == 1.0
    assert 0 < emd({"book": 4, "cancel": 4}, truth) < emd({"cancel": 4}, truth)


def test_results_of_an_older_version_with_other_names_are_shown_and_break_nothing():
    share = Record("uqe", "table 4", "uql", "gone", "none", 0, numbers={"share": 0.5, "rows": 2.0})
    records = [*counted("uql", "gone", [0.1]), *counted("gone", "imdb_positive", [0.2]), share]
    first, *_ = SUITE.tables(records)
    assert {row[0]: row[1:3] for row in first.rows} == {"imdb_positive": ("–", "20.00"), "gone": ("10.00", "–")}


def test_without_word_vectors_the_suite_says_what_to_install(monkeypatch):
    from uql.base.errors import ConfigError
    from uql.benchmarks.uqe import data

    monkeypatch.setattr(data, "static_embedder", lambda: None)
    with pytest.raises(ConfigError, match="pip install") as error:
        emd({"a name not met before": 1.0}, {"another": 1.0})
    assert error.value.code == "UQL610"


def counted(system, query, qualities, model="labels"):
    return [
        Record("uqe", "table 1", system, query, model, seed, quality=q, measure="relative error")
        for seed, q in enumerate(qualities)
    ]


def test_a_cell_says_how_many_seeds_it_has_and_means_are_over_the_questions_of_all():
    records = [
        *counted("uql", "imdb_positive", [0.1, 0.1]),
        *counted("uql", "airdialogue_book", [0.3, 0.3, 0.3]),
        *counted("uniform", "imdb_positive", [0.5, 0.5]),
        *counted("uniform", "airdialogue_book", [0.1, 0.1]),
        *counted("uniform", "airdialogue_cancel", [0.9, 0.9]),
        *counted("count-each", "imdb_positive", [0.2, 0.2]),
    ]
    made, *_ = SUITE.tables(records)
    rows = {row[0]: row[1:4] for row in made.rows}
    assert rows["imdb_positive"] == ("10.00", "50.00", "20.00")
    assert rows["airdialogue_book"] == ("30.00 (3)", "10.00", "–")
    assert rows["mean of 2 questions"] == ("20.00", "30.00", "–")
    assert made.notes[0].startswith("2 seeds, in brackets where there are others")


def test_the_groups_of_seed_0_stand_beside_the_labels():
    numbers = {"groups": 2.0, "found: book": 210.0, "labels: book": 200.0, "labels: cancel": 5.0}
    record = Record(
        "uqe", "table 3", "uql", "airdialogue_outcome", "labels", 0, quality=0.1, measure="EMD", numbers=numbers
    )
    *_, listed = SUITE.tables([record])
    assert listed.rows == (("airdialogue_outcome", "book", "200", "210"), ("airdialogue_outcome", "cancel", "5", "–"))


def world(n=600):
    rng = np.random.default_rng(0)
    vectors = rng.standard_normal((n, 16)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    made = World(SOURCES["imdb"], Path("/nowhere"), tuple(range(n)), tuple(f"row {i}" for i in range(n)), 0, 0)
    made.__dict__["embeddings"] = vectors
    return made, vectors[:, 0] > 0.2


class Labels:
    """Answers from an array."""

    name = "labels"

    def __init__(self, held, truth):
        self.world, self.truth, self.calls = held, truth, 0

    def is_so(self, condition, rows):
        self.calls += len(rows)
        return [bool(self.truth[row]) for row in rows]


def test_the_first_algorithm_written_plainly_has_the_spread_of_the_engines_form():
    from uql.sampling.stratified import StratifiedSampler

    held, truth = world()
    plain, engine = [], []
    for seed in range(200):
        model = Labels(held, truth)
        plain.append(algorithm1.count(model, CONDITIONS[0], 64, np.random.default_rng(seed)))
        assert model.calls == 64
        strata = np.zeros(held.n, np.int64)
        for c, rows in enumerate(algorithm1.clusters(held, seed % algorithm1.CLUSTERINGS)):
            strata[rows] = c
        sampler = StratifiedSampler(held.n, 64, rng=np.random.default_rng(seed), strata=strata)
        while len(rows := sampler.propose(100)):
            sampler.tell(rows, truth[rows].astype(float))
        engine.append(sampler.estimate().value)
    a, b, total = np.array(plain), np.array(engine), truth.sum()
    error = np.hypot(a.std(), b.std()) / np.sqrt(200)
    assert abs(a.mean() - total) < 4 * a.std() / np.sqrt(200) + 0.01 * total
    assert abs(a.mean() - b.mean()) < 4 * error + 0.01 * total
    assert 0.75 < a.std() / b.std() < 1.33


def test_the_second_algorithm_asks_each_row_once_and_finds_more_than_chance():
    from uql.benchmarks.uqe.systems import algorithm2

    held, truth = world()
    model = Labels(held, truth)
    asked = algorithm2.search(model, CONDITIONS[0], 96, np.random.default_rng(1))
    assert len({row for row, _ in asked}) == 96 == model.calls
    assert sum(answer for _, answer in asked) > 1.5 * 96 * truth.mean()


def test_a_long_prompt_holds_the_rows_by_number_and_asks_for_one_thing():
    counted = long_context.count_prompt(CONDITIONS[0], ["good", "bad"])
    assert "**review_1**:\nbad" in counted
    assert "single number" in counted
    assert "list of indices" in long_context.find_prompt(CONDITIONS[3], ["x"])


@needs_data
def test_a_small_run_goes_from_the_data_to_the_tables(tmp_path):
    from uql.benchmarks.runner import run as runner
    from uql.benchmarks.runner.records import read

    choice = Choice(
        DATA, tmp_path, models=("labels-10",), queries=("airdialogue_cancel", "airdialogue_outcome"), rows=300
    )
    held = runner.tasks_of(SUITE, choice, offline=True)
    ended = runner.execute(SUITE, held, tmp_path / "r.jsonl", seeds=1, resume=False, max_cost=None, say=lambda _: None)
    assert ended.problems == 0
    records = read(tmp_path / "r.jsonl")
    assert {r.calls <= r.settings["budget"] + 16 for r in records if "budget" in r.settings} == {True}
    titles = [table.title for table in SUITE.tables(records)]
    assert [title.partition(":")[0] for title in titles] == ["Table 1", "Table 2", "Table 3", "Table 4"]
    uql_cell = next(r for r in records if (r.table, r.system) == ("table 1", "uql"))
    assert uql_cell.quality >= 0 and uql_cell.numbers["width"] > 0


PAPER = DATA.parent / "papers" / "uqe.txt"
needs_paper = pytest.mark.skipif(not PAPER.is_file(), reason=f"the paper is not at {PAPER}")
NAMES = {  # of a row: the data set and the words of the paper
    "imdb_positive": ("imdb", "positive"),
    "clevr_few_objects": ("clevr", "obj_count < 4"),
    "clevr_many_spheres": ("clevr", "# spheres > 3"),
    "airdialogue_outcome": ("airdialog", "EMD↓"),
    "abcd_account_access_type": ("abcd", "account_access-EMD↓"),
    "abcd_single_item_type": ("abcd", "single_item_query-EMD↓"),
}
FOLDED = {"sentiment_positive": "positive", "positive_review": "positive"}
HEADS = {paper.GPT: "lc-gpt-4-turbo", paper.CLAUDE: "lc-claude-3-opus", paper.MIPS: "MIPS", paper.UQE: "UQE"}


def _plain(cell: str) -> str:
    """A cell without bold, per cent signs and spaces at its ends; numbers are compared as they are printed."""
    return " ".join(re.sub(r"</?b>|%|\*", "", cell).split())


def _printed(title: str) -> dict[tuple[str, str], dict[str, str]]:
    """A table of the paper with conditions as rows: (data set, condition) → head of a column → cell."""
    whole = PAPER.read_text("utf-8").splitlines()
    at = next(i for i, line in enumerate(whole) if line.startswith(title))
    start = next(i for i in range(at, len(whole)) if "\t" in whole[i])
    cells: dict[tuple[str, str], dict[str, str]] = {}
    source, heads = "", [""]
    for line in takewhile(lambda line: "\t" in line, whole[start + 1 :]):
        first, condition, *rest = map(_plain, line.split("\t"))
        source = first.lower() or source
        if not condition:
            heads = rest
        else:
            cells[source, FOLDED.get(condition, condition)] = dict(zip(heads, rest, strict=True))
    return cells


def _name(query: str) -> tuple[str, str]:
    source, _, condition = query.partition("_")
    return NAMES.get(query, (source.removesuffix("ue"), condition))


@needs_paper
@pytest.mark.parametrize(
    ("title", "table"), [("Table 1 |", paper.COUNT), ("Table 2 |", paper.FIND), ("Table 3 |", paper.GROUP)]
)
def test_each_figure_stands_in_its_row_and_column_of_the_paper(title: str, table: paper.Figures) -> None:
    printed = _printed(title)
    for query, row in table.items():
        held = printed[_name(query)]
        for column, cell in row.items():
            model, _, figure = cell.rpartition(": ")
            head = f"lc-{model}" if model else HEADS[column]
            (there,) = (
                value for name, value in held.items() if name == head or (head == "UQE" and name.startswith("UQE-"))
            )
            assert _plain(figure) == there, (query, column)
    assert {_name(query) for query in table} == {name for name in printed if "ost" not in name[1]}


@needs_paper
def test_shares_seconds_and_errors_of_one_picture_at_a_time_are_those_of_the_paper() -> None:
    lines = [list(map(_plain, line.split("\t"))) for line in PAPER.read_text("utf-8").splitlines()]
    start = next(i for i, line in enumerate(lines) if line[0] == "Dataset") + 1
    shares, source = {}, ""
    for first, condition, share in takewhile(lambda line: len(line) == 3, lines[start:]):
        source = first.lower() or source
        shares[source, FOLDED.get(condition, condition)] = float(share)
    assert shares == {_name(query): share for query, share in paper.SHARE.items()}
    heads = next(line[1:] for line in lines if line[1:3] == ["Clevr", "ABCD"])
    times = next(line[1:] for line in lines if line[0] == "UQE-claude-3-haiku" and len(line) == 9)
    for source, seconds in paper.SECONDS.items():
        places = [i for i, head in enumerate(heads) if head.lower() == source.removesuffix("ue")]
        assert tuple(times[i] for i in places) == seconds, source
    few, many = (_plain(paper.COUNT_EACH[query]) for query in ("clevr_few_objects", "clevr_many_spheres"))
    said = _plain(PAPER.read_text("utf-8").replace("$\\pm$", "±"))
    assert f"the estimation error would be {few} and {many} for the two queries of Clevr" in said


@needs_data
def test_a_query_is_timed_again_from_the_ledger(tmp_path: Path) -> None:
    choice = replace(CHOICE, work=tmp_path, rows=400)
    first, second = (
        count_with_engine(
            "uql", next(c for c in CONDITIONS if c.name == "airdialogue_book"), "labels", choice, 64, seed
        )
        for seed in (0, 1)
    )
    assert first.numbers["seconds again"] > 0 and "seconds again" not in second.numbers


def test_the_seconds_of_the_engine_and_of_the_model_stand_apart() -> None:
    """Of a model that takes 3 s longer than labels do; what was not run has a dash."""
    held = [
        Record("uqe", "table 1", "uql", "imdb_positive", model, seed, seconds=seconds + seed, numbers=numbers)
        for model, seconds, numbers in (
            ("labels", 1.0, {"processor seconds": 0.25, "seconds again": 0.125}),
            ("local", 4.0, {"processor seconds": 9.0, "seconds again": 0.5}),
        )
        for seed in (0, 1, 2)
    ]
    (table,) = [table for table in SUITE.tables(held) if table.title.startswith("Table 5")]
    shown = [dict(zip(table.head, row, strict=True)) for row in table.rows]
    parts = ("first, s", "engine", "model", "again")
    assert [tuple(row[f"COUNT: {part}"] for part in parts) for row in shown] == [
        ("2.00", "0.25", "0.00", "0.12"),
        ("5.00", "0.25", "3.00", "0.50"),
    ]
    assert shown[0]["retrieval: first, s"] == "–" and shown[0]["paper: COUNT, s"] == "5.83"


@needs_data
def test_a_run_knows_nothing_of_the_runs_of_other_seeds(tmp_path: Path) -> None:
    condition = next(c for c in CONDITIONS if c.name == "airdialogue_book")

    def counted(folder: str, seed: int) -> Measured:
        return count_with_engine(
            "uql", condition, "labels", replace(CHOICE, work=tmp_path / folder, rows=400), 64, seed
        )

    counted("both", 0)
    after, alone = counted("both", 1), counted("alone", 1)
    assert (after.cached, after.calls, after.answer) == (0, alone.calls, alone.answer)
