"""Adapters of other environments on the judged questions: the witness that they ask, workers that stay, routers over their traces."""

from __future__ import annotations

import asyncio
import base64
import io
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

import uql
from uql.base.errors import QuestionError
from uql.benchmarks.nl import adapters, plans, suites, worlds
from uql.benchmarks.nl.adapters import Resident, Row, Worker
from uql.benchmarks.nl.judged import Place
from uql.benchmarks.nl.plain_columns import Asked as Question
from uql.benchmarks.nl.references import Reference
from uql.benchmarks.nl.replay_server import Asked, served
from uql.benchmarks.nl.witness import NOTED, Known, Rows, Witness
from uql.benchmarks.nl.worlds import World
from uql.benchmarks.sembench.scenarios import write_oracle
from uql.nl.adapters import environments, open_adapter
from uql.nl.plan.dag import Operator
from uql.nl.routers.collect import Training, collect

FLAGS = pa.table({"code": ["A", "B", "C"], "image": [worlds.stand_in(name) for name in "ABC"]})
TRUTHS = FLAGS.append_column("star", pa.array(["yes", "no", "yes"]))
HOW_MANY = "How many flags show a star?"
STARS = "SELECT count(*) FROM flags WHERE star = 'yes'"
SHOPS = pa.table({"name": ["Ada", "Bo", "Cy"], "sales": [5, 7, 9]})
TOTAL = "What do the shops sell in total?"


def said(witness: Witness, user: str, *images: bytes, **fields: Any) -> str:
    schema = {"properties": fields} if fields else {}
    return asyncio.run(witness.reply(Asked("", user, images, schema, 500)))[0]


def placed(tables: dict[str, pa.Table], truths: dict[str, pa.Table] | None = None) -> Place:
    return Place(World("", tables, Path(), {}), truths or tables)


@pytest.fixture
def flags() -> Witness:
    return Witness(known={HOW_MANY: Known(STARS, {"flags": Rows(FLAGS, TRUTHS)})})


def test_labels_are_known_of_rows_whose_image_is_shown(flags: Witness) -> None:
    a, b, c = FLAGS.column("image").to_pylist()
    rows = '{"code": "A"}\n{"code": "B"}\n{"code": "C"}\n'
    assert said(flags, rows + HOW_MANY, a, b) == "1"
    assert said(flags, '{"code": "A"} {"code": "C"}' + HOW_MANY, a, b, c) == "2"
    again = io.BytesIO()
    Image.open(io.BytesIO(a)).save(again, "BMP")
    assert said(flags, rows + HOW_MANY, again.getvalue()) == "1"
    assert said(flags, rows + HOW_MANY) == said(flags, HOW_MANY, a) == "Not found."
    assert flags.shown[-1] == {"flags": 0}


def test_a_note_on_an_image_stands_for_it(flags: Witness) -> None:
    a, b = FLAGS.column("image").to_pylist()[:2]
    notes = [
        said(flags, f'{NOTED} of {{"code": "{code}"}} shows: {HOW_MANY}', image) for code, image in (("A", a), ("B", b))
    ]
    assert notes == ["star: yes", "star: no"]
    assert said(flags, f'{{"code": "A", "note": "star: yes"}} {{"code": "B", "note": "star: no"}} {HOW_MANY}') == "1"
    assert said(flags, f'{{"code": "A", "note": "star: no"}} {HOW_MANY}') == "Not found."  # not its own


def test_a_row_counts_as_often_as_the_whole_of_it_is_shown() -> None:
    rows = pa.table({"text": ["x" * 700, "short", "short"], "n": [1, 2, 2]})
    witness = Witness(known={"Total of n?": Known("SELECT sum(n) FROM t", {"t": Rows(rows, rows)})})
    assert said(witness, '{"text": "short", "n": 2} Total of n?') == "2"
    assert (
        said(witness, '{"text": "short", "n": 2} {"text": "short", "n": 2} {"text": "short", "n": 20} Total of n?')
        == "4"
    )
    assert said(witness, "Rows:\n- text: short; n: 2\nTotal of n?") == "2"
    assert said(witness, f"Rows:\n- text: {'x' * 599}…; n: 1\nTotal of n?") == "Not found."


