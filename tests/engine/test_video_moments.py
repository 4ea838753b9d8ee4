"""A text on a video column: true of a clip where some moment is, false where none of all is, and unknown between the two."""

from __future__ import annotations

import base64
import io
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("av")

import av
from clips import Watcher, clip

sys.path.insert(0, str(Path(__file__).parents[1] / "llm"))
from loopback import generate_reply, serve

import uql
from uql.base.errors import BindError, UnknownColumnError
from uql.base.schema import Modality
from uql.kernels.video_moments import turns
from uql.llm.providers.base import Answer, Price
from uql.llm.providers.gemini_api import Gemini
from uql.sources import media, parts, parts_reader

RED = '"there is red"'
WITH_RED = ["c0.mp4", "c1.mp4"]
CLIPS, SECONDS = 5, 12


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("clips")
    for i in range(CLIPS):
        red = (3 * i, 3 * i + 8) if i < len(WITH_RED) else (90, 91)
        clip(place / f"c{i}.mp4", seconds=SECONDS, rate=2, red=red, ground=40 + 20 * i)
    with uql.connect(place / "shop.duckdb", model=Watcher(), ledger=":memory:") as con:
        con.sql(f"CREATE TABLE clips AS SELECT 'c' || i || '.mp4' AS clip, i FROM range({CLIPS}) t(i)")
        con.sql("COMMENT ON COLUMN clips.clip IS 'video'")
    return place


@pytest.fixture(autouse=True)
def read_in_this_process(monkeypatch):
    """Frames are read here: each turn of the search would start a reader of its own."""
    reader = parts_reader._Reader()
    monkeypatch.setattr(parts, "_process", lambda part, deadline: ([reader.reply(request) for request in part], ""))


def connect(folder, budget="all", ledger=":memory:", **settings):
    return uql.connect(folder / "shop.duckdb", model=Watcher(), ledger=ledger, budget=budget, **settings)


def test_the_moment_is_a_column_beside_its_condition(folder):
    con = connect(folder)
    found = con.uql(f"SELECT i, t FROM clips WHERE {RED} ORDER BY i")
    seconds = dict(found.fetchall())
    assert [i for i in seconds for low in [3 * i] if low <= seconds[i] < low + 8] == [0, 1]
    assert [found.why(row).evidence[0].t for row in (0, 1)] == [seconds[0], seconds[1]]
    late = max(seconds, key=seconds.get)

    def rows(sql):
        return con.uql(sql).fetchall()

    assert rows(f"SELECT clips.T AS s FROM clips WHERE {RED} ORDER BY s DESC LIMIT 1") == [(seconds[late],)]
    assert rows(f"SELECT i FROM clips WHERE {RED} AND t > {min(seconds.values())}") == [(late,)]
    assert rows(f"SELECT i, t FROM clips WHERE NOT {RED} ORDER BY i") == [(2, None), (3, None), (4, None)]
    both = rows(f"SELECT i, {RED}::BOOLEAN, t IS NULL FROM clips ORDER BY i")
    assert both == [(0, True, False), (1, True, False), (2, False, True), (3, False, True), (4, False, True)]
    mean = sum(seconds.values()) / 2
    assert rows(f"SELECT avg(t), count(t) FROM clips WHERE {RED} OR i = 4") == [(mean, 2)]
    assert rows(f"SELECT s.t + 1 FROM (SELECT i, t FROM clips WHERE {RED}) s WHERE s.i = 0") == [(seconds[0] + 1,)]
    assert rows(f"SELECT clip, t FROM clips WHERE {RED} AND i > 99") == []
    assert [len(row) for row in rows(f"SELECT * FROM clips WHERE {RED}")] == [2, 2]


