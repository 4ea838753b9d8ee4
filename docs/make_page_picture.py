"""Take docs/images/page.png: the page of `uql ui` over banking77, whose labels are the model. Needs chromium and chromium-driver."""

from __future__ import annotations

import os
import shutil
import socket
import tempfile
import threading
import time
from pathlib import Path

import uvicorn
from selenium import webdriver

import uql
from uql.benchmarks.datasets.__main__ import main as write
from uql.ui.app import app
from uql.ui.session import Session

PICTURE = Path(__file__).resolve().parent / "images" / "page.png"
COUNT = """SELECT COUNT(*) AS failed_transfers
FROM questions
WHERE "a transfer has failed"
WITH (budget = 1024)"""
SIZE = (1100, 760)


def page(base: Path) -> str:
    """The address of a page over a database with its oracle."""
    os.chdir(base.parent)
    con = uql.connect(base.name, model="oracle:bank.toml", ledger=":memory:")
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app(Session(con), "token"), log_level="warning"))
    threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True).start()
    return f"http://127.0.0.1:{listening.getsockname()[1]}/?token=token"


def take(address: str) -> bytes:
    """The page after a count, as PNG."""
    options = webdriver.ChromeOptions()
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(argument)
    options.binary_location = shutil.which("chromium") or ""
    browser = webdriver.Chrome(options=options, service=webdriver.ChromeService(shutil.which("chromedriver")))
    try:
        width, height = SIZE
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        browser.get(address)
        time.sleep(3)
        browser.execute_script("return import('/static/app.js').then(m => { m.editor.text = arguments[0]; })", COUNT)
        browser.find_element("id", "run").click()
        deadline = time.monotonic() + 1200
        while "done:" not in browser.find_element("tag name", "main").text:
            if time.monotonic() > deadline:
                raise TimeoutError("the statement is still running")
            time.sleep(0.5)
        time.sleep(1)
        return browser.get_screenshot_as_png()
    finally:
        browser.quit()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        base = Path(folder) / "bank.duckdb"
        write(["banking77", str(base)])
        PICTURE.write_bytes(take(page(base)))
