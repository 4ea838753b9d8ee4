"""The page's server: who may talk to it, and what it says."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import duckdb
import pytest
from hash_model import HashModel
from starlette.testclient import TestClient

import uql
from uql.llm.providers.base import CallError
from uql.show.plots import INK
from uql.show.progress import Counts
from uql.ui.app import LONGEST_BODY, app, cookie
from uql.ui.saved import Saved
from uql.ui.session import MAX_WAITING, Session, Work

TOKEN = "a-token"
COOKIE = cookie(8000)
COUNT = 'SELECT COUNT(*) AS n FROM reviews WHERE "it is good" WITH (budget = 40)'


@pytest.fixture
def model() -> HashModel:
    return HashModel({"it is good": 0.4})


@pytest.fixture
def session(model: HashModel) -> Iterator[Session]:
    duck = duckdb.connect(":memory:")
    duck.execute("CREATE TABLE reviews AS SELECT range AS id, 'review ' || range AS text FROM range(500)")
    made = Session(uql.attach(duck, model=model, ledger=":memory:"))
    yield made
    made.close()


@pytest.fixture
def page(session: Session) -> Iterator[TestClient]:
    with TestClient(app(session, TOKEN), base_url="http://127.0.0.1:8000", cookies={COOKIE: TOKEN}) as client:
        yield client


def post(page: TestClient, path: str, text: str) -> Any:
    return page.post(path, json={"text": text}, headers={"X-UQL": "1"})


def ran(page: TestClient, text: str) -> dict[str, Any]:
    """The last snapshot of a statement that was run to its end, as the event stream gives it."""
    begun = post(page, "/api/runs", text)
    assert begun.status_code == 201
    with page.stream("GET", f"/api/runs/{begun.json()['id']}/events") as stream:
        lines = [line for line in stream.iter_lines() if line.startswith("data: ")]
    last: dict[str, Any] = json.loads(lines[-1].removeprefix("data: "))
    return last


# ------------------------------------------------------------------------------------------------------- who may talk to it
def test_without_the_token_nothing_is_said(session: Session) -> None:
    with TestClient(app(session, TOKEN), base_url="http://127.0.0.1:8000") as stranger:
        for path in ("/", "/api/schema", "/api/runs", "/static/app.js", "/?token=wrong"):
            assert stranger.get(path).status_code == 403


def test_the_token_in_the_address_becomes_a_cookie_that_scripts_cannot_read(session: Session) -> None:
    with TestClient(app(session, TOKEN), base_url="http://127.0.0.1:8000") as visitor:
        first = visitor.get(f"/?token={TOKEN}", follow_redirects=False)
        assert first.status_code == 303 and first.headers["location"] == "/"
        assert "HttpOnly" in first.headers["set-cookie"] and "samesite=strict" in first.headers["set-cookie"].lower()
        assert "<title>UQL</title>" in visitor.get("/").text


def test_another_name_of_this_machine_is_refused(session: Session) -> None:
    with TestClient(app(session, TOKEN), base_url="http://rebound.example:8000", cookies={COOKIE: TOKEN}) as rebound:
        assert rebound.get("/api/schema").status_code == 403


def test_a_form_of_another_site_starts_nothing(page: TestClient, model: HashModel) -> None:
    assert page.post("/api/runs", json={"text": COUNT}).status_code == 403
    assert page.get("/api/runs").json() == [] and model.calls == 0


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://127.0.0.1:9000", "https://127.0.0.1:8000"])
def test_a_page_of_another_origin_is_refused(page: TestClient, origin: str) -> None:
    for request in (page.get("/api/schema", headers={"Origin": origin}), page.get("/", headers={"Origin": origin})):
        assert request.status_code == 403
    headers = {"X-UQL": "1", "Origin": origin}
    assert page.post("/api/runs", json={"text": "SELECT 1"}, headers=headers).status_code == 403
    own = {"X-UQL": "1", "Origin": "http://127.0.0.1:8000"}
    assert page.post("/api/check", json={"text": "SELECT 1"}, headers=own).status_code == 200


def test_two_pages_on_one_machine_keep_their_own_cookies(session: Session) -> None:
    with TestClient(app(session, TOKEN), base_url="http://127.0.0.1:8001", cookies={COOKIE: TOKEN}) as other:
        assert other.get("/api/schema").status_code == 403  # the cookie is that of port 8000
        other.get(f"/?token={TOKEN}")
        assert other.cookies[cookie(8001)] == TOKEN and other.get("/api/schema").status_code == 200


async def posted(session: Session, receive: Any) -> int:
    """The status of a POST whose body comes as `receive` gives it."""
    sent: list[dict[str, Any]] = []

    async def send(message: Any) -> None:
        sent.append(message)

    headers = [(b"host", b"127.0.0.1:8000"), (b"x-uql", b"1"), (b"cookie", f"{COOKIE}={TOKEN}".encode())]
    scope: dict[str, Any] = {"type": "http", "method": "POST", "path": "/api/check", "raw_path": b"/api/check"}
    scope |= {"query_string": b"", "headers": headers, "scheme": "http", "server": ("127.0.0.1", 8000)}
    await app(session, TOKEN)(scope, receive, send)
    return int(sent[0]["status"])


def test_a_body_that_is_too_long_is_refused_before_it_ends(session: Session) -> None:
    parts = 0

    async def receive() -> dict[str, Any]:
        nonlocal parts
        parts += 1
        assert parts < 100, "the body was read on"
        return {"type": "http.request", "body": b"x" * 65_536, "more_body": True}

    assert asyncio.run(posted(session, receive)) == 413
    assert parts <= LONGEST_BODY // 65_536 + 2


def test_a_body_that_does_not_end_is_refused(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("uql.ui.app.BODY_TIMEOUT_S", 0.3)

    async def receive() -> dict[str, Any]:
        await asyncio.sleep(0.05)
        return {"type": "http.request", "body": b"x", "more_body": True}

    assert asyncio.run(asyncio.wait_for(posted(session, receive), 10)) == 408


@pytest.mark.parametrize(
    "body",
    [
        b'{"text": "SELECT \\ud800"}',
        b'{"text": ' + b"[" * 100_000,
        b'{"a":' * 50_000,
        json.dumps({"text": "SELECT " + "(" * 3_000}).encode(),
        json.dumps({"text": "SELECT " + "(" * 3_000 + "1" + ")" * 3_000}).encode(),
        json.dumps({"text": "SELECT " + "[" * 3_000}).encode(),
        json.dumps({"text": "SELECT 1 -- " + "x" * 100_000}).encode(),
    ],
)
def test_a_body_that_no_parser_can_bear_is_refused_within_a_second(page: TestClient, body: bytes) -> None:
    for path in ("/api/check", "/api/runs", "/api/runs?kind=ask"):
        begun = time.process_time()
        assert page.post(path, content=body, headers={"X-UQL": "1"}).status_code in (400, 413)
        assert time.process_time() - begun < 1.0
    assert page.get("/api/runs").json() == []


def test_the_queue_has_an_end(session: Session, page: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    held = threading.Event()
    monkeypatch.setattr(Session, "_query", lambda self, work: held.wait(60))
    found = [post(page, "/api/runs", "SELECT 1 AS a") for _ in range(300)]
    held.set()
    refused = [reply for reply in found if reply.status_code == 429]
    assert 300 - MAX_WAITING - 1 <= len(refused) <= 300 - MAX_WAITING
    assert str(MAX_WAITING) in refused[0].json()["error"]["message"]


def test_scripts_come_from_this_page_alone(page: TestClient) -> None:
    policy = page.get("/").headers["content-security-policy"]
    assert "script-src 'self'" in policy and "unsafe" not in policy


@pytest.mark.parametrize("name", ["../app.py", "..%2fapp.py", "index.html", "nothing.js"])
def test_only_the_assets_are_files(page: TestClient, name: str) -> None:
    assert page.get(f"/static/{name}").status_code == 404


# ---------------------------------------------------------------------------------------------------------- before running
def test_the_price_is_known_before_anything_is_asked(page: TestClient, model: HashModel) -> None:
    found = post(page, "/api/check", COUNT).json()
    assert found["ok"] and found["plan"]["price"]["calls"]["expected"] == 40 and found["plan"]["budget_calls"] == 40
    assert model.calls == 0


def test_where_an_error_ends_the_sample_no_budget_is_named(page: TestClient) -> None:
    found = post(page, "/api/check", COUNT.replace("budget = 40", "error = 0.1")).json()["plan"]
    assert found["budget_calls"] is None and found["price"]["calls"]["high"] > 128


def test_an_error_has_its_place_in_the_text(page: TestClient) -> None:
    text = 'SELECT COUNT(*) FROM reviewz WHERE "it is good"'
    error = post(page, "/api/check", text).json()["error"]
    assert error["code"] == "UQL201" and text[error["start"] : error["end"]] == "reviewz" and "reviews" in error["help"]


@pytest.mark.parametrize(
    "text",
    [
        "SHOW TABLES",
        "SUMMARIZE reviews",
        "VALUES (1)",
        "SELECT 1; SELECT 2",
        'PIVOT (SELECT id, "the mood" AS m FROM reviews) ON m USING count(*)',
        'PIVOT (SELECT id, "the mood" USING (text) AS m FROM reviews) ON m USING count(*)',
        'SUMMARIZE SELECT "the mood" AS m FROM reviews',
    ],
)
def test_a_statement_that_duckdb_runs_has_no_plan_and_no_error(page: TestClient, text: str) -> None:
    assert post(page, "/api/check", text).json() == {"ok": True, "plan": None}


@pytest.mark.parametrize("text", ["SELECT * FROM reviews WHER id = 1", "SHOW TABLES TABLES", "SELECT 1; SELECT"])
def test_a_statement_that_nothing_can_read_is_an_error(page: TestClient, text: str) -> None:
    assert post(page, "/api/check", text).json()["error"]["code"] == "UQL100"


def test_half_a_statement_is_an_error_and_no_failure(page: TestClient) -> None:
    for text in ("SELECT", "SELECT (", '"', "SELECT 1; SELECT", "\x00", "   "):
        assert post(page, "/api/check", text).status_code == 200


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'{"text": 1}', b'{"texts": ""}', b"\xff"])
def test_a_body_that_holds_no_text_is_refused(page: TestClient, body: bytes) -> None:
    for path in ("/api/check", "/api/runs"):
        assert page.post(path, content=body, headers={"X-UQL": "1"}).status_code == 400


def test_the_list_at_the_side_names_tables_and_columns(page: TestClient) -> None:
    assert page.get("/api/schema").json() == {
        "tables": [{"table": "reviews", "columns": ["id", "text"], "types": ["BIGINT", "VARCHAR"], "rows": 500}]
    }


# ----------------------------------------------------------------------------------------------------------------- running
def test_a_count_runs_to_its_end_and_shows_its_interval(page: TestClient, model: HashModel) -> None:
    last = ran(page, COUNT)
    assert last["status"] == "done" and last["calls"] == model.calls <= 40
    assert last["asked"] == {"it is good": last["calls"]}
    (estimate,) = last["estimates"]
    assert estimate["low"] <= estimate["value"] <= estimate["high"]
    course = estimate["course"]  # whole, however few of the updates the page heard
    assert 2 <= len(course) <= 64 and course[-1][1:] == [estimate[k] for k in ("low", "high", "value")]
    assert [at for at, *_ in course] == sorted(at for at, *_ in course)
    (cell,) = page.get(f"/api/runs/{last['id']}/rows").json()["rows"]
    assert "±" in cell[0] or "(" in cell[0]


def test_the_progress_of_a_run_that_has_ended_says_what_its_rows_say(
    page: TestClient, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last estimate on the way may be of fewer answers than the result."""
    real = Counts.add

    def first_alone(counts: Counts, event: Any) -> None:
        if event.kind != "estimate" or counts.ended or not counts.course:
            real(counts, event)

    monkeypatch.setattr(Counts, "add", first_alone)
    last = ran(page, 'SELECT COUNT(*) AS n FROM reviews WHERE "it is good" WITH (budget = 200)')
    (work,) = session.works()
    assert work.result is not None
    found: Any = work.result.estimates["n"]
    (estimate,) = last["estimates"]
    assert (estimate["low"], estimate["high"]) == (found.low, found.high)