def test_labels_that_a_text_elsewhere_gives_need_that_text() -> None:
    reports = Rows(pa.table({"game": [1, 2]}), pa.table({"game": [1, 2]}))
    played = pa.table({"name": ["Ada", "Bo"], "game": [1, 2]})
    players = Rows(played, played.append_column("points", pa.array([10, 20])))
    players.read_in = (reports, "game")
    witness = Witness(
        known={"Most points?": Known("SELECT max(points) FROM players", {"reports": reports, "players": players})}
    )
    shown = '{"name": "Ada", "game": 1} {"name": "Bo", "game": 2} Most points?'
    assert said(witness, shown) == "Not found."
    assert (
        said(witness, f'{{"game": 1}} {shown}') == "10"
        and said(witness, f'{{"game": 1}} {{"game": 2}} {shown}') == "20"
    )


def test_an_answer_has_the_form_that_is_asked_for_and_the_limits_hold(flags: Witness) -> None:
    image = FLAGS.column("image")[0].as_py()
    asked = f'{{"code": "A"}} {HOW_MANY}'
    fields = {"found": {"type": "boolean"}, "answer": {"type": "string"}, "same": {"type": "boolean"}}
    assert json.loads(said(flags, asked, image, **fields)) == {"found": True, "answer": "1", "same": False}
    wanted = "Respond with a JSON object in the following order of fields: `reasoning`, then `answer`, then `found` (a bool)."
    assert json.loads(said(flags, f"{asked}\n{wanted}"))["found"] is False
    assert json.loads(said(flags, "Is water wet?", ok={"type": "boolean"})) == {"ok": True}  # what the server can do
    with pytest.raises(uql.UQLError, match="maximum context length"):
        said(Witness(context=100, known=flags.known), asked)


# --------------------------------------------------------------------------------------------------------------- workers
FAKE = """
import json, os, sys, urllib.request
for line in sys.stdin:
    order = json.loads(line)
    if order["subquery"] == "die":
        sys.exit("it broke")
    rows = "\\n".join(json.dumps(row) for source in order["sources"] for row in source["rows"][:2])
    there = order["endpoint"]
    body = {"model": there["model"], "messages": [{"role": "user", "content": f"{rows}\\n{order['subquery']}"}]}
    head = {"Content-Type": "application/json", "Authorization": f"Bearer {there['token']}"}
    request = urllib.request.Request(f"{there['url']}/chat/completions", json.dumps(body).encode(), head)
    said = json.load(urllib.request.urlopen(request, timeout=30))["choices"][0]["message"]["content"]
    print(json.dumps({"text": said, "sources": [str(os.getpid())]}), flush=True)
"""


def test_a_worker_stays_for_the_next_order_and_is_started_anew_when_it_ends(tmp_path: Path) -> None:
    echo = "import json, os, sys\nfor line in sys.stdin:\n    json.loads(line).get('end') and sys.exit('it broke')\n"
    worker = Worker(
        (sys.executable, "-c", f"{echo}    print(json.dumps({{'pid': os.getpid()}}), flush=True)"), tmp_path
    )
    first = worker.ask({})["pid"]
    assert worker.ask({})["pid"] == first
    with pytest.raises(QuestionError, match="it broke"):
        worker.ask({"end": True})
    assert worker.ask({})["pid"] != first
    worker.stop()


def test_traces_are_made_of_what_each_adapter_showed(tmp_path: Path) -> None:
    worker = Worker((sys.executable, "-c", FAKE), tmp_path)
    fake = Resident("fake", worker.command, (Operator.TABLE,), tmp_path, worker=worker)
    long = pa.table({"name": [f"shop number {n}" for n in range(2_000)], "sales": range(2_000)})
    for table, total in ((SHOPS, 21), (long, 1_999_000)):
        place = placed({"shops": table})
        asked = Question("shops-1", "nvbench", "shops", TOTAL, "SELECT sum(sales) FROM shops")
        part = adapters.part_of(asked, place, adapters.rows_of(place))
        training = part.training
        assert training == Training(TOTAL, str(total), Operator.TABLE, "table", ("shops",))
        witness = Witness(known={TOTAL: part.known})
        with served(witness) as address, uql.connect(model=f"{address}/v1#replay", ledger=":memory:") as connection:
            connection.register("shops", table)
            whole, few = collect(
                connection.session,
                [training],
                {"single_model": open_adapter("single_model"), "fake": fake},
                planner=f"{address}/v1#replay",
            )
        assert (whole.adapter, whole.answer, whole.quality) == (
            "single_model",
            str(total),
            1.0,
        )  # its first request knows the context
        assert (few.adapter, few.quality) == ("fake", 0.0) and few.answer == str(
            sum(table.column("sales").to_pylist()[:2])
        )
        assert whole.tokens > few.tokens > 0 and few.calls == 1
    worker.stop()


