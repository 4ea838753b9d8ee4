"""`python -m uql.benchmarks.media FOLDER`: ten questions over clips, twelve over recordings and documents, answered by the label oracle.

FOLDER is made by `python -m uql.benchmarks.datasets.media FOLDER`. Of the frames at most 5 % are asked for one question. An estimate is
right where its interval holds the truth, rows are right where each of them is and none is missing that the question promises.
`--seeds N` counts how often intervals hold the truth. Last, the clips found by a condition on the video itself with a tenth of the frames,
beside the plainest orders of frames: clip after clip in the order of time, and at random.
"""

from __future__ import annotations

import argparse
import math
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import numpy as np

import uql

SHARE = 0.05  # of the frames, for one question
MOMENTS_SHARE = 0.1
TOLD_SEEDS = 50  # between two lines of how many intervals hold the truth so far
SLACK_S = 0.8  # by which an utterance may begin before the model says so
ANSWERS = {
    "the lights are out": "dark",
    "a blue circle is seen": "circle",
    "a red square touches the wall": "red_at_wall",
    "what the ground is": "ground",
    "someone asks for a refund": "list_contains(topics, 'refund')",
    "it is about a delivery": "list_contains(topics, 'delivery')",
    "it is about a password": "list_contains(topics, 'password')",
    "the speaker is grateful": "list_contains(topics, 'thanks')",
    "it is about prices": "list_contains(topics, 'prices')",
    "it is about a flood": "list_contains(topics, 'flood')",
    "it is about a school": "list_contains(topics, 'school')",
    "the number that is given": "number",
}
FRAMES = "clips, unnest(frames(clip, every = '1 s')) AS f"
SAID = "calls, unnest(transcript(call)) AS s"
PAGES = "reports, unnest(pages(doc)) AS p"


@dataclass(frozen=True)
class Question:
    """A statement, and the statement over the truth that it is compared with.

    Attributes:
        how: `estimate`: the first value has an interval; `groups`: each row's last value has one; `rows`: those of the truth, all;
            `some`: `least` rows, each of them one of the truth.
    """

    text: str
    truth: str
    how: str = "estimate"
    least: int = 0