def test_rows_come_in_pages_with_null_as_null(page: TestClient) -> None:
    last = ran(page, "SELECT id, CASE WHEN id % 2 = 0 THEN text END AS t FROM reviews ORDER BY id")
    assert last["result"]["rows"] == 500 and last["result"]["columns"] == ["id", "t"]
    rows = page.get(f"/api/runs/{last['id']}/rows?offset=497&limit=200").json()
    assert rows["rows"] == [["497", None], ["498", "review 498"], ["499", None]]
    assert rows["numbers"] == [497, 498, 499] and rows["total"] == 500
    for wrong in (
        "offset=x",
        "order=x",
        "order=3",
        "filters=[]",
        "filters={",
        'filters={"9":"a"}',
        "filters=" + "[" * 9_000,
    ):
        assert page.get(f"/api/runs/{last['id']}/rows?{wrong}").status_code == 400, wrong


def test_rows_are_sorted_and_filtered_over_the_whole_result(page: TestClient) -> None:
    last = ran(page, "SELECT id, CASE WHEN id % 2 = 0 THEN text END AS t, id / 10 AS tenth FROM reviews ORDER BY id")

    def rows(**query: Any) -> Any:
        query["filters"] = json.dumps(query.get("filters", {}))
        return page.get(f"/api/runs/{last['id']}/rows", params=query).json()

    found = rows(order="-1", limit=2)
    assert (
        [row[0] for row in found["rows"]] == ["499", "498"] and found["numbers"] == [499, 498] and found["total"] == 500
    )
    assert rows(filters={1: "> 495"}, order="-1", limit=1) == {
        "total": 4,
        "numbers": [499],
        "rows": [["499", None, "49.9"]],
    }
    assert rows(filters={2: "REVIEW 49"})["total"] == 5  # of 490 to 498; 49 is odd and has no text
    assert rows(filters={2: "null"})["total"] == rows(filters={2: "!null"})["total"] == 250
    assert rows(filters={1: "= 7", 3: "<= 0.7"})["numbers"] == [7]
    assert rows(filters={1: "> no number"})["total"] == 0
    assert rows(filters={2: "'; DROP TABLE numbered --"})["total"] == 0
    assert rows(order="2,-1", limit=1)["rows"][0][1] == "review 0"  # NULL comes last