def test_a_question_over_images_is_for_their_operator() -> None:
    place = placed({"flags": FLAGS, "shops": SHOPS}, {"flags": TRUTHS, "shops": SHOPS})
    question = Question("flags-1", "labels", "flags", HOW_MANY, STARS)
    made = adapters.part_of(question, place, adapters.rows_of(place)).training
    assert (made.operator, made.modality, made.sources, made.answer) == (Operator.IMAGE, "image", ("flags",), "2")


def test_a_plan_by_hand_answers_over_the_rows_seen(tmp_path: Path) -> None:
    pq.write_table(FLAGS, tmp_path / "flags.parquet")
    pq.write_table(TRUTHS.drop_columns(["image"]), tmp_path / "labels.parquet")
    answers = {"{image} shows a star": "star = 'yes'"}
    oracle = write_oracle(
        tmp_path / "o.toml", tmp_path / "flags.parquet", tmp_path / "labels.parquet", "code", answers, 0.0
    )
    world = World("flags", {"flags": FLAGS, "shops": SHOPS}, oracle, {})
    (fixture,) = plans.read_text(
        f'-- question: f-1: {HOW_MANY}\nSELECT count(*) AS n FROM flags WHERE "{{image}} shows a star" TO answer;\n'
    )
    published = Reference("f-1", HOW_MANY, "value", ("image",), "2", "value", "", "")
    asked = suites.Asked("f-1", HOW_MANY, ("image",), "value", published, "value", needed=("flags",))
    rows = adapters.rows_of(placed(dict(world.tables)))
    part = adapters.planned(asked, fixture, world, rows)
    assert part is not None and part.training == Training(HOW_MANY, "2", Operator.IMAGE, "image", ("flags",))
    witness, image = Witness(known={HOW_MANY: part.known}), FLAGS.column("image")[0].as_py()
    assert said(witness, f'{{"code": "A"}} {{"code": "C"}} {HOW_MANY}', image) == "1"
    assert said(witness, f'{{"code": "A"}} {HOW_MANY}') == "Not found."
    note = f'{NOTED} of {{"code": "A"}}: {HOW_MANY}'
    assert said(witness, note, image) == "seen" and said(witness, note) == "nothing"
    assert said(witness, f'{{"code": "A", "note": "seen"}} {{"code": "C", "note": "seen"}} {HOW_MANY}') == "2"
    assert adapters.planned(replace(asked, reference=replace(published, answer="3")), fixture, world, rows) is None


STUBS = {
    "dspy": """
class Signature:
    def __init__(self, fields, words): self.fields = fields
class ChainOfThought:
    def __init__(self, signature): self.fields = signature.fields
    def __call__(self, **given):
        self.found, self.answer = True, f"{self.fields} | {given['evidence']} | {given.get('images')}"
        return self
Image, JSONAdapter = str, dict
def LM(*given, **more): pass
def configure(**given): pass
""",
    "lotus": """
import sys, types, pandas
class settings:
    configure = staticmethod(lambda **given: None)
for name, held in (("models", {"LM": dict}), ("dtype_extensions", {"ImageArray": list})):
    module = sys.modules[f"lotus.{name}"] = types.ModuleType(name)
    vars(module).update(held)
pandas.DataFrame.sem_map = lambda frame, asked: pandas.DataFrame({"_map": [f"seen {i}" for i in frame["image"]]})
pandas.DataFrame.sem_agg = lambda frame, asked: pandas.DataFrame({"_output": [" ".join(frame["row"]) + asked]})
""",
}