def test_a_moment_of_no_condition_or_of_several_is_an_error_that_says_what_to_write(folder):
    con = connect(folder)
    with pytest.raises(UnknownColumnError) as none:
        con.uql('SELECT i, t, "the number {i} in words" AS w FROM clips').fetchall()
    assert "t is the second at which it holds" in none.value.help and "unnest(frames(clip)) AS f" in none.value.help
    with pytest.raises(BindError, match="UQL204: t is the moment of several conditions") as several:
        con.uql(f'SELECT t FROM clips WHERE {RED} AND "there is blue"').fetchall()
    assert "sub-query" in several.value.help
    by_name = f"SELECT a.t AS one, b.t AS two FROM (SELECT i, t FROM clips WHERE {RED}) a JOIN (SELECT i, t FROM clips WHERE NOT {RED}) b ON a.i < b.i"
    assert all(two is None and one is not None for one, two in con.uql(by_name).fetchall())


def test_a_condition_on_a_video_beside_another_table(folder):
    """Under EXISTS, in a value for each row and in ON of an outer join; the clips of several rows are searched once."""
    con = connect(folder)
    con.sql("CREATE TEMP TABLE orders AS SELECT o, o % 3 AS i FROM range(6) t(o)")

    def rows(sql):
        return con.uql(sql).fetchall()

    seconds = dict(rows(f"SELECT i, t FROM clips WHERE {RED}"))
    exists = f"SELECT o FROM orders WHERE EXISTS (SELECT 1 FROM clips c WHERE c.i = orders.i AND {RED}) ORDER BY o"
    assert rows(exists) == [(0,), (1,), (3,), (4,)]
    each = [(o, seconds.get(o % 3)) for o in range(6)]
    found = con.uql(f"SELECT o, t FROM orders LEFT JOIN clips c ON c.i = orders.i AND {RED} ORDER BY o")
    assert [row[1] is None for row in found.fetchall()] == [second is None for _, second in each]
    value = f"SELECT o, (SELECT max(t) FROM clips c WHERE c.i = orders.i AND {RED}) AS t FROM orders ORDER BY o"
    assert [row[1] is None for row in rows(value)] == [second is None for _, second in each]
    with connect(folder) as fresh:
        fresh.sql("CREATE TEMP TABLE orders AS SELECT o, o % 3 AS i FROM range(6) t(o)")
        joined = fresh.uql(f"SELECT o, t FROM orders JOIN clips c ON c.i = orders.i WHERE {RED} ORDER BY o")
        at = [second for _, second in joined.fetchall()]
        assert len(at) == 4 and at[:2] == at[2:]
        assert joined.cost.calls <= 2 * SECONDS + SECONDS


def test_every_clip_is_settled_and_a_found_one_tells_its_moment(folder):
    con = connect(folder)
    found = con.uql(f"SELECT clip FROM clips WHERE {RED} ORDER BY clip")
    assert found.fetchall() == [(name,) for name in WITH_RED]
    assert found.exact and not found.notes
    assert SECONDS * (CLIPS - 2) < found.cost.calls < SECONDS * CLIPS - 8  # a found clip is asked no further
    (evidence,) = found.why(1).evidence
    assert 3 <= evidence.t < 11 and evidence.value is True and f"t: {evidence.t:g} s" in str(found.why(1))
    again = con.uql(f"SELECT i FROM clips WHERE NOT {RED} ORDER BY i")
    assert (again.fetchall(), again.cost.calls) == ([(2,), (3,), (4,)], 0)
    counted = con.uql(f"SELECT COUNT(*) AS n FROM clips WHERE {RED} AND i > 0").estimates["n"]
    assert (counted.value, counted.exact) == (1, True)