def test_a_cell_is_sent_whole_with_its_own_media_type(page: TestClient) -> None:
    statement = (
        "SELECT repeat('long ', 200) AS long, '{\"a\": [1]}' AS js, {'b': [1, 2]} AS st, NULL AS nothing, 1.5 AS number,"
        " '\\x89PNG\\x0D\\x0A\\x1A\\x0A....'::BLOB AS picture, '<!doctype html><script>alert(1)</script>'::BLOB AS page, '../x.png' AS path"
    )
    last = ran(page, statement)
    assert last["result"]["media"] == ["", "", "", "", "", "image", "", "image"]
    (row,) = page.get(f"/api/runs/{last['id']}/rows").json()["rows"]
    assert len(row[0]) == 301 and row[0].endswith("…") and row[3] is None
    assert row[5] == "image/png, 12 bytes" and row[6] == "text/html, 40 bytes"
    cells = [page.get(f"/api/runs/{last['id']}/cell?row=0&column={i}") for i in range(8)]
    assert cells[0].text == "long " * 200 and cells[1].text == '{\n  "a": [\n    1\n  ]\n}'
    assert json.loads(cells[2].text) == {"b": [1, 2]} and cells[3].text == "NULL" and cells[4].text == "1.5"
    assert cells[5].headers["content-type"] == "image/png" and cells[5].content.startswith(b"\x89PNG")
    assert cells[6].headers["content-type"].startswith("text/plain")  # never as a page
    assert "outside" in cells[7].text  # a path that leads out of the folder is not read
    assert {cell.headers["x-content-type-options"] for cell in cells} == {"nosniff"}
    for wrong in ("row=1&column=0", "row=0&column=8", "row=0", "row=-1&column=0"):
        assert page.get(f"/api/runs/{last['id']}/cell?{wrong}").status_code == 400