@pytest.mark.parametrize("name", sorted(STUBS))
def test_a_worker_shows_images_as_images_and_goes_on(name: str, tmp_path: Path) -> None:
    (tmp_path / f"{name}.py").write_text(STUBS[name])
    picture = f"data:image/png;base64,{base64.b64encode(b'x').decode()}"
    columns = [{"name": "code", "holds": "structured"}, {"name": "image", "holds": "image"}]
    rows = [{"code": "A", "image": picture}, {"code": "B", "image": None}]
    source = {"name": "flags", "description": "", "columns": columns, "rows": rows}
    order = {"subquery": "Which {x}?", "sources": [source], "endpoint": {"url": "", "token": "", "model": "m"}}
    done = subprocess.run(
        [sys.executable, str(environments.WORKERS / "worker.py"), str(environments.WORKERS / f"{name}_worker.py")],
        input=f"{json.dumps(order)}\n{json.dumps({**order, 'sources': []})}\n",
        capture_output=True,
        text=True,
        env={"PYTHONPATH": str(tmp_path)},
        timeout=60,
    )
    first, second = (json.loads(line) for line in done.stdout.splitlines())
    if name == "dspy":
        assert first["text"].startswith("evidence: str, images: list[dspy.Image], question: str")
        assert '{"code": "A"}\n{"code": "B"}' in first["text"] and first["text"].endswith(f"['{picture}']")
        assert second["text"].startswith("evidence: str, question: str")
    else:
        assert first["text"].startswith(f'{{"code": "A", "note": "seen {picture}"}} {{"code": "B"}}')
        assert "Which (x)?" in first["text"] and second["problem"] == "there are no rows"


# --------------------------------------------------------------------------------------------------------------- routers
class Letters:
    """An embedder of two numbers: how many a and how many b a text has."""

    name = "letters"

    def embed(self, texts: list[str]) -> Any:
        return np.array([[text.count("a"), text.count("b")] for text in texts], np.float32)


def rows_with(both: Any) -> list[Row]:
    """40 questions of a's and 40 of b's, and what two adapters made of each."""
    made = []
    for n in range(80):
        kind = "ab"[n % 2]
        by = {name: [q, q, q, q, 1, 100, 0.5, "said"] for name, q in both(kind).items()}
        made.append(Row(f"q{n}", kind * 5, "TableAnalytics", "table", "said", by))
    return made


def test_a_router_is_judged_on_questions_that_it_did_not_learn_from(tmp_path: Path) -> None:
    rows = rows_with(lambda kind: {"lotus": float(kind == "a"), "dspy": 0.9 * (kind == "b")})
    one, two = adapters.halves(rows)
    assert len(one) == len(two) == 40 and not {row.id for row in one} & {row.id for row in two}
    ways = adapters.judge(one, two, ["lotus", "dspy"], Letters())
    found = adapters.reached(ways, two)
    assert ways["MLRouter"] == ways["best of each"] and len(set(ways["StatRouter"])) == 1
    adapters.write(tmp_path / "rows.jsonl", rows)
    text = adapters.report(adapters.read(tmp_path / "rows.jsonl"), Letters())
    assert text.startswith("lotus, dspy: 40 sub-queries to learn from, 40 held out")
    margin = found["MLRouter"].mean() - max(found[name].mean() for name in ("lotus", "dspy"))
    assert margin > 0.3 and f"| {margin:+.3f} [" in text.split(", held-out half |")[1].splitlines()[0]


def test_where_one_adapter_is_best_everywhere_the_margin_is_nought() -> None:
    text = adapters.report(rows_with(lambda kind: {"lotus": 0.3, "dspy": 0.8}), Letters())
    assert (
        text.count("| +0.000 [+0.000, +0.000] | +0.000 [+0.000, +0.000] |") == 3
        and "MLRouter chose: lotus 0, dspy 40" in text
    )


def test_rows_of_two_runs_are_those_of_one_question(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    for name in ("lotus", "dspy"):
        adapters.write(
            path, [Row("q1", "Who?", "TableAnalytics", "table", "Ada", {name: [1.0, 1.0, 1.0, 1.0, 1, 9, 0.1, "Ada"]})]
        )
    (row,) = adapters.read(path)
    assert set(row.by) == {"lotus", "dspy"} and [t.quality for t in row.traces()] == [1.0, 1.0]


def test_the_traces_kept_are_of_400_questions_over_tables_texts_and_images() -> None:
    rows = adapters.read(adapters.TRACES)
    assert len(rows) >= 400 and {row.modality for row in rows} == {"table", "text", "image"}
    assert all({"lotus", "dspy", "llamaindex"} <= set(row.by) for row in rows)
    assert adapters.TRACES.stat().st_size <= 300_000


def test_without_data_it_says_what_is_missing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert adapters.main(["run", "--data", str(tmp_path), "--rows", str(tmp_path / "rows.jsonl")]) == 2
    assert "set UQL_DATA or --data" in capsys.readouterr().err
