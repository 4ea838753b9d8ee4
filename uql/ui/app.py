"""The HTTP side of `uql ui`: pages and JSON over one Session. Every request needs the token, and a Host of this machine.

The token comes once in the address, then lives in a cookie that no script and no other site can use; a changing request must also carry
the header X-UQL, which no form of another site can send, and an Origin, where there is one, must be the page's own. A page of
another origin can so neither read nor start anything.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import re
import shutil
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from importlib.resources import files
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware.base import BaseHTTPMiddleware, RequestResponseEndpoint
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from uql.base.errors import UQLError, UQLSyntaxError
from uql.base.sql_text import first_line
from uql.compiler.parser import check_brackets
from uql.ui.grid import FILES, exported, statistics, window
from uql.ui.session import MAX_WAITING, Session, Work, done, error_view

TICK_S = 0.1  # between two looks at a running statement
LONGEST = 100_000  # characters of a statement
LONGEST_BODY = 4 * LONGEST  # bytes
BODY_TIMEOUT_S = 20
LONGEST_FILE = 200_000_000  # bytes of a file that is dropped on the page
HOST = re.compile(r"(127\.0\.0\.1|localhost)(:\d{1,5})?", re.IGNORECASE)
CHANGEABLE = ("model", "budget")  # settings
ASSETS = {
    "app.css": "text/css",
    "app.js": "text/javascript",
    "dag.js": "text/javascript",
    "editor.js": "text/javascript",
    "grid.js": "text/javascript",
    "page.js": "text/javascript",
    "vendor/tabulator.css": "text/css",
    "vendor/vendor.js": "text/javascript",
}
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; media-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


class Refused(HTTPException):
    """Why a request is not answered; JSON says so."""


def cookie(port: int | None) -> str:
    """The name of the cookie: another `uql ui`, on another port of this machine, has its own."""
    return f"uql_token_{port or 80}"


def app(session: Session, token: str) -> Starlette:
    """The application. `token` opens it; the server must listen on this machine alone."""

    class Guard(BaseHTTPMiddleware):
        async def dispatch(self, request: Request, call_next: RequestResponseEndpoint) -> Response:
            response = _refused(request, token) or await call_next(request)
            response.headers["Content-Security-Policy"] = POLICY
            response.headers["X-Content-Type-Options"] = "nosniff"
            response.headers["Referrer-Policy"] = "no-referrer"
            response.headers["Cache-Control"] = "no-store"
            return response

    handlers = Handlers(session, token)
    application = Starlette(
        routes=[
            Route("/", handlers.page),
            Route("/static/{name:path}", handlers.asset),
            Route("/api/schema", handlers.giving(lambda: {"tables": session.schema()})),
            Route("/api/state", handlers.giving(session.state)),
            Route("/api/settings", handlers.settings, methods=["POST"]),
            Route("/api/history", handlers.giving(session.history)),
            Route("/api/saved", handlers.giving(session.saved.texts)),
            Route("/api/saved", handlers.save, methods=["POST"]),
            Route("/api/tabs", handlers.tabs),
            Route("/api/tabs", handlers.keep_tabs, methods=["POST"]),
            Route("/api/files", handlers.file, methods=["POST"]),
            Route("/api/check", handlers.check, methods=["POST"]),
            Route("/api/runs", handlers.runs),
            Route("/api/runs", handlers.start, methods=["POST"]),
            Route("/api/runs/{id}", handlers.of_run(Work.snapshot)),
            Route("/api/runs/{id}/events", handlers.events),
            Route("/api/runs/{id}/cancel", handlers.cancel, methods=["POST"]),
            Route(
                "/api/runs/{id}/retry", handlers.of_run(lambda work: session.retry(work).snapshot()), methods=["POST"]
            ),
            Route("/api/runs/{id}/correct", handlers.correct, methods=["POST"]),
            Route("/api/runs/{id}/rows", handlers.rows),
            Route("/api/runs/{id}/rows.{ending}", handlers.export),
            Route("/api/runs/{id}/cell", handlers.cell),
            Route("/api/runs/{id}/columns", handlers.of_run(lambda work: statistics(done(work).run()))),
            Route("/api/runs/{id}/errors", handlers.of_run(session.errors)),
            Route("/api/runs/{id}/why", handlers.why),
            Route("/api/runs/{id}/chart.svg", handlers.chart),
            Route("/api/diff", handlers.difference),
        ],
        exception_handlers={Refused: _refusal},
    )
    application.add_middleware(Guard)
    return application


def _refused(request: Request, token: str) -> Response | None:
    """Why a request may not pass, or None."""
    if not HOST.fullmatch(request.headers.get("host", "")):  # another name for this machine: DNS rebinding
        return PlainTextResponse("this page answers to 127.0.0.1 only", 403)
    origin = request.headers.get("origin")
    if origin is not None and origin != f"{request.url.scheme}://{request.url.netloc}":
        return PlainTextResponse("a page of another origin may not ask", 403)
    candidate = request.cookies.get(cookie(request.url.port)) or ""
    if request.url.path == "/" and "token" in request.query_params:
        candidate = request.query_params["token"]
    if not hmac.compare_digest(candidate.encode(), token.encode()):
        return PlainTextResponse("open the address that `uql ui` printed: it carries the token", 403)
    if request.method != "GET" and request.headers.get("x-uql") != "1":
        return PlainTextResponse("the header X-UQL is missing", 403)
    return None


class Handlers:
    """One method a route. What may take long works in a thread, so that the page stays alive."""

    def __init__(self, session: Session, token: str) -> None:
        self.session, self.token = session, token

    def giving(self, reply: Callable[[], Any]) -> Callable[[Request], Awaitable[Response]]:
        """A route that replies with what the session gives."""

        async def route(request: Request) -> Response:
            return await _json_reply("", reply)

        return route

    def of_run(self, reply: Callable[[Work], Any]) -> Callable[[Request], Awaitable[Response]]:
        """A route that replies with what a run gives."""

        async def route(request: Request) -> Response:
            return await self._with(request, reply)

        return route

    # ----------------------------------------------------------------------------------------------------------- page
    async def page(self, request: Request) -> Response:
        if "token" in request.query_params:
            response: Response = RedirectResponse("/", 303)
            response.set_cookie(cookie(request.url.port), self.token, httponly=True, samesite="strict")
            return response
        return Response(_asset("index.html"), media_type="text/html")

    async def asset(self, request: Request) -> Response:
        name = request.path_params["name"]
        if name not in ASSETS:
            return PlainTextResponse("there is no such file", 404)
        return Response(_asset(name), media_type=ASSETS[name])

    # ------------------------------------------------------------------------------------------------- before running
    async def settings(self, request: Request) -> Response:
        body = await _object(request)
        if not body.keys() <= set(CHANGEABLE) or not all(isinstance(value, str | None) for value in body.values()):
            raise Refused(400, f"the page changes {' and '.join(CHANGEABLE)}, each a text or null")
        return await _json_reply("", lambda: self.session.configure(**body))

    async def save(self, request: Request) -> Response:
        body = await _object(request)
        name, text = body.get("name"), body.get("text")
        if not isinstance(name, str) or not isinstance(text, str) or not name.strip():
            raise Refused(400, 'send {"name": …, "text": …}')
        return await _json_reply("", lambda: self.session.saved.keep(name, text))

    async def tabs(self, request: Request) -> Response:
        open_tabs = self.session.tabs
        return await _json_reply("", lambda: {"database": open_tabs.database, "texts": open_tabs.texts()})

    async def keep_tabs(self, request: Request) -> Response:
        body = await _object(request)
        texts = body.get("texts")
        if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
            raise Refused(400, 'send {"texts": […]}')
        return await _json_reply("", lambda: self.session.tabs.keep(texts))

    async def file(self, request: Request) -> Response:
        """Takes a dropped file, at most LONGEST_FILE bytes, which are written to disk as they come."""
        with tempfile.TemporaryFile() as upload:
            async for part in request.stream():
                upload.write(part)
                if upload.tell() > LONGEST_FILE:
                    raise Refused(
                        413, f"a file has at most {LONGEST_FILE // 1_000_000:,} MB here: name its path in FROM"
                    )
            upload.seek(0)

            def write(path: Path) -> None:
                with path.open("wb") as file:
                    shutil.copyfileobj(upload, file)

            name = request.query_params.get("name", "")
            return await _json_reply("", lambda: {"table": self.session.add_file(name, write)})

    async def check(self, request: Request) -> Response:
        text = await _text(request)
        return JSONResponse(await run_in_threadpool(self.session.check, text))

    # -------------------------------------------------------------------------------------------------------- running
    async def start(self, request: Request) -> Response:
        text = await _text(request)
        if not text.strip():
            raise Refused(400, "there is no statement")
        if self.session.waiting >= MAX_WAITING:
            raise Refused(429, f"{MAX_WAITING} statements wait: end some of them, or wait")
        begin = self.session.ask if request.query_params.get("kind") == "ask" else self.session.start
        return JSONResponse(begin(text).snapshot(), 201)

    async def runs(self, request: Request) -> Response:
        return JSONResponse([work.snapshot() for work in self.session.works()])

    async def cancel(self, request: Request) -> Response:
        def cancelled(work: Work) -> dict[str, Any]:
            self.session.cancel(work)
            return work.snapshot()

        return await self._with(request, cancelled)

    async def events(self, request: Request) -> Response:
        """Server-sent events: a snapshot after each change, the last one when it has ended."""
        work = self._work(request.path_params["id"])

        async def changes() -> AsyncIterator[str]:
            last_version = -1
            while True:
                ended = work.status not in ("waiting", "running")
                if work.version != last_version or ended:
                    last_version = work.version
                    snapshot = await run_in_threadpool(work.snapshot)
                    yield f"data: {json.dumps(snapshot, ensure_ascii=False)}\n\n"
                if ended or await request.is_disconnected():
                    return
                await asyncio.sleep(TICK_S)

        return StreamingResponse(changes(), media_type="text/event-stream")

    # ----------------------------------------------------------------------------------------------------- what came
    async def rows(self, request: Request) -> Response:
        offset, limit = _numbers(request, offset=0, limit=200)
        try:
            order = [int(key) for key in request.query_params.get("order", "").split(",") if key]
            filters = {
                int(key): str(text) for key, text in json.loads(request.query_params.get("filters", "{}")).items()
            }
        except (ValueError, AttributeError, RecursionError):
            raise Refused(400, 'order is columns as 2,-1 and filters are {"2": "text"}') from None
        return await self._with(request, lambda work: window(done(work).run(), offset, limit, order, filters))

    async def cell(self, request: Request) -> Response:
        row, column = _numbers(request, row=None, column=None)

        def whole(work: Work) -> Response:
            data, media = self.session.cell(work, row, column)
            return Response(data, media_type=media)

        return await self._with(request, whole)

    async def export(self, request: Request) -> Response:
        ending = request.path_params["ending"]
        if ending not in FILES:
            raise Refused(404, f"rows are exported as {', '.join(FILES)}")

        def file(work: Work) -> Response:
            name = {"Content-Disposition": f'attachment; filename="rows.{ending}"'}
            return Response(exported(done(work).run(), ending), media_type=FILES[ending], headers=name)

        return await self._with(request, file)

    async def correct(self, request: Request) -> Response:
        body = await _object(request)
        row, value, clause = body.get("row"), body.get("value"), body.get("clause")
        if not isinstance(row, int) or not isinstance(value, str | None) or not isinstance(clause, str | None):
            raise Refused(400, 'send {"row": 0, "value": …, "clause": …}')
        return await self._with(request, lambda work: self.session.correct(work, row, value, clause))

    async def why(self, request: Request) -> Response:
        (row,) = _numbers(request, row=None)
        return await self._with(request, lambda work: self.session.why(work, row))

    async def chart(self, request: Request) -> Response:
        def draw(work: Work) -> Response:
            dark = request.query_params.get("dark") == "1"
            return Response(done(work).plot().svg(dark=dark), media_type="image/svg+xml")

        return await self._with(request, draw)

    async def difference(self, request: Request) -> Response:
        one, other = (self._work(request.query_params.get(name, "")) for name in ("a", "b"))
        return await _json_reply("", lambda: self.session.difference(one, other))

    def _work(self, id: str) -> Work:
        work = self.session.work(id)
        if work is None:
            raise Refused(404, "there is no such run; the page was restarted?")
        return work

    async def _with(self, request: Request, work_on: Callable[[Work], Any]) -> Response:
        work = self._work(request.path_params["id"])
        return await _json_reply(work.text, lambda: work_on(work))


def _asset(name: str) -> bytes:
    return files("uql.ui").joinpath("static", name).read_bytes()


async def _object(request: Request) -> dict[str, Any]:
    """The object of the body's JSON. A body that is too long or too slow is not read to its end."""
    body = bytearray()
    try:
        async with asyncio.timeout(BODY_TIMEOUT_S):
            async for part in request.stream():
                body += part
                if len(body) > LONGEST_BODY:
                    raise Refused(413, f"a body has at most {LONGEST_BODY:,} bytes")
    except TimeoutError:
        raise Refused(408, f"a body ends within {BODY_TIMEOUT_S} seconds") from None
    try:
        value = json.loads(body)
        json.dumps(value, ensure_ascii=False).encode()  # a surrogate without its partner is not a character
    except UnicodeEncodeError:
        raise Refused(400, "the text is not Unicode: a lone surrogate") from None
    except (ValueError, RecursionError):
        raise Refused(400, "send a JSON object") from None
    if not isinstance(value, dict):
        raise Refused(400, "send a JSON object")
    return value