@pytest.mark.thorough
@pytest.mark.parametrize(
    "type", ["DATE", "TIMESTAMP", "TIMESTAMPTZ", "DATE[]", "INTERVAL", "HUGEINT", "BIT", "DOUBLE", "BLOB"]
)
def test_values_at_the_ends_of_every_type_are_shown_or_refused_in_words(page: TestClient, type: str) -> None:
    ends = {
        "DATE": "'5877642-06-25 (BC)'",
        "DATE[]": "['5881580-07-10']",
        "HUGEINT": "-170141183460469231731687303715884105728",
    }
    ends |= {"TIMESTAMP": "'294247-01-10 04:00:54'", "TIMESTAMPTZ": "'294247-01-10 04:00:54+00'", "INTERVAL": "'1 day'"}
    ends |= {"BIT": "'101'", "DOUBLE": "1e308", "BLOB": "'a'"}
    last = ran(page, f"SELECT ({ends[type]})::{type} AS v UNION ALL SELECT NULL")
    for path in (
        "rows",
        "columns",
        "rows.csv",
        "rows.parquet",
        "chart.svg",
        'rows?filters={"1":"> 3"}',
        "rows?order=-1",
    ):
        reply = page.get(f"/api/runs/{last['id']}/{path}")
        assert reply.status_code in (200, 400), path
    whole = page.get(f"/api/runs/{last['id']}/cell?row=0&column=0")
    assert type == "HUGEINT" or (whole.status_code == 200 and whole.text)


def test_columns_have_statistics(page: TestClient) -> None:
    last = ran(
        page, "SELECT id, CASE WHEN id % 2 = 0 THEN 'even' END AS t, DATE '2024-01-01' + id::INT AS day FROM reviews"
    )
    number, text, day = page.get(f"/api/runs/{last['id']}/columns").json()
    assert number["low"] == "0" and number["high"] == "499" and sum(number["bins"]) == 500 and len(number["bins"]) == 16
    assert text == {"name": "t", "type": "VARCHAR", "missing": 250, "distinct": 1, "top": [["even", 250]]}
    assert day["low"] == "2024-01-01" and sum(day["bins"]) == 500
    odd = ran(page, "SELECT 'nan'::DOUBLE AS a, NULL::INT AS b, [1] AS c, INTERVAL 1 DAY AS d, 1 AS one")
    stats = page.get(f"/api/runs/{odd['id']}/columns").json()
    assert "bins" not in stats[0] and "bins" not in stats[1] and stats[2]["top"] == [["[1]", 1]]
    assert stats[4]["bins"][0] == 1