def test_clips_that_the_budget_leaves_open_are_neither_yes_nor_no(folder):
    """Fourteen calls for five clips: two are found, the three others stay open, and their frames bound what was missed."""
    found = connect(folder, 14).uql(f"SELECT clip FROM clips WHERE {RED} ORDER BY clip")
    assert found.fetchall() == [(name,) for name in WITH_RED]
    assert found.partial and not found.exact and found.cost.calls == 14
    (note,) = found.notes  # and none that says that the clips gave no answer
    assert note.startswith('3 of 5 clips are not settled for "there is red": no frame asked says yes')
    assert "was missed with probability ≤ 5%" in note
    assert connect(folder, 14).uql(f"SELECT clip FROM clips WHERE NOT {RED}").fetchall() == []


@pytest.mark.parametrize(("condition", "truth", "high"), [(RED, 2, 5), (f"NOT {RED}", 3, 3)])
def test_a_count_has_the_open_clips_between_its_bounds(folder, condition, truth, high):
    found = connect(folder, 14).uql(f"SELECT COUNT(*) AS n FROM clips WHERE {condition}")
    n = found.estimates["n"]
    assert not n.exact and n.unknown == 3
    assert n.low <= truth <= n.high <= high, n


def test_an_average_says_nothing_of_open_clips_and_a_share_counts_those_found(folder):
    found = connect(folder, 14).uql(
        f"SELECT AVG(i) FILTER (WHERE {RED}) AS a, COUNT(*) FILTER (WHERE {RED}) / COUNT(*) AS share FROM clips"
    )
    assert found.fetchall() == [(None, 0.4)]
    a, share = found.estimates["a"], found.estimates["share"]
    assert (a.low, a.high) == (float("-inf"), float("inf"))
    assert (share.low, share.high) == (0.4, 1.0)


def test_limit_ends_the_search(folder):
    found = connect(folder, seed=2).uql(f"SELECT clip FROM clips WHERE {RED} LIMIT 1")
    assert len(found.fetchall()) == 1 and found.cost.calls < SECONDS


@pytest.fixture
def blobs(folder, tmp_path):
    """A database with the clips as bytes, and their names."""
    place = tmp_path / "blobs.duckdb"
    with uql.connect(place, ledger=":memory:") as con:
        con.sql(
            f"CREATE TABLE clips AS SELECT parse_filename(filename) AS name, content AS clip FROM read_blob('{folder}/*.mp4')"
        )
    return place


def test_clips_in_bytes_are_searched_too(blobs):
    with uql.connect(blobs, model=Watcher(), ledger=":memory:", budget="all") as con:
        assert con.uql(f"SELECT name FROM clips WHERE {RED} ORDER BY name").fetchall() == [(n,) for n in WITH_RED]


def test_a_larger_budget_goes_on_and_the_same_one_costs_nothing(folder, tmp_path):
    query, calls = f"SELECT clip FROM clips WHERE NOT {RED}", []
    with connect(folder, ledger=str(tmp_path / "ledger.sqlite")) as con:
        for budget in (14, 14, "all"):
            found = con.uql(f"{query} WITH (budget = {budget!r})")
            calls.append((len(found.fetchall()), found.cost.calls))
        assert calls[:2] == [(0, 14), (0, 0)]
        whole = calls[2][1] + 14
        assert calls[2][0] == 3 and 3 * SECONDS < whole <= CLIPS * SECONDS
        assert con.resume(con.session.last_run).cost.calls == 0


def test_a_frame_that_a_person_corrects_is_asked_no_more(folder, tmp_path):
    with connect(folder, ledger=str(tmp_path / "ledger.sqlite")) as con:
        found = con.uql(f"SELECT clip FROM clips WHERE {RED} ORDER BY clip")
        moment = found.why(0).evidence[0].t
        found.correct(0, False)
        again = con.uql(f"SELECT clip FROM clips WHERE {RED} ORDER BY clip")
        assert [row[0] for row in again.fetchall()] == WITH_RED
        assert again.why(0).evidence[0].t != moment


def test_two_models_search_as_one_does(folder):
    second = Watcher()
    second.name = "another"
    with uql.connect(folder / "shop.duckdb", models=[Watcher(), second], ledger=":memory:", budget="all") as con:
        assert con.uql(f"SELECT clip FROM clips WHERE {RED} ORDER BY clip").fetchall() == [(n,) for n in WITH_RED]