CLIPS = (
    Question(
        f'SELECT COUNT(*) AS n FROM {FRAMES} WHERE "the lights are out"', "SELECT COUNT(*) FROM frames WHERE dark"
    ),
    Question(
        f'SELECT COUNT(*) AS n FROM {FRAMES} WHERE "a red square touches the wall"',
        "SELECT COUNT(*) FROM frames WHERE red_at_wall",
    ),
    Question(
        f'SELECT AVG(CASE WHEN "a blue circle is seen" THEN 1 ELSE 0 END) AS share FROM {FRAMES}',
        "SELECT AVG(circle::INT) FROM frames",
    ),
    Question(
        f'SELECT SUM(t) AS s FROM {FRAMES} WHERE "a blue circle is seen"', "SELECT SUM(t) FROM frames WHERE circle"
    ),
    Question(
        f'SELECT clip FROM {FRAMES} WHERE "the lights are out" LIMIT 5', "SELECT clip FROM frames WHERE dark", "some", 5
    ),
    Question(
        f'SELECT clip, t FROM {FRAMES} WHERE "a red square touches the wall" LIMIT 10',
        "SELECT clip, t FROM frames WHERE red_at_wall",
        "some",
        10,
    ),
    Question(
        f'SELECT t FROM {FRAMES} WHERE clip = $clip AND "a blue circle is seen" ORDER BY t LIMIT 1',
        "SELECT MIN(t) FROM frames WHERE clip = $clip AND circle",
        "rows",
    ),
    Question(
        f'SELECT camera, COUNT(*) AS n FROM {FRAMES} WHERE "a blue circle is seen" GROUP BY camera ORDER BY camera',
        "SELECT camera, COUNT(*) FROM frames JOIN clips USING (clip) WHERE circle GROUP BY camera ORDER BY camera",
        "groups",
    ),
    Question(
        f"""SELECT "what the ground is"::ENUM('grass', 'sand', 'stone', 'water') AS g, COUNT(*) AS n FROM {FRAMES} GROUP BY g ORDER BY g""",
        "SELECT ground, COUNT(*) FROM frames GROUP BY ground ORDER BY ground",
        "groups",
    ),
    Question(
        "SELECT COUNT(*) AS n FROM clips JOIN notes ON notes.clip = clips.clip,"
        ' unnest(frames(clips.clip)) AS f WHERE fault AND "the lights are out"',
        "SELECT COUNT(*) FROM frames JOIN notes USING (clip) WHERE fault AND dark",
    ),
)
TEXTS = (
    Question(
        f'SELECT DISTINCT call FROM {SAID} WHERE "someone asks for a refund"',
        "SELECT DISTINCT call FROM utterances WHERE topic = 'refund'",
        "rows",
    ),
    Question(
        f'SELECT call, t FROM {SAID} WHERE "it is about a delivery"',
        "SELECT call, t FROM utterances WHERE topic = 'delivery'",
        "seconds",
    ),
    Question(
        f'SELECT call, t FROM {SAID} WHERE "the speaker is grateful"',
        "SELECT call, t FROM utterances WHERE topic = 'thanks'",
        "seconds",
    ),
    Question(
        f'SELECT COUNT(DISTINCT call) AS n FROM {SAID} WHERE "it is about a password"',
        "SELECT COUNT(DISTINCT call) FROM utterances WHERE topic = 'password'",
        "rows",
    ),
    Question(
        f'SELECT call, MIN(t) AS t FROM {SAID} WHERE "it is about a password" GROUP BY call',
        "SELECT call, MIN(t) FROM utterances WHERE topic = 'password' GROUP BY call",
        "seconds",
    ),
    Question(
        f'SELECT doc, page FROM {PAGES} WHERE "it is about a flood"',
        "SELECT doc, page FROM pages WHERE topic = 'flood'",
        "rows",
    ),
    Question(
        f'SELECT doc, page FROM {PAGES} WHERE "it is about a school"',
        "SELECT doc, page FROM pages WHERE topic = 'school'",
        "rows",
    ),
    Question(
        f'SELECT COUNT(*) AS n FROM {PAGES} WHERE "it is about prices"',
        "SELECT COUNT(*) FROM pages WHERE topic = 'prices'",
        "rows",
    ),
    Question(
        f'SELECT page, COUNT(*) AS n FROM {PAGES} WHERE "it is about prices" GROUP BY page',
        "SELECT page, COUNT(*) FROM pages WHERE topic = 'prices' GROUP BY page",
        "rows",
    ),
    Question(
        f'SELECT doc, page, "the number that is given"::INTEGER AS number FROM {PAGES} WHERE "it is about a flood"',
        "SELECT doc, page, regexp_extract(text, '(\\d+) houses', 1)::INTEGER FROM pages WHERE topic = 'flood'",
        "rows",
    ),
    Question(
        'SELECT call FROM calls WHERE "someone asks for a refund"',
        "SELECT DISTINCT call FROM utterances WHERE topic = 'refund'",
        "rows",
    ),
    Question(
        'SELECT COUNT(*) AS n FROM calls WHERE "it is about a delivery" AND NOT "the speaker is grateful"',
        "SELECT COUNT(*) FROM (SELECT list(topic) AS held FROM utterances GROUP BY call)"
        " WHERE list_contains(held, 'delivery') AND NOT list_contains(held, 'thanks')",
        "rows",
    ),
)
MOMENTS = ("dark", "circle", "red_at_wall")  # columns of the truth that a clip is searched for