def test_rows_are_exported_with_their_bounds(page: TestClient) -> None:
    import io

    import pyarrow.parquet as pq

    last = ran(page, COUNT)
    files = {ending: page.get(f"/api/runs/{last['id']}/rows.{ending}") for ending in ("csv", "md", "parquet")}
    assert files["csv"].text.startswith("n,n_low,n_high\n") and files["md"].text.startswith("| n |")
    assert pq.read_table(io.BytesIO(files["parquet"].content)).column_names == ["n", "n_low", "n_high"]
    assert all("attachment" in file.headers["content-disposition"] for file in files.values())
    assert page.get(f"/api/runs/{last['id']}/rows.exe").status_code == 404


def test_the_head_says_no_model_only_where_there_is_none(page: TestClient) -> None:
    """The name of the model is not in the page: it comes with the state, as do the two of a cascade."""
    assert 'placeholder="none"' not in page.get("/").text
    with uql.connect(models=["http://127.0.0.1:9/v1#small", "openai:large"], ledger=":memory:") as con:
        session = Session(con)
        assert session.state()["model"] is None
        assert session.state()["models"] == ("http://127.0.0.1:9/v1#small", "openai:large")
        session.close()


def test_the_head_shows_and_changes_budget_and_counts_what_was_spent(page: TestClient, session: Session) -> None:
    before = page.get("/api/state").json()
    assert before["model"] == "hash" and before["model_fixed"] and before["budget"] is None and before["calls"] == 0
    changed = page.post("/api/settings", json={"budget": "40"}, headers={"X-UQL": "1"}).json()
    assert changed["budget"] == 40
    free = 'SELECT COUNT(*) AS n FROM reviews WHERE "it is good"'
    assert post(page, "/api/check", free).json()["plan"]["budget_calls"] == 40
    last = ran(page, free)
    after = page.get("/api/state").json()
    assert after["calls"] == last["calls"] > 30 and after["usd"] == pytest.approx(last["usd"]) and after["usd"] > 0
    ran(page, "SET uql.budget = 20")
    assert page.get("/api/state").json()["budget"] == 20
    assert (
        post(page, "/api/check", 'SELECT COUNT(*) FROM reviews WHERE "it is bad"').json()["plan"]["budget_calls"] == 20
    )
    for wrong in ({"budget": "many"}, {"ledger": "other.sqlite"}, {"budget": 1.5}):
        assert page.post("/api/settings", json=wrong, headers={"X-UQL": "1"}).status_code == 400
    assert page.post("/api/settings", json={"budget": "1"}).status_code == 403


def test_saved_queries_of_a_ledger_in_a_server_stand_beside_the_usual_one() -> None:
    assert Saved("postgresql://ann:secret@db.example/uql").file.path == Saved(None).file.path
    assert Saved(":memory:").file.path is None


def test_queries_are_saved_beside_the_ledger_and_the_ledgers_runs_are_listed(tmp_path: Path, model: HashModel) -> None:
    for round in range(2):
        duck = duckdb.connect(":memory:")
        duck.execute("CREATE TABLE reviews AS SELECT range AS id, 'review ' || range AS text FROM range(50)")
        own = Session(uql.attach(duck, model=model, ledger=str(tmp_path / "ledger.sqlite")))
        with TestClient(app(own, TOKEN), base_url="http://127.0.0.1:8000", cookies={COOKIE: TOKEN}) as client:
            if round == 0:
                assert client.get("/api/history").json() == [] and client.get("/api/saved").json() == {}
                client.post("/api/saved", json={"name": " count ", "text": COUNT}, headers={"X-UQL": "1"})
                client.post("/api/saved", json={"name": "gone", "text": "SELECT 1"}, headers={"X-UQL": "1"})
                client.post("/api/saved", json={"name": "gone", "text": ""}, headers={"X-UQL": "1"})
                ran(client, COUNT)
            else:
                assert client.get("/api/saved").json() == {"count": COUNT}
                (run,) = client.get("/api/history").json()
                assert run["statement"] == COUNT and run["calls"] > 0
        own.close()
    assert (tmp_path / "saved_queries.json").stat().st_mode & 0o777 == 0o600
    broken = Session(uql.attach(duckdb.connect(":memory:"), model=model, ledger=str(tmp_path / "ledger.sqlite")))
    with TestClient(app(broken, TOKEN), base_url="http://127.0.0.1:8000", cookies={COOKIE: TOKEN}) as client:
        for spoiled in ("{", "[" * 100_000):
            (tmp_path / "saved_queries.json").write_text(spoiled)
            assert client.get("/api/saved").json()["error"]["code"] == "UQL503"
    broken.close()


