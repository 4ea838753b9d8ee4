"""The page in a real browser: headless Chromium, driven as a person would, by mouse and by keyboard."""

from __future__ import annotations

import shutil
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import duckdb
import pytest
from hash_model import HashModel

import uql
from uql.ui.app import app
from uql.ui.session import Session

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser")
DRIVER = shutil.which("chromedriver")
pytestmark = pytest.mark.skipif(BROWSER is None or DRIVER is None, reason="needs Debian's chromium and chromium-driver")
TOKEN = "a-token"


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    import uvicorn

    duck = duckdb.connect(":memory:")
    duck.execute("CREATE TABLE reviews AS SELECT range AS id, 'review ' || range AS text FROM range(300)")
    duck.execute("CREATE TABLE big AS SELECT range AS id, 'row ' || range AS name FROM range(100000)")
    session = Session(uql.attach(duck, model=HashModel({"it is good": 0.4}), ledger=":memory:"))
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
def page(browser: Any, address: str) -> Any:
    sized(browser, 1200, 900)
    browser.get(address)
    until(lambda: "reviews" in browser.find_element("id", "tables").text)
    return browser


def until(true: Callable[[], Any], timeout_s: float = 30.0) -> None:
    end = time.monotonic() + timeout_s
    while not true():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.05)


def sized(browser: Any, width: int, height: int) -> None:
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)


def type_statement(page: Any, text: str) -> None:
    page.execute_script(
        "const t = document.getElementById('text'); t.value = arguments[0]; t.dispatchEvent(new Event('input'))", text
    )


def run(page: Any, text: str) -> None:
    """Ctrl+Enter, as a person does, until it has ended."""
    from selenium.webdriver.common.keys import Keys

    before = len(page.execute_script("return fetch('/api/runs').then((r) => r.json())"))
    type_statement(page, text)
    page.find_element("id", "text").send_keys(Keys.CONTROL, Keys.ENTER)
    ended = "return fetch('/api/runs').then((r) => r.json()).then((r) => r.length > arguments[0] && r[0].status)"
    until(lambda: page.execute_script(ended, before) in ("done", "failed"))
    until(lambda: page.find_element("id", "run").is_enabled())


def test_the_price_stands_under_the_text_before_it_runs(page: Any) -> None:
    type_statement(page, 'SELECT COUNT(*) AS n FROM reviews WHERE "it is good" WITH (budget = 40)')
    until(lambda: "40 (32–40) calls" in page.find_element("id", "price").text)
    assert page.find_element("css selector", "#shown .t-text").get_attribute("textContent") == '"it is good"'


def test_an_error_is_underlined_where_it_is(page: Any) -> None:
    type_statement(page, "SELECT nothing FROM reviews")
    until(lambda: page.find_elements("css selector", "#shown .t-bad"))
    assert page.find_element("css selector", "#shown .t-bad").get_attribute("textContent") == "nothing"
    assert "UQL202" in page.find_element("id", "problem").text


def test_a_count_shows_its_interval_and_its_plan_the_calls(page: Any) -> None:
    run(page, 'SELECT COUNT(*) AS n FROM reviews WHERE "it is good" WITH (budget = 60, seed = 3)')
    until(lambda: page.find_elements("css selector", "#grid .row:not(.head)"))
    assert any(sign in page.find_element("id", "grid").text for sign in ("±", "–"))
    until(lambda: page.find_elements("css selector", "#estimates figure path"))
    page.find_element("id", "tab-plan").click()
    assert "calls made" in page.find_element("id", "view-plan").text


def test_enter_on_a_row_tells_why_it_is_there(page: Any) -> None:
    from selenium.webdriver.common.keys import Keys

    run(page, 'SELECT id, text FROM reviews WHERE "it is good" LIMIT 3')
    grid = page.find_element("id", "grid")
    until(lambda: page.find_elements("css selector", "#grid .row:not(.head)"))
    grid.send_keys(Keys.ARROW_DOWN)
    grid.send_keys(Keys.ENTER)
    until(lambda: "it is good" in page.find_element("id", "why-text").text)
    page.find_element("css selector", "#why button").click()


def test_a_hundred_thousand_rows_scroll_to_the_last(page: Any) -> None:
    from selenium.webdriver.common.keys import Keys

    run(page, "SELECT * FROM big ORDER BY id")
    grid = page.find_element("id", "grid")
    until(lambda: "row 0" in grid.text)
    grid.send_keys(Keys.END)
    until(lambda: "row 99999" in grid.text)
    assert len(page.find_elements("css selector", "#grid .row")) < 80  # only what is seen is in the page


def test_tabs_are_walked_with_the_arrow_keys(page: Any) -> None:
    from selenium.webdriver.common.keys import Keys

    page.find_element("id", "tab-rows").send_keys(Keys.ARROW_RIGHT)
    assert page.switch_to.active_element.get_attribute("id") == "tab-plan"
    assert (
        page.find_element("id", "view-plan").is_displayed() and not page.find_element("id", "view-rows").is_displayed()
    )


def test_names_are_completed(page: Any) -> None:
    from selenium.webdriver.common.keys import Keys

    area = page.find_element("id", "text")
    area.clear()
    area.send_keys("SELECT * FROM rev", Keys.CONTROL, " ")
    until(lambda: page.find_element("id", "completions").is_displayed())
    area.send_keys(Keys.ENTER)
    assert area.get_attribute("value") == "SELECT * FROM reviews"


def test_it_fits_a_narrow_screen(page: Any) -> None:
    sized(page, 400, 800)
    run(page, "SELECT * FROM reviews LIMIT 5")
    wide = page.execute_script("return document.documentElement.scrollWidth")
    assert wide <= 400


def test_dark_mode_is_dark(page: Any) -> None:
    brightness = "return getComputedStyle(document.documentElement).backgroundColor.match(/\\d+/g).slice(0, 3).reduce((a, b) => a + +b, 0)"
    light = page.execute_script(brightness)
    dark = {"features": [{"name": "prefers-color-scheme", "value": "dark"}]}
    page.execute_cdp_cmd("Emulation.setEmulatedMedia", dark)
    assert page.execute_script(brightness) < 150 < 600 < light
    page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def test_nothing_of_the_page_broke(page: Any) -> None:
    assert [entry for entry in page.get_log("browser") if entry["level"] == "SEVERE"] == []