class Suite:
    """The files of a folder as tables, and an oracle that knows each frame, utterance and page by its content."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._made = tempfile.TemporaryDirectory(prefix="uql-media-suite-")  # goes with the suite
        self.home = Path(self._made.name)
        self.truth = duckdb.connect()
        for name in ("frames", "utterances", "pages"):
            self.truth.execute(f"CREATE TABLE {name} AS SELECT * FROM read_parquet('{folder / name}.parquet')")
        self.truth.execute(
            "CREATE TABLE clips AS SELECT DISTINCT clip, 'camera ' || (right(clip, 5)[1]::INT % 3) AS camera FROM frames"
        )
        self.truth.execute("CREATE TABLE notes AS SELECT clip, right(clip, 5)[1]::INT % 2 = 0 AS fault FROM clips")
        self.n_frames = self.value("SELECT COUNT(*) FROM frames")
        self.clip = self.value("SELECT clip FROM frames WHERE circle AND t = 4 ORDER BY clip LIMIT 1")
        self.database = self.home / "suite.duckdb"
        with duckdb.connect(str(self.database)) as made:
            for table, column, kind in (
                ("clips", "clip", "video"),
                ("calls", "call", "audio"),
                ("reports", "doc", "document"),
            ):
                source = {"clips": "clips", "calls": "utterances", "reports": "pages"}[table]
                rows = self.truth.sql(f"SELECT DISTINCT {'*' if table == 'clips' else column} FROM {source} ORDER BY 1")
                made.register("rows", rows.to_arrow_table())
                made.execute(f"CREATE TABLE {table} AS FROM rows")
                made.execute(f"COMMENT ON COLUMN {table}.{column} IS '{kind}'")
            made.register("rows", self.truth.sql("SELECT * FROM notes").to_arrow_table())
            made.execute("CREATE TABLE notes AS FROM rows")
        self.oracle = self._oracle()

    def value(self, sql: str) -> Any:
        return self.truth.execute(sql).fetchall()[0][0]

    def connect(self, **settings: Any) -> uql.Connection:
        """A connection to the tables of the suite, with the oracle as its model."""
        model = f"oracle:{self.oracle}"
        settings = {"folder": str(self.folder)} | settings
        return uql.connect(self.database, model=model, **settings)

    def _oracle(self) -> Path:
        """Writes what is shown of each row, as the readers give it, with its labels."""
        self.oracle = self.home / "none.toml"
        with uql.connect(self.database, folder=str(self.folder), ledger=str(self.home / "heard.sqlite")) as con:
            frames = con.uql(f"SELECT clip, t, f.image FROM {FRAMES}").arrow()
            images = con.session.catalog.parts.images(frames.column("image").to_pylist())
            said = con.uql(f"SELECT call, t, text FROM {SAID}").arrow()
            pages = con.uql(f"SELECT doc, page, text FROM {PAGES}").arrow()
        import pyarrow as pa

        self.truth.register("shown", frames.set_column(2, "image", pa.array(images, pa.binary())))
        self.truth.register("said", said)
        self.truth.register("read", pages)
        self.truth.execute(
            f"""CREATE TABLE labelled AS
            SELECT image, NULL AS text, dark, circle, red_at_wall, ground, []::VARCHAR[] AS topics, NULL AS number
                FROM shown JOIN frames USING (clip, t)
            UNION ALL BY NAME SELECT text, list_distinct(flatten(list(topics))) AS topics FROM (
                SELECT s.text, list(u.topic) AS topics
                FROM (SELECT *, lead(t, 1, 1e9) OVER (PARTITION BY call ORDER BY t) AS next FROM said) s
                LEFT JOIN utterances u ON u.call = s.call AND u.t >= s.t - {SLACK_S} AND u.t < s.next - {SLACK_S}
                GROUP BY s.call, s.t, s.text) GROUP BY text
            UNION ALL BY NAME SELECT text, list_distinct(flatten(list(topics))) AS topics FROM (
                SELECT string_agg(printf('%g s: %s', t, text), chr(10) ORDER BY t) AS text, any_value(topics) AS topics
                FROM said JOIN (SELECT call, list(topic) AS topics FROM utterances GROUP BY call) USING (call)
                GROUP BY call) GROUP BY text
            UNION ALL BY NAME SELECT r.text, [topic] AS topics,
                nullif(regexp_extract(p.text, '(\\d+) houses', 1), '')::INTEGER AS number
                FROM read r JOIN pages p USING (doc, page)"""
        )
        self.truth.execute("CREATE TABLE numbered AS SELECT row_number() OVER () AS id, * FROM labelled")
        for name, columns in (("data", "id, image, text"), ("labels", "* EXCLUDE (image, text)")):
            self.truth.execute(
                f"COPY (SELECT {columns} FROM numbered) TO '{self.home / name}.parquet' (FORMAT parquet)"
            )
        answers = "\n".join(f"{_toml(text)} = {_toml(sql)}" for text, sql in ANSWERS.items())
        path = self.home / "oracle.toml"
        path.write_text(f'data = "data.parquet"\nlabels = "labels.parquet"\nkey = "id"\n[answers]\n{answers}\n')
        return path


def _toml(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def check(suite: Suite, question: Question, result: uql.Result) -> bool:
    """Is the answer right, as `Question.how` says?"""
    rows = result.fetchall()
    parameters = {"clip": suite.clip} if "$clip" in question.truth else {}
    truth = suite.truth.execute(question.truth, parameters).fetchall()
    match question.how:
        case "estimate":
            found: Any = next(iter(result.estimates.values()))
            return bool(found.low - 1e-9 <= truth[0][0] <= found.high + 1e-9)
        case "groups":
            held = {row[0]: row for row in result.df().itertuples(index=False)}
            return all(key in held and held[key].n_low <= n <= held[key].n_high for key, n in truth)
        case "some":
            return len(rows) >= question.least and set(rows) <= set(truth)
        case "seconds":
            pairs = {(a, b) for a, t in rows for c, b in truth if a == c and abs(t - b) <= 2 * SLACK_S}
            return len(rows) >= 0.95 * len(truth) and len(pairs) >= 0.95 * max(len(truth), len(rows))
    return sorted(rows) == sorted(truth)


def run(suite: Suite, questions: Sequence[Question], budget: int | str, say: Callable[[str], None]) -> int:
    """How many questions are answered rightly.

    Args:
        budget: calls of one question.
    """
    right = 0
    for question in questions:
        began = time.monotonic()
        ledger = (
            str(suite.home / "heard.sqlite") if "FROM calls" in question.text else ":memory:"
        )  # it holds the transcripts
        with suite.connect(budget=budget, seed=1, ledger=ledger) as con:
            result = con.uql(question.text, **({"clip": suite.clip} if "$clip" in question.text else {}))
            good = check(suite, question, result)
        right += good
        calls, seconds = result.cost.calls, time.monotonic() - began
        say(f"{'right' if good else 'WRONG'}  {calls:>5} calls  {seconds:5.1f} s  {question.text}")
    return right


def coverage(suite: Suite, seeds: int, budget: int, say: Callable[[str], None]) -> float:
    """The share of seeds whose interval holds the truth, over the counts and the share of time."""
    held = runs = 0
    con = suite.connect(budget=budget)  # keeps the frames that it has read
    for i, question in enumerate(CLIPS[:3]):
        mine, errors = 0, 0.0
        for seed in range(seeds):
            if seed and seed % TOLD_SEEDS == 0:
                say(f"{mine}/{seed} so far")
            con.uql(f"SET uql.ledger = '{suite.home / f'{i}-{seed}.sqlite'}'")
            con.uql(f"SET uql.seed = {seed}")
            result = con.uql(question.text)
            mine += check(suite, question, result)
            (truth,) = suite.truth.execute(question.truth).fetchall()[0]
            estimate: Any = next(iter(result.estimates.values()))
            errors += (estimate.value / truth - 1) ** 2
        say(f"{mine}/{seeds} intervals hold the truth, error {math.sqrt(errors / seeds):.1%}  {question.text[:90]}")
        held, runs = held + mine, runs + seeds
    con.close()
    return held / runs


def moments(suite: Suite, share: float, seed: int, say: Callable[[str], None]) -> None:
    """How many clips in which something happens are found by a condition on the video, and by plain orders of its frames.

    Args:
        share: of all frames, that are asked.
        seed: of the run, and of the random order.
    """
    budget = int(share * suite.n_frames)
    for column in MOMENTS:
        rows = suite.truth.sql(f"SELECT clip, {column} FROM frames ORDER BY clip, t").fetchall()
        text = next(text for text, sql in ANSWERS.items() if sql == column)
        with suite.connect(budget=budget, seed=seed, ledger=":memory:") as con:
            found = con.uql(f'SELECT clip FROM clips WHERE "{text}"').fetchall()
        shuffled = [rows[i] for i in np.random.default_rng(seed).permutation(len(rows))]
        held = f"{_found(rows, budget)} in the order of time, {_found(shuffled, budget)} at random"
        whole = len({clip for clip, seen in rows if seen})
        say(f"{budget} calls: {len(found)} of {whole} clips, {held}  {text}")


def _found(frames: Sequence[tuple[str, bool]], budget: int) -> int:
    """The clips of which one of the first `budget` frames shows it; no frame is asked of a clip that is found."""
    found: set[str] = set()
    for clip, seen in frames:
        if clip in found:
            continue
        if budget == 0:
            break
        budget -= 1
        if seen:
            found.add(clip)
    return len(found)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser("python -m uql.benchmarks.media", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seeds", type=int, default=0)
    given = parser.parse_args(argv)
    suite = Suite(given.folder)
    budget = max(32, int(SHARE * suite.n_frames))
    print(f"{suite.n_frames:,} frames, {budget} calls a question")
    right = run(suite, CLIPS, budget, print), run(suite, TEXTS, "all", print)
    print(f"clips {right[0]}/{len(CLIPS)}, recordings and documents {right[1]}/{len(TEXTS)}")
    moments(suite, MOMENTS_SHARE, 1, print)
    if given.seeds:
        print(f"coverage {coverage(suite, given.seeds, budget, print):.3f}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