def test_open_tabs_are_kept_for_each_database(tmp_path: Path, model: HashModel) -> None:
    def page_over(database: str, work: Any, ledger: str = str(tmp_path / "ledger.sqlite")) -> Any:
        own = Session(uql.connect(tmp_path / database, model=model, ledger=ledger))
        with TestClient(app(own, TOKEN), base_url="http://127.0.0.1:8000", cookies={COOKIE: TOKEN}) as client:
            found = work(client)
        own.close()
        return found

    def texts(client: TestClient) -> Any:
        return client.get("/api/tabs").json()["texts"]

    def keep(client: TestClient) -> Any:
        return client.post("/api/tabs", json={"texts": ["SELECT 1", COUNT]}, headers={"X-UQL": "1"}).status_code

    assert page_over("a.duckdb", texts) == [] and page_over("a.duckdb", keep) == 200
    assert page_over("a.duckdb", texts) == ["SELECT 1", COUNT] and page_over("b.duckdb", texts) == []
    assert (tmp_path / "open_tabs.json").stat().st_mode & 0o777 == 0o600
    assert page_over("c.duckdb", keep, ":memory:") == 200
    assert list(json.loads((tmp_path / "open_tabs.json").read_text())) == [str(tmp_path / "a.duckdb")]


@pytest.mark.parametrize("body", [{}, {"texts": "SELECT 1"}, {"texts": [1]}])
def test_tabs_that_are_no_texts_are_refused(page: TestClient, body: Any) -> None:
    assert page.post("/api/tabs", json=body, headers={"X-UQL": "1"}).status_code == 400