def test_the_price_counts_frames(folder):
    price = str(connect(folder).uql(f"SELECT clip FROM clips WHERE {RED}").explain())
    assert f"–{SECONDS * CLIPS})" in next(line for line in price.splitlines() if line.startswith("Calls"))


def test_a_file_that_is_no_video_is_an_error_in_its_row(folder):
    con = connect(folder)
    con.sql("CREATE TABLE bad AS SELECT unnest(['c0.mp4', 'none.mp4', NULL]) AS clip")
    con.sql("COMMENT ON COLUMN bad.clip IS 'video'")
    found = con.uql(f"SELECT clip FROM bad WHERE {RED}")
    assert found.fetchall() == [("c0.mp4",)]
    assert [(e.row, "there is no file" in e.message) for e in found.errors] == [(1, True)]


def test_a_moment_that_fills_a_share_of_a_clip_is_missed_as_rarely_as_is_said():
    """After 2^r points the event that fills s of the clip, in two places, is missed with probability ≤ (1 − s)^(2^r)."""
    size, runs = 256, 500
    event = np.zeros(size, bool)
    event[10:25] = event[140:157] = True  # s = 1 / 8
    hits = np.array([turns(np.array([size]), [(seed,)])[event].min() for seed in range(runs)])
    for points in (1, 2, 4, 8, 16):
        missed = (hits >= points).mean()
        bound = (1 - event.mean()) ** points
        assert missed <= bound + 3 * np.sqrt(bound * (1 - bound) / runs)


def test_every_frame_has_a_turn():
    order = turns(np.array([1, 0, 7, 40]), [(1, clip) for clip in range(4)])
    assert len(order) == 48 and np.isfinite(order).all()
    assert len(np.unique(order)) == 48


class WholeWatcher(Watcher):
    """A model that takes videos as files too, at a price."""

    price = Price(1.0, 4.0)

    def __init__(self):
        super().__init__()
        self.capabilities = replace(self.capabilities, video=True)

    def _one(self, question, row):
        if not row.cells[0].media_type.startswith("video/"):
            return super()._one(question, row)
        self.seen.append(row.cells[0])
        with av.open(io.BytesIO(row.cells[0].value)) as film:
            pixels = [frame.to_ndarray(format="rgb24").astype(int) for frame in film.decode(video=0)]
        return Answer(any(((p[..., 0] - p[..., 1]) > 90).any() for p in pixels), 1.0)


@pytest.fixture
def watching(folder):
    model = WholeWatcher()
    with uql.connect(folder / "shop.duckdb", model=model, ledger=":memory:", budget="all") as con:
        yield con, model


def kinds(model):
    return [cell.media_type.partition("/")[0] for cell in model.seen]


def test_clips_are_sent_whole_where_their_frames_do_not_fit_in_the_budget(watching):
    con, model = watching
    query = f"SELECT clip FROM clips WHERE {RED} ORDER BY clip WITH (budget = 14)"
    assert "videos are sent whole" in str(con.uql(query).explain())
    found = con.uql(query)
    assert found.fetchall() == [(name,) for name in WITH_RED]
    assert found.exact and not found.notes and found.cost.calls == CLIPS and set(kinds(model)) == {"video"}
    assert con.uql(f"SELECT COUNT(*) AS n FROM clips WHERE NOT {RED} WITH (budget = 14)").fetchall() == [(3,)]
    assert len(model.seen) == CLIPS  # answered from the ledger