async def _text(request: Request) -> str:
    """The text of the body's JSON."""
    body = await _object(request)
    text = body.get("text")
    if not isinstance(text, str):
        raise Refused(400, 'send {"text": …}')
    if len(text) > LONGEST:
        raise Refused(413, f"a statement has at most {LONGEST:,} characters")
    try:
        check_brackets(text)
    except UQLSyntaxError as error:
        raise Refused(400, error.message) from error
    return text


async def _json_reply(text: str, work: Callable[[], Any]) -> Response:
    try:
        result = await run_in_threadpool(work)
    except UQLError as error:
        return JSONResponse({"error": error_view(error, text)}, 400)
    except (duckdb.Error, pa.ArrowException, OverflowError) as error:  # values of a rare type, or beyond a type's range
        raise Refused(
            400, f"values of these rows are not of a kind that can be shown so: {first_line(error)}"
        ) from error
    return result if isinstance(result, Response) else JSONResponse(result)


def _numbers(request: Request, **defaults: int | None) -> list[int]:
    """Numbers of the address by name; one without a default has to be there."""
    texts = [request.query_params.get(name, str(default)) for name, default in defaults.items()]
    if not all(text.isascii() and text.isdigit() and len(text) < 12 for text in texts):
        raise Refused(400, f"{' and '.join(defaults)} {'are numbers' if len(defaults) > 1 else 'is a number'}")
    return [int(text) for text in texts]


def _refusal(request: Request, error: Exception) -> Response:
    assert isinstance(error, Refused)
    return JSONResponse({"error": {"message": error.detail}}, error.status_code)