def test_a_dropped_file_is_a_table_of_this_session(page: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    def drop(name: str, data: bytes) -> Any:
        return page.post("/api/files", params={"name": name}, content=data, headers={"X-UQL": "1"})

    assert drop("../My shop, 2024.csv", b"a,b\n1,x\n2,y\n").json() == {"table": "my_shop_2024"}
    assert drop("reviews.csv", b"a\n1\n").json() == {"table": "reviews_2"}
    last = ran(page, "SELECT sum(a) AS s FROM my_shop_2024")
    assert page.get(f"/api/runs/{last['id']}/rows").json()["rows"] == [["3"]]
    assert post(page, "/api/check", "SELECT b FROM my_shop_2024").json()["ok"]
    assert drop("photo.png", b"\x89PNG\r\n\x1a\n....").json() == {"table": "photo"}
    last = ran(page, "SELECT * FROM photo")
    assert last["result"]["media"] == ["image", "image"]  # the name of a picture, and the picture
    for odd in ("x.exe", "..", "", "a\x00b", "/", ".csv", "'; DROP TABLE reviews; --"):
        assert drop(odd, b"MZ").json()["error"]["code"] in ("UQL503", "UQL501"), odd
    assert page.post("/api/files?name=a.csv", content=b"a\n1\n").status_code == 403
    wide = ",".join(f"c{i}" for i in range(100_000)).encode() + b"\n"
    began = time.process_time()
    assert "100,000 columns" in drop("wide.csv", wide).json()["error"]["message"]
    assert time.process_time() - began < 5
    monkeypatch.setattr("uql.ui.app.LONGEST_FILE", 10)
    assert drop("big.csv", b"a\n" * 10).status_code == 413


def test_an_answer_is_corrected_and_the_next_run_takes_it(page: TestClient, model: HashModel) -> None:
    text = 'SELECT id, "it is good"::BOOLEAN AS good FROM reviews LIMIT 5'
    last = ran(page, text)
    (row,) = page.get(f"/api/runs/{last['id']}/rows?limit=1").json()["rows"]
    why = page.get(f"/api/runs/{last['id']}/why?row=0").json()
    assert why["clauses"] == ["it is good"]
    wrong = {"true": "no", "false": "yes"}[row[1]]

    def correct(**given: Any) -> Any:
        return page.post(f"/api/runs/{last['id']}/correct", json=given, headers={"X-UQL": "1"})

    assert correct(row=0, value=wrong, clause="it is good").json()["value"] == str(wrong == "yes")
    again = ran(page, text)
    (now,) = page.get(f"/api/runs/{again['id']}/rows?limit=1").json()["rows"]
    assert now[1] != row[1] and again["calls"] == 0
    for given in (
        {"row": 99, "value": "yes"},
        {"row": -1, "value": "yes"},
        {"row": 0, "value": 3},
        {"row": 0, "value": "perhaps"},
    ):
        assert correct(**given).status_code == 400, given
    assert page.get(f"/api/runs/{last['id']}/why?row=99").status_code == 400


def test_failures_are_asked_again(tmp_path: Path) -> None:
    class Broken(HashModel):
        broken = True

        async def answer(self, request: Any) -> Any:
            if self.broken and request.row.cells[0].value == "review 7":
                raise CallError("refusal", "no")
            return await super().answer(request)

    broken = Broken()
    duck = duckdb.connect(":memory:")
    duck.execute("CREATE TABLE reviews AS SELECT range AS id, 'review ' || range AS text FROM range(10)")
    own = Session(uql.attach(duck, model=broken, ledger=str(tmp_path / "ledger.sqlite")))
    with TestClient(app(own, TOKEN), base_url="http://127.0.0.1:8000", cookies={COOKIE: TOKEN}) as client:
        last = ran(client, 'SELECT id, "it is good" AS good FROM reviews')
        assert last["result"]["errors"] == 1
        broken.broken = False
        again = client.post(f"/api/runs/{last['id']}/retry", json={}, headers={"X-UQL": "1"}).json()
        with client.stream("GET", f"/api/runs/{again['id']}/events") as stream:
            *_, end = (json.loads(line[6:]) for line in stream.iter_lines() if line.startswith("data: "))
        assert end["result"]["errors"] == 0 and end["calls"] == 1
    own.close()


def test_a_page_that_only_reads_refuses_to_change_the_database(page: TestClient, session: Session) -> None:
    for text in (
        "CREATE TABLE x AS SELECT 1 AS a",
        "SELECT 1 AS a TO x",
        "DROP TABLE reviews",
        "COPY reviews TO 'x.csv'",
    ):
        last = ran(page, text)
        assert last["status"] == "failed" and last["error"]["code"] in ("UQL511", "UQL101"), text
    assert [t["table"] for t in session.schema()] == ["reviews"]


def test_a_page_that_may_write_stores_a_table(model: HashModel) -> None:
    writing = Session(uql.attach(duckdb.connect(":memory:"), model=model, ledger=":memory:"), write=True)
    with TestClient(app(writing, TOKEN), base_url="http://127.0.0.1:8000", cookies={COOKIE: TOKEN}) as client:
        assert ran(client, "CREATE TABLE x AS SELECT 1 AS a")["status"] == "done"
        assert client.get("/api/schema").json()["tables"][0]["table"] == "x"
    writing.close()


def test_a_run_that_fails_says_why_and_has_no_rows(page: TestClient) -> None:
    last = ran(page, "SELECT nothing FROM reviews")
    assert last["status"] == "failed" and last["error"]["code"] == "UQL202"
    refused = page.get(f"/api/runs/{last['id']}/rows")
    assert refused.status_code == 400 and refused.json()["error"]["code"] == "UQL513"


def test_a_cancelled_run_keeps_what_it_has(session: Session) -> None:
    class Slow(HashModel):
        async def answer(self, request: Any) -> Any:
            time.sleep(0.02)
            return await super().answer(request)

    slow = Slow()
    duck = duckdb.connect(":memory:")
    duck.execute("CREATE TABLE reviews AS SELECT range AS id, 'review ' || range AS text FROM range(2000)")
    own = Session(uql.attach(duck, model=slow, ledger=":memory:", concurrency=2))
    work = own.start('SELECT COUNT(*) AS n FROM reviews WHERE "it is good" WITH (budget = 1000)')
    while work.counts.calls < 10:
        time.sleep(0.01)
    own.cancel(work)
    while work.status == "running":
        time.sleep(0.01)
    assert work.status in ("interrupted", "failed") and slow.calls < 500
    own.close()


def test_a_run_that_is_cancelled_before_it_asks_pays_nothing(session: Session, model: HashModel) -> None:
    work = session.start(COUNT)
    while work.status == "waiting":
        time.sleep(0)
    session.cancel(work)
    while work.status == "running":
        time.sleep(0.01)
    assert work.status == "interrupted" and model.calls == 0


# --------------------------------------------------------------------------------------------------------------- what came
def test_a_result_is_drawn(page: TestClient) -> None:
    pytest.importorskip("vl_convert", reason="the plot extra is not installed")
    last = ran(page, "SELECT id % 3 AS part, COUNT(*) AS n FROM reviews GROUP BY ALL ORDER BY 1")
    picture = page.get(f"/api/runs/{last['id']}/chart.svg")
    assert picture.headers["content-type"].startswith("image/svg+xml") and picture.text.startswith("<svg")
    assert 'fill="white"' in picture.text and INK not in picture.text
    dark = page.get(f"/api/runs/{last['id']}/chart.svg?dark=1").text
    assert INK in dark and 'fill="white"' not in dark
    words = ran(page, "SELECT text FROM reviews LIMIT 3")
    assert page.get(f"/api/runs/{words['id']}/chart.svg").json()["error"]["code"] == "UQL514"


def test_two_results_are_compared_row_by_row(page: TestClient) -> None:
    one = ran(page, "SELECT id FROM reviews WHERE id < 3")["id"]
    other = ran(page, "SELECT id FROM reviews WHERE id BETWEEN 1 AND 3")["id"]
    found = page.get(f"/api/diff?a={one}&b={other}").json()
    assert found == {"columns": ["id"], "only_first": [["0"]], "only_second": [["3"]]}
    strange = ran(page, "SELECT text FROM reviews LIMIT 1")["id"]
    assert page.get(f"/api/diff?a={one}&b={strange}").json()["error"]["code"] == "UQL512"
    assert page.get("/api/diff?a=x&b=y").status_code == 404


def test_a_row_tells_why_it_is_there(page: TestClient) -> None:
    last = ran(page, 'SELECT id FROM reviews WHERE "it is good" LIMIT 2')
    told = page.get(f"/api/runs/{last['id']}/why?row=0").json()["text"]
    assert "it is good" in told


def test_a_question_in_words_shows_its_plan_its_steps_and_its_uql() -> None:
    from nl.shop import Connected, plan, uql_node

    count = "SELECT count(*) AS n FROM letters WHERE ask('the letter complains')"
    shop = Session(Connected([plan(uql_node("complaints", count))]).con)
    with TestClient(app(shop, TOKEN), base_url="http://127.0.0.1:8000", cookies={COOKIE: TOKEN}) as client:
        begun = client.post("/api/runs?kind=ask", json={"text": "How many complain?"}, headers={"X-UQL": "1"}).json()
        with client.stream("GET", f"/api/runs/{begun['id']}/events") as stream:
            *_, last = (json.loads(line[6:]) for line in stream.iter_lines() if line.startswith("data: "))
    shop.close()
    answer = last["answer"]
    assert answer["text"] == "10" and "the letter complains" in answer["uql"]
    assert answer["nodes"][0] | {"inputs": []} == {"name": "complaints", "kind": "uql", "inputs": [], "status": "done"}
    assert last["nodes"]["complaints"] == "done" and any("complaints" in step["title"] for step in answer["steps"])


def test_runs_are_listed_newest_first(page: TestClient) -> None:
    ran(page, "SELECT 1 AS a")
    ran(page, "SELECT 2 AS a")
    assert [run["text"] for run in page.get("/api/runs").json()] == ["SELECT 2 AS a", "SELECT 1 AS a"]


def test_the_assets_are_installed_with_the_package() -> None:
    from importlib.resources import files

    from uql.ui.app import ASSETS

    static = files("uql.ui").joinpath("static")
    found = {f.name for f in static.iterdir() if f.is_file()} | {
        f"vendor/{f.name}" for f in static.joinpath("vendor").iterdir()
    }
    assert found == {*ASSETS, "index.html", "vendor/LICENSES.txt"}
    texts = {name: static.joinpath(*name.split("/")).read_text("utf-8") for name in found}
    assert "//cdn" not in "".join(texts.values())
    assert all(
        name in texts["vendor/LICENSES.txt"] for name in ("tabulator-tables", "codemirror", "style-mod", "crelt")
    )
    assert sum(map(len, texts.values())) < 1_500_000


def test_no_time_is_left_after_the_end(session: Session, model: HashModel) -> None:
    work = Work("1", "how many?", "ask")
    for kind, more in (
        ("plan", {"budget": 100, "max_cost": None}),
        ("done", {}),
        ("node", {"node": "a", "state": "done", "text": "1 row"}),
    ):
        work.on_event(SimpleNamespace(kind=kind, **more))
    work.counts.calls, work.counts.seconds = 40, 8.0
    assert work.snapshot()["line"].endswith("12 s left"), "a question goes on after its first statement"
    session._do(work, lambda work: None)
    assert "left" not in work.snapshot()["line"]


@pytest.mark.parametrize(
    "host", ["evil.example", "localhost:8000@evil.example", "127.0.0.1:8000, evil.example", "[::1", "127.0.0.1#", ""]
)
def test_a_host_that_is_not_this_page_is_refused(page: TestClient, host: str) -> None:
    assert page.get("/api/state", headers={"host": host}).status_code == 403


@pytest.mark.parametrize("filters", ['{"-1": "x"}', '{"0": "x"}', '{"9": "x"}'])
def test_a_filter_of_no_column_is_refused(page: TestClient, filters: str) -> None:
    work = ran(page, "SELECT 1 AS a")
    assert page.get(f"/api/runs/{work['id']}/rows", params={"filters": filters}).status_code == 400