def test_frames_are_asked_where_they_cost_less_and_files_where_those_do(watching):
    """By frames up to the first yes a clip costs (1 + 11 · share of noes) requests, by the file one of twelve pictures."""
    con, model = watching
    query = f"SELECT clip FROM clips WHERE {RED}"
    price = str(con.uql(query).explain())
    assert "videos are sent whole" not in price and "videos whole" in price and "dearer in USD" in price
    con.uql(query).fetchall()
    assert set(kinds(model)) == {"image"}
    rare = 'SELECT clip FROM clips WHERE "a zebra is seen, or a giraffe, or any other animal of the savannah that has a long neck"'
    con.uql(f"{rare} AND i > 1 WITH (budget = 4)").fetchall()  # and now it is known to be rare
    model.seen.clear()
    assert con.uql(rare).exact
    assert set(kinds(model)) == {"video"}


def test_a_moment_is_told_by_frames_and_a_file_too_large_to_send_is_searched_by_them(watching, monkeypatch):
    con, model = watching
    rows = con.uql(f"SELECT clip, t FROM clips WHERE {RED} ORDER BY clip WITH (budget = 60)").fetchall()
    assert [name for name, t in rows if t is not None] == WITH_RED and set(kinds(model)) == {"image"}
    sizes = sorted(
        (place.stat().st_size, place.name) for place in con.session.catalog.parts._media.folder.glob("c?.mp4")
    )
    monkeypatch.setitem(media.MOST_BYTES, Modality.VIDEO, sizes[-2][0])  # the largest is not sent
    model.seen.clear()
    found = con.uql('SELECT i FROM clips WHERE NOT "there is much red" ORDER BY i WITH (budget = 30)')
    assert found.fetchall() == [(2,), (3,), (4,)] and found.exact and not found.errors
    assert kinds(model).count("video") == CLIPS - 1 and kinds(model).count("image") <= SECONDS


def test_a_clip_in_bytes_that_is_too_large_to_send_is_searched_by_frames(watching, folder, monkeypatch):
    con, model = watching
    con.sql(f"CREATE TEMP TABLE films AS SELECT content AS film FROM read_blob('{folder / 'c?.mp4'}')")
    con.sql("COMMENT ON COLUMN films.film IS 'video'")
    monkeypatch.setitem(media.MOST_BYTES, Modality.VIDEO, 100)
    found = con.uql(f"SELECT COUNT(*) AS n FROM films WHERE {RED} WITH (budget = 14)")
    assert not found.errors and set(kinds(model)) == {"image"}


def test_gemini_is_sent_clips_as_files_within_a_cap_on_tokens_that_their_seconds_keep(folder):
    """Over HTTP: one request a clip. Ten seconds are 2,900 tokens, far more than the few bytes of such a clip tell."""
    with_red, sent = [(folder / name).read_bytes() for name in WITH_RED], []

    def handler(body, headers):
        film = base64.b64decode(body["contents"][0]["parts"][0]["inlineData"]["data"])
        sent.append(film)
        yes = "true" if film in with_red else "false"
        as_json = "responseJsonSchema" in body["generationConfig"]
        return generate_reply(f'{{"q1": {yes}}}' if as_json else yes, promptTokenCount=290 * SECONDS)

    def connected(told, tokens):
        model = Gemini("g", api_key="k", url=told.url, price=Price(0.3, 2.5))
        return uql.connect(folder / "shop.duckdb", model=model, ledger=":memory:", max_tokens=tokens)

    query = f"SELECT clip FROM clips WHERE {RED} ORDER BY clip WITH (budget = 14)"
    with serve({"/models/g:generateContent": handler}) as told, connected(told, 10_000 * CLIPS) as con:
        assert "videos are sent whole" in str(con.uql(query).explain())
        found = con.uql(query)
        assert found.fetchall() == [(name,) for name in WITH_RED] and found.exact
        assert found.cost.calls == CLIPS == len(sent)
        assert found.cost.input_tokens == 290 * SECONDS * CLIPS
    with serve({"/models/g:generateContent": handler}) as told, connected(told, 9_000) as con:
        assert con.uql(query).cost.input_tokens <= 9_000
