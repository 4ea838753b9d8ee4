"""The page in a real browser: headless Chromium, driven as a person would, by mouse and by keyboard."""

from __future__ import annotations

import shutil
import socket
import struct
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import pytest
from hash_model import HashModel

import uql
from uql.llm.providers.base import CallError, Price, Reply, Request
from uql.show.plots import INK
from uql.ui.app import app
from uql.ui.session import Session

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser")
DRIVER = shutil.which("chromedriver")
pytestmark = pytest.mark.skipif(BROWSER is None or DRIVER is None, reason="needs Debian's chromium and chromium-driver")
TOKEN = "a-token"
AXE = Path(__file__).parent / "vendor" / "axe.min.js"
STATEMENT = 'SELECT COUNT(*) AS n FROM reviews WHERE "it is good" WITH (budget = 60, seed = 3)'


class Stumbling(HashModel):
    """Refuses "it stumbles" of the first row it is asked about, once."""

    stumbled = False

    async def answer(self, request: Request) -> Reply:
        if any(question.text == "it stumbles" for question in request.questions) and not self.stumbled:
            self.stumbled = True
            raise CallError("refusal", "no")
        return await super().answer(request)


def png() -> bytes:
    """A red picture of 2 × 2."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = chunk(b"IHDR", struct.pack(">IIBBBBB", 2, 2, 8, 2, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + head + chunk(b"IDAT", zlib.compress(b"\0\xff\0\0\xff\0\0" * 2)) + chunk(b"IEND", b"")


@contextmanager
def served(session: Session) -> Iterator[str]:
    """The address of a page over a session."""
    import uvicorn

    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app(session, TOKEN), log_level="warning", timeout_graceful_shutdown=1))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{listening.getsockname()[1]}/?token={TOKEN}"
    server.should_exit = True
    thread.join(10)
    session.close()


@pytest.fixture(scope="module")
def session() -> Session:
    duck = duckdb.connect(":memory:")
    duck.execute("CREATE TABLE reviews AS SELECT range AS id, 'review ' || range AS text FROM range(300)")
    duck.execute("CREATE TABLE big AS SELECT range AS id, 'row ' || range AS name FROM range(100000)")
    duck.execute("CREATE TABLE alone AS SELECT 1 AS one")
    duck.execute("CREATE TABLE things (id INT, picture BLOB, about JSON, html VARCHAR)")
    hostile = "<img src=x onerror=window.hurt=1>"
    duck.execute("INSERT INTO things VALUES (1, ?, ?, ?), (2, NULL, NULL, NULL)", [png(), '{"a": [1, 2]}', hostile])
    return Session(uql.attach(duck, model=Stumbling({"it is good": 0.4}), ledger=":memory:"))


@pytest.fixture(scope="module")
def address(session: Session) -> Iterator[str]:
    with served(session) as found:
        yield found


@pytest.fixture(scope="module")
def browser(address: str) -> Iterator[Any]:
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(argument)
    options.binary_location = str(BROWSER)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    yield driver
    driver.quit()


@pytest.fixture
def page(browser: Any, address: str, session: Session) -> Any:
    sized(browser, 1200, 900)
    until(lambda: opened_empty(browser, address, session))
    return browser


def opened_empty(browser: Any, address: str, session: Session) -> bool:
    """Opens the page; whether it is empty. What the page before kept may reach the server after it was left."""
    if browser.current_url.startswith("http"):
        browser.execute_script("sessionStorage.clear()")
        browser.get("about:blank")
    session.tabs.keep([])
    browser.get(address)
    until(lambda: "reviews" in browser.find_element("id", "tables").text)
    return statement(browser) == "" and len(browser.find_elements("css selector", "#sheets [role=tab]")) == 1


def until(true: Callable[[], Any], timeout_s: float = 30.0) -> None:
    end = time.monotonic() + timeout_s
    while not true():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.05)


def sized(browser: Any, width: int, height: int) -> None:
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)


def set_statement(page: Any, text: str) -> None:
    page.execute_script("return import('/static/app.js').then((m) => { m.editor.text = arguments[0] })", text)


def statement(page: Any) -> str:
    return str(page.execute_script("return import('/static/app.js').then((m) => m.editor.text)"))


def cells(page: Any) -> list[Any]:
    found: list[Any] = page.find_elements("css selector", "#grid .tabulator-row .tabulator-cell")
    return found


def click_cell(page: Any, number: int) -> None:
    """The grid draws its rows anew when its size changes: a cell that is gone by then is looked for again."""
    from selenium.common.exceptions import StaleElementReferenceException

    def clicked() -> bool:
        try:
            cells(page)[number].click()
        except StaleElementReferenceException:
            return False
        return True

    until(clicked)


def run(page: Any, text: str) -> None:
    """Ctrl+Enter, as a person does, until it has ended and its rows are drawn."""
    from selenium.webdriver.common.keys import Keys

    before = len(page.execute_script("return fetch('/api/runs').then((r) => r.json())"))
    set_statement(page, text)
    page.find_element("id", "text").send_keys(Keys.CONTROL, Keys.ENTER)
    ended = "return fetch('/api/runs').then((r) => r.json()).then((r) => r.length > arguments[0] && r[0].status)"
    until(lambda: page.execute_script(ended, before) in ("done", "failed"))
    until(lambda: page.find_element("id", "run").is_enabled())


def accessible(page: Any) -> list[Any]:
    """What axe finds fault with: rule, help, the first elements."""
    if not page.execute_script("return Boolean(window.axe)"):
        page.execute_script(AXE.read_text("utf-8"))
    found: list[Any] = page.execute_async_script(
        "const done = arguments[arguments.length - 1];"
        "axe.run().then((r) => done(r.violations.map((v) => [v.id, v.help, v.nodes.slice(0, 3).map((n) => n.html)])))"
    )
    return found


# --------------------------------------------------------------------------------------------------------------- statement
def test_the_empty_page_offers_an_example_that_runs(page: Any) -> None:
    assert statement(page) == "" and accessible(page) == []
    page.find_element("css selector", "#examples .example").click()
    until(lambda: "review 0" in page.find_element("id", "grid").text)
    assert "FROM reviews" in statement(page) and not page.find_element("id", "examples").is_displayed()


def test_the_price_stands_under_the_text_before_it_runs(page: Any) -> None:
    set_statement(page, 'SELECT COUNT(*) AS n FROM reviews WHERE "it is good" WITH (budget = 40)')
    until(lambda: "40 (32–40) calls" in page.find_element("id", "price").text)
    assert page.find_element("css selector", "#editor .t-text").text == '"it is good"'


def test_a_model_without_a_price_per_token_shows_no_dollars(browser: Any) -> None:
    duck = duckdb.connect(":memory:")
    duck.execute("CREATE TABLE reviews AS SELECT 'review ' || range AS text FROM range(300)")
    with served(Session(uql.attach(duck, model=HashModel({}, price=Price(0, 0)), ledger=":memory:"))) as address:
        browser.get(address)
        until(lambda: "reviews" in browser.find_element("id", "tables").text)
        set_statement(browser, 'SELECT COUNT(*) AS n FROM reviews WHERE "it is good" WITH (budget = 40)')
        until(lambda: "tokens" in browser.find_element("id", "price").text)
        assert "$" not in browser.find_element("id", "price").text
        browser.get("about:blank")


def test_no_price_stands_under_a_text_that_it_is_not_of(page: Any) -> None:
    set_statement(page, 'SELECT COUNT(*) AS n FROM reviews WHERE "it is good" WITH (budget = 40)')
    until(lambda: "40 (32–40) calls" in page.find_element("id", "price").text)
    set_statement(page, 'SELECT id FROM reviews WHERE "it is good" LIMIT 2')
    assert "40 (32–40) calls" not in page.find_element("id", "price").text
    assert "COUNT" not in page.find_element("id", "view-plan").get_attribute("textContent")
    until(lambda: "calls" in page.find_element("id", "price").text)


def test_an_error_is_underlined_where_it_is(page: Any) -> None:
    set_statement(page, "SELECT '😀😀', nothing FROM reviews")
    until(lambda: page.find_elements("css selector", "#editor .cm-lintRange-error"))
    assert page.find_element("css selector", "#editor .cm-lintRange-error").text == "nothing"
    assert "UQL202" in page.find_element("id", "problem").text


def test_names_are_completed_while_typing(page: Any) -> None:
    from selenium.webdriver.common.keys import Keys

    area = page.find_element("id", "text")
    area.send_keys("SELECT * FROM rev")
    until(lambda: page.find_elements("css selector", ".cm-tooltip-autocomplete [aria-selected=true]"))
    time.sleep(0.1)  # what is typed within 75 ms of the list is not taken for a choice
    area.send_keys(Keys.ENTER)
    until(lambda: statement(page) == "SELECT * FROM reviews")
    area.send_keys(" WHERE te")
    until(lambda: "text" in [e.text for e in page.find_elements("css selector", ".cm-completionLabel")])


def test_a_click_on_the_tree_inserts_and_previews(page: Any) -> None:
    tree = page.find_element("id", "tables")
    assert "100,000 rows" in tree.text and "about json" in tree.text
    assert "1 row preview" in tree.text and "1 column\n" in tree.text
    page.find_element("css selector", "button[title='insert big']").click()
    assert statement(page) == "big"
    page.find_element("css selector", "button[aria-label='preview things']").click()
    until(lambda: len(cells(page)) == 8)
    assert len(page.find_elements("css selector", "#sheets [role=tab]")) == 2 and "FROM things" in statement(page)


def test_statements_have_tabs_that_keep_their_rows_and_live_through_a_reload(page: Any) -> None:
    run(page, "SELECT 'first' AS a")
    until(lambda: "first" in page.find_element("id", "grid").text)
    page.find_element("id", "new-sheet").click()
    assert statement(page) == "" and page.find_element("id", "grid").text == ""
    run(page, "SELECT 'second' AS a")
    page.find_element("id", "sheet-0").click()
    until(lambda: page.find_element("id", "grid").text.endswith("first"))
    assert statement(page) == "SELECT 'first' AS a"
    page.refresh()
    until(lambda: len(page.find_elements("css selector", "#sheets [role=tab]")) == 2)
    page.find_element("id", "close-sheet").click()
    assert statement(page) == "SELECT 'second' AS a"


def test_tabs_are_there_again_on_another_port_and_apart_from_another_database(browser: Any, tmp_path: Path) -> None:
    def tabs(database: str, *, add: str = "") -> list[str]:
        """The tabs that a page of its own over a database shows, before one is added."""
        own = Session(uql.connect(tmp_path / database, model=HashModel({}), ledger=str(tmp_path / "ledger.sqlite")))
        with served(own) as address:
            browser.get(address)
            until(lambda: "reads only" in browser.find_element("id", "mode").text)
            found = [tab.text for tab in browser.find_elements("css selector", "#sheets [role=tab]")]
            if add:
                set_statement(browser, add)
                until(lambda: add in own.tabs.texts())
            browser.get("about:blank")  # it would go on to keep its tabs
        return found

    assert tabs("a.duckdb", add="SELECT 'kept'") == ["Statement 1"]
    assert tabs("a.duckdb") == ["SELECT 'kept'"] and tabs("b.duckdb") == ["Statement 1"]


def test_nothing_of_the_last_result_stays_under_a_statement_that_fails(page: Any) -> None:
    run(page, "SELECT 'stale' AS a")
    until(lambda: "stale" in page.find_element("id", "grid").text)
    run(page, "SELECT nothing FROM reviews")
    until(lambda: "UQL202" in page.find_element("id", "problem").text)
    assert "no rows" in page.find_element("id", "grid").text and not page.find_element("id", "tools").is_displayed()
    page.find_element("id", "tab-columns").click()
    assert page.find_element("id", "view-columns").text == "The statement failed: no rows."


# -------------------------------------------------------------------------------------------------------------------- rows
@pytest.mark.parametrize("statement", ["SELECT 600 AS n", "SELECT 'a' AS x FROM range(3)"])
def test_a_few_rows_of_one_column_need_no_scroll_bar(page: Any, statement: str) -> None:
    """The dot at the corner of the chosen cell stood out of the grid: its bars covered the only row."""
    run(page, statement)
    until(lambda: cells(page))
    scrolls = """const holder = document.querySelector('#grid .tabulator-tableholder');
        return holder.scrollWidth > holder.clientWidth || holder.scrollHeight > holder.clientHeight"""
    for width in (1200, 400, 1200):
        sized(page, width, 900)
        until(lambda: not page.execute_script(scrolls), 5)


def test_explain_is_shown_as_the_lines_that_it_gives(page: Any) -> None:
    run(page, 'EXPLAIN SELECT COUNT(*) AS n FROM reviews WHERE "it is good"')
    lines = page.find_element("css selector", "#grid pre").text.split("\n")
    assert lines[0].startswith("Aggregate COUNT(*)") and lines[1].startswith('  SemFilter "it is good"')


def calls_spent(page: Any) -> int:
    """The calls that the foot of the page states, of all statements since it was started."""
    return int(page.find_element("id", "spent").text.split(" calls")[0].replace(",", ""))


def test_a_count_shows_its_interval_and_its_plan_the_calls(page: Any) -> None:
    until(lambda: "calls" in page.find_element("id", "spent").text)
    before = calls_spent(page)
    run(page, STATEMENT.replace("good", "counted"))  # which no other test has paid for
    until(lambda: cells(page))
    assert any(sign in page.find_element("id", "grid").text for sign in ("±", "–"))
    until(lambda: page.find_elements("css selector", "#estimates figure path"))
    until(lambda: before < calls_spent(page) <= before + 60)
    page.find_element("id", "tab-plan").click()
    assert "calls made" in page.find_element("id", "view-plan").text


def test_every_row_of_a_large_result_is_reached_sorted_and_filtered(page: Any) -> None:
    from selenium.webdriver.common.keys import Keys

    run(page, "SELECT * FROM big ORDER BY id")
    until(lambda: "row 0" in page.find_element("id", "grid").text)
    height = page.execute_script("return document.querySelector('.tabulator-tableholder').clientHeight")
    drawn = page.find_elements("css selector", "#grid .tabulator-row")
    assert height / 40 < len(drawn) < 120  # the grid is full, and only what is near is in the page
    page.find_element("css selector", "#pages [data-page=last]").click()
    until(lambda: "row 99500" in page.find_element("id", "grid").text)
    page.execute_script("const t = document.querySelector('.tabulator-tableholder'); t.scrollTop = t.scrollHeight")
    until(lambda: "row 99999" in page.find_element("id", "grid").text)
    sorter = "#grid .tabulator-col[tabulator-field=c1]"
    page.find_element("css selector", f"{sorter} button").click()
    until(lambda: page.find_element("css selector", sorter).get_attribute("aria-sort") == "ascending")
    page.find_element("css selector", f"{sorter} button").send_keys(Keys.ENTER)
    until(lambda: "row 99999" in page.find_element("id", "grid").text)
    page.find_element("id", "filter").click()
    until(lambda: page.find_elements("css selector", "#grid [aria-label='filter name']"))
    page.find_element("css selector", "#grid [aria-label='filter name']").send_keys(
        "OW 424", Keys.HOME, "R", Keys.END, "2"
    )
    until(lambda: page.find_element("id", "size").text == "11 of 100,000 rows")
    assert accessible(page) == []
    page.find_element("id", "filter").click()


def test_cells_show_pictures_json_and_null_and_never_markup(page: Any) -> None:
    run(page, "SELECT 'nowhere.png' AS \"<img src=x onerror=window.hurt=1>\"")
    until(lambda: [cell.text for cell in cells(page)] == ["nowhere.png"])
    assert "<img src=x" in page.find_element("css selector", "#grid .tabulator-col").text
    page.find_element("id", "tab-columns").click()
    until(lambda: "<img src=x" in page.find_element("id", "view-columns").text)
    run(page, "SELECT * FROM things ORDER BY id")
    until(lambda: len(cells(page)) == 8)
    image = "return document.querySelector('#grid img').naturalWidth"
    until(lambda: page.execute_script(image) == 2)
    assert [cell.text for cell in cells(page)[5:]] == ["NULL"] * 3
    assert cells(page)[3].text == "<img src=x onerror=window.hurt=1>"
    click_cell(page, 2)
    until(lambda: '"a": [\n    1,' in page.find_element("id", "cell").text)
    click_cell(page, 1)
    until(lambda: page.execute_script("return document.querySelector('#cell img')?.naturalWidth") == 2)
    click_cell(page, 3)
    until(lambda: "onerror" in page.find_element("id", "cell").text)
    assert page.execute_script("return window.hurt") is None and accessible(page) == []


def test_enter_on_a_cell_tells_why_and_an_answer_is_corrected_there(page: Any) -> None:
    from selenium.webdriver.common.keys import Keys

    run(page, 'SELECT id, text FROM reviews WHERE "it is short" LIMIT 3')
    until(lambda: len(cells(page)) == 6)
    until(lambda: page.find_elements("css selector", "#grid .tabulator-range-active"))
    page.find_element("css selector", "#grid .tabulator-tableholder").send_keys(Keys.ARROW_DOWN, Keys.ENTER)
    until(lambda: "it is short" in page.find_element("id", "cell").text)
    assert "row 2" in page.find_element("css selector", "#cell h2").text
    assert page.switch_to.active_element.get_attribute("id") == "cell"
    page.find_element("css selector", "#cell input").send_keys("no", Keys.ENTER)
    until(lambda: "kept as False" in page.find_element("id", "cell").text)


def test_failures_are_retried_from_their_list(page: Any) -> None:
    run(page, 'SELECT id, "it stumbles"::BOOLEAN AS stumbles FROM reviews LIMIT 4')
    until(lambda: [cell.text for cell in cells(page)].count("NULL") == 1)
    page.find_element("id", "tab-errors").click()
    until(lambda: page.find_elements("css selector", "#view-errors button"))
    page.find_element("css selector", "#view-errors button").click()
    until(lambda: len(cells(page)) == 8 and "NULL" not in page.find_element("id", "grid").text)
    page.find_element("id", "tab-errors").click()
    until(lambda: page.find_element("id", "view-errors").text == "Every row has its answer.")


def test_columns_show_histograms_and_rows_are_copied_and_exported(page: Any) -> None:
    run(page, "SELECT id, text FROM reviews ORDER BY id LIMIT 20")
    until(lambda: len(cells(page)) > 10)
    page.execute_cdp_cmd("Browser.grantPermissions", {"permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"]})
    page.find_element("id", "copy").click()
    until(lambda: page.find_element("id", "size").text == "20 rows copied")
    copied = page.execute_async_script("navigator.clipboard.readText().then(arguments[0])")
    assert copied.splitlines()[:2] == ["id\ttext", "0\treview 0"]
    exported = page.execute_script("return fetch(document.getElementById('csv').href).then((r) => r.text())")
    assert exported.startswith("id,text\n0,review 0\n")
    page.find_element("id", "tab-columns").click()
    until(lambda: len(page.find_elements("css selector", ".histogram rect")) == 16)
    assert "0 … 19" in page.find_element("id", "view-columns").text.replace("\n", " … ")
    assert accessible(page) == []


# ------------------------------------------------------------------------------------------------------------ head and side
def test_the_budget_is_changed_in_the_head(page: Any) -> None:
    from selenium.webdriver.common.keys import Keys

    set_statement(page, 'SELECT COUNT(*) AS n FROM reviews WHERE "it is good"')
    budget = page.find_element("id", "budget")
    budget.send_keys("50", Keys.ENTER)
    until(lambda: "at most 50" in page.find_element("id", "price").text)
    budget.send_keys(Keys.BACKSPACE * 2, "many", Keys.ENTER)
    until(lambda: "budget is a whole number" in budget.get_property("validationMessage"))
    budget.clear()
    budget.send_keys(Keys.ENTER)
    until(lambda: "at most 128" in page.find_element("id", "price").text)


def test_a_statement_is_saved_and_opened_from_the_list_and_the_history(page: Any) -> None:
    from selenium.webdriver.common.keys import Keys

    run(page, STATEMENT)
    page.find_element("id", "save").click()
    page.find_element("id", "name").send_keys("my count", Keys.ENTER)
    until(lambda: "my count" in page.find_element("id", "saved").text)
    page.find_element("id", "new-sheet").click()
    page.find_element("css selector", "#saved button").click()
    assert statement(page) == STATEMENT
    page.find_element("id", "tab-history").click()
    until(lambda: "In the ledger" in page.find_element("id", "view-history").text)
    assert STATEMENT in page.find_element("id", "view-history").text and accessible(page) == []
    page.find_element("css selector", "#saved .close").click()
    until(lambda: page.find_element("id", "saved").text == "")


def test_a_file_becomes_a_table(page: Any, tmp_path: Path) -> None:
    (tmp_path / "shop.csv").write_text("item,price\ntea,3\n")
    page.find_element("id", "file").send_keys(str(tmp_path / "shop.csv"))
    until(lambda: [cell.text for cell in cells(page)] == ["tea", "3"])
    assert "shop" in page.find_element("id", "tables").text and "FROM shop" in statement(page)


def test_a_question_in_words_is_answered_with_its_plan_as_a_graph(browser: Any) -> None:
    from nl.shop import Connected, plan, uql_node
    from selenium.webdriver.common.keys import Keys

    count = "SELECT count(*) AS n FROM letters WHERE ask('the letter complains')"
    with served(Session(Connected([plan(uql_node("complaints", count))]).con)) as address:
        browser.get(address)
        until(lambda: "letters" in browser.find_element("id", "tables").text)
        browser.find_element("id", "question").send_keys("How many complain?", Keys.ENTER)
        until(lambda: browser.find_elements("css selector", "#view-answer .dag .done"))
        assert browser.find_element("css selector", "#view-answer b").text == "10" and accessible(browser) == []
        browser.find_element("xpath", "//button[text()='Edit this UQL']").click()
        assert "the letter complains" in statement(browser)
        browser.get("about:blank")


# -------------------------------------------------------------------------------------------------------------- every page
def test_tabs_are_walked_with_the_arrow_keys(page: Any) -> None:
    from selenium.webdriver.common.keys import Keys

    page.find_element("id", "tab-rows").send_keys(Keys.ARROW_RIGHT)
    assert page.switch_to.active_element.get_attribute("id") == "tab-columns"
    shown = [page.find_element("id", f"view-{name}").is_displayed() for name in ("columns", "rows")]
    assert shown == [True, False]


def test_it_fits_a_narrow_screen(page: Any) -> None:
    sized(page, 400, 800)
    run(page, "SELECT *, 'a much longer text that is wider than the screen is' AS long FROM reviews LIMIT 5")
    until(lambda: cells(page))
    click_cell(page, 0)
    for view in ("rows", "columns", "plan", "errors", "history"):
        page.find_element("id", f"tab-{view}").click()
        assert page.execute_script("return document.documentElement.scrollWidth") <= 400, view
    assert accessible(page) == []


def test_dark_mode_is_dark_and_can_be_read(page: Any) -> None:
    brightness = "return getComputedStyle(document.documentElement).backgroundColor.match(/\\d+/g).slice(0, 3).reduce((a, b) => a + +b, 0)"
    light = page.execute_script(brightness)
    run(page, STATEMENT)
    dark = {"features": [{"name": "prefers-color-scheme", "value": "dark"}]}
    page.execute_cdp_cmd("Emulation.setEmulatedMedia", dark)
    until(lambda: cells(page))
    assert page.execute_script(brightness) < 150 < 600 < light
    assert accessible(page) == []
    page.find_element("id", "tab-chart").click()
    source = "return decodeURIComponent(document.querySelector('#view-chart img')?.src ?? '')"
    until(lambda: INK in page.execute_script(source))
    page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
    until(lambda: 'fill="white"' in page.execute_script(source))


def test_what_the_grid_says_without_rows_can_be_read_in_the_dark(page: Any) -> None:
    """Tabulator's own colours are those of a white page."""
    page.execute_cdp_cmd(
        "Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": "dark"}]}
    )
    run(page, "SELECT * FROM reviews WHERE id < 0")
    until(lambda: page.find_elements("css selector", "#grid .tabulator-placeholder-contents"))
    # what Tabulator shows while it waits for rows
    page.execute_script(
        """const grid = document.getElementById("grid"), alert = document.createElement("div");
        alert.className = "tabulator-alert";
        alert.innerHTML = '<div class="tabulator-alert-msg tabulator-alert-state-msg">Loading</div>';
        grid.append(alert)"""
    )
    colour = "return getComputedStyle(document.querySelector(arguments[0])).color"
    assert page.find_element("css selector", "#grid .tabulator-placeholder-contents").text == "No rows."
    quiet = page.execute_script(colour, "#grid + .quiet, .quiet")
    assert page.execute_script(colour, "#grid .tabulator-placeholder-contents") == quiet
    ink = page.execute_script(colour, "body")
    assert page.execute_script(colour, "#grid .tabulator-alert-msg") == ink
    page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def test_a_count_of_every_row_leaves_no_room_for_a_course(page: Any) -> None:
    run(page, 'SELECT COUNT(*) AS n FROM reviews WHERE id < 20 AND "it is good" WITH (exact)')
    until(lambda: page.find_elements("css selector", "#estimates figcaption"))
    assert not page.find_elements("css selector", "#estimates svg")
    page.find_element("id", "tab-answer").click()
    assert "question in words" in page.find_element("id", "view-answer").text


def test_nothing_of_the_page_broke(page: Any) -> None:
    """Neither an error of a script nor anything that the content security policy refused."""
    expected = ("/api/check", "/api/settings")  # the refusals that tests above ask for
    entries = [e for e in page.get_log("browser") if e["level"] == "SEVERE"]
    assert [e["message"] for e in entries if not any(path in e["message"] for path in expected)] == []
