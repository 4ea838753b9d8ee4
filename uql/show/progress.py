"""What a running query tells: one block on a terminal, a line now and then in a log, one place in a notebook's cell.

A `Progress` listens to the event stream (`con.on_event(progress)`). It draws when it hears of something; on a terminal a thread draws
now and then too, so that a model that takes long to load or to answer does not look like a program that hangs.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING, Any

from uql.base.printable import printable
from uql.show.notebook_cells import block_here
from uql.show.render import dollars, format_estimate

if TYPE_CHECKING:
    from rich.live import Live

    from uql.sampling.base import Estimate

FIRST_S = 0.3  # a query that is done sooner shows nothing
REFRESH_S = 0.1  # between two drawings of the block
SILENT_S = 5.0  # without an answer, after which the block says for how long
TICK_S = 1.0  # between two looks at it
LINE_S = 10.0  # between two lines of a log
MOST_POINTS = 64  # of the course of an estimate; beyond, every second one is dropped
SHOWN_ESTIMATES = 5
STEP_ENDS = ("done", "failed", "replan")  # states of a step that a log has a line for


@dataclass(slots=True)
class Counts:
    """The sum of the events so far.

    >>> counts = Counts(calls=64, cap=256, cached=3, seconds=20.0, answered=19.5)
    >>> counts.line()
    '64 of at most 256 calls, 3.2 rows/s, 3 from the ledger, at most 60 s left'
    >>> Counts(calls=64, cap=256, usd=0.0123, priced=True, usd_cap=0.5).line()
    '$0.0123 of $0.50, 64 of at most 256 calls'
    """

    calls: int = 0
    cached: int = 0
    failed: int = 0
    usd: float = 0.0
    priced: bool = False  # has any call had a price?
    cap: int | None = None  # calls at most
    usd_cap: float | None = None
    seconds: float = 0.0  # since the statement began
    answered: float = 0.0  # seconds at the last answer
    asking_since: float = 0.0  # seconds when the last rows had a vector: a pace is one of calls
    loading: bool = False  # is the model being loaded?
    estimates: dict[str, Estimate] = field(default_factory=dict)
    course: dict[str, list[tuple[int, Estimate]]] = field(default_factory=dict)  # each so far with the calls made then
    ended: bool = False
    steps: dict[str, str] = field(default_factory=dict)  # of a question in words: how far each is
    embedded: tuple[int, int] | None = None  # rows that have a vector, of those that need one; None: not at it

    def add(self, event: Any) -> None:
        self.ended = event.kind == "done"
        if event.kind in ("call", "cached", "failed"):
            self.answered, self.loading = self.seconds, False
        match event.kind:
            case "call":
                self.calls += 1
                if event.usd is not None:
                    self.usd += event.usd
                    self.priced = self.priced or event.usd > 0
            case "cached":
                self.cached += event.rows
            case "failed":
                self.failed += 1
            case "plan":
                self.cap, self.usd_cap = event.budget, event.max_cost
            case "foretold":
                self.cap = self.calls + event.calls
            case "loading":
                self.loading = True
            case "embedded":
                self.asking_since = self.seconds
                self.embedded = (event.done, event.rows) if event.done < event.rows else None
            case "node":
                self.steps[event.node] = event.text
            case "estimate":
                name, estimate = event.column, event.estimate
                self.estimates[name] = estimate
                course = self.course.setdefault(name, [])
                if len(course) >= MOST_POINTS:
                    del course[1::2]
                course.append((self.calls, estimate))

    def line(self) -> str:
        """Money, calls of the cap, rows a second, what the ledger spared, what failed, time left."""
        parts = []
        if self.priced:
            spent = dollars(self.usd)
            parts.append(f"{spent} of ${self.usd_cap:.2f}" if self.usd_cap is not None else spent)
        if self.ended and self.cached and not self.calls:
            parts.append("0 new calls")
        else:
            most = "" if self.cap is None or self.ended else f" of at most {self.cap:,}"
            parts.append(f"{self.calls:,}{most} call{'s' if most or self.calls != 1 else ''}")
        if self.embedded is not None:
            parts.append("embedding {1:,} rows: {0:,} done".format(*self.embedded))
        if self.loading:
            parts.append("loading the model")
        elif self.embedded is None and not self.ended and self.seconds - self.answered >= SILENT_S:
            some = self.calls or self.cached or self.failed  # before them, it may be no model that is waited for
            parts.append(f"no answer for {self.seconds - self.answered:.0f} s" if some else "no answer yet")
        rate = self.calls / (self.seconds - self.asking_since) if self.seconds > self.asking_since else 0.0
        if rate:
            parts.append(_pace(rate))
        if self.cached:
            parts.append(f"{self.cached:,} from the ledger")
        if self.failed:
            parts.append(f"{self.failed:,} failed")
        if rate and self.cap is not None and self.calls >= 8 and not self.ended:
            parts.append(_time_left(max(0, self.cap - self.calls) / rate))
        return ", ".join(parts)

    def lines(self) -> list[str]:
        """A line for each step of a question in words, then the estimates so far."""
        return [*(printable(f"{name}: {text}") for name, text in self.steps.items()), *self.estimate_lines()]

    def estimate_lines(self) -> list[str]:
        """`n = 120 ± 14` for each estimate so far, at most SHOWN_ESTIMATES."""
        lines = [
            f"{printable(name)} = {format_estimate(estimate)}" if name else format_estimate(estimate)
            for name, estimate in list(self.estimates.items())[:SHOWN_ESTIMATES]
        ]
        more = len(self.estimates) - len(lines)
        return [*lines, f"… and {more} more"] if more > 0 else lines


def _pace(rows_a_second: float) -> str:
    """
    >>> _pace(3.21), _pace(250.0), _pace(0.05)
    ('3.2 rows/s', '250 rows/s', '20 s a row')
    """
    if rows_a_second < 0.5:
        return f"{1 / rows_a_second:.0f} s a row"
    return f"{rows_a_second:.1f} rows/s" if rows_a_second < 100 else f"{rows_a_second:,.0f} rows/s"


def _time_left(seconds: float) -> str:
    """
    >>> _time_left(54), _time_left(1500)
    ('at most 54 s left', 'at most 25 min left')
    """
    return f"at most {seconds:.0f} s left" if seconds < 180 else f"at most {seconds / 60:,.0f} min left"


class Progress:
    """Listens to a run and shows it; a context manager, after which nothing of it is left on the screen.

    Args:
        enabled: False shows nothing; True and None show a block on a terminal, a place in a notebook's cell, and lines elsewhere.
        stream: where to; None: sys.stderr.
        clock: seconds, monotonic.
        by_events: it draws when it hears of something; else where `draw` is called, as in a cell, which one thread alone can write.
    """

    announces = True  # says which rows leave this machine

    def __init__(
        self,
        *,
        enabled: bool | None = None,
        stream: IO[str] | None = None,
        clock: Callable[[], float] = time.monotonic,
        by_events: bool = True,
    ) -> None:
        self.stream = sys.stderr if stream is None else stream
        self.enabled = enabled is not False
        self.counts = Counts()
        self._clock, self._by_events = clock, by_events
        self._started: float | None = None
        self._last_draw_s = 0.0
        self._live: Live | None = None
        self._cell = block_here() if stream is None else None  # a place in a notebook
        self._visible = False  # is anything in it?
        self._looking: tuple[threading.Event, threading.Thread] | None = None  # what ends the thread that draws, and it
        self._drawing = threading.Lock()
        self._terminal = self.stream.isatty() and os.environ.get("TERM") != "dumb"

    def __call__(self, event: Any) -> None:
        if event.kind == "announce":  # rows leave this machine: said also where nothing is shown
            self.say(f"note: {event.text()}")
            return
        now = self._clock()
        if self._started is None or event.kind == "plan":  # the next statement begins
            self.counts = Counts()
            self._started = now
            self._last_draw_s = now if self._live is None and not self._visible else self._last_draw_s
        self.counts.seconds = now - self._started
        self.counts.add(event)
        logs = self.enabled and not self._terminal and self._cell is None
        if logs and event.kind == "node" and event.state in STEP_ENDS:
            self.say(f"{event.node}: {event.text}")
        if self._by_events and event.kind != "done":
            self._draw_at(now, at_once=event.kind in ("node", "loading"))
            self._look_again()

    def _look_again(self) -> None:
        """Draws now and then on a terminal, also where nothing is heard: a model is loaded, or takes long to answer."""
        if not self.enabled or not self._terminal or self._looking is not None:
            return
        ended = threading.Event()

        def look() -> None:
            while not ended.wait(TICK_S):
                with self._drawing:
                    if not ended.is_set() and self._started is not None:
                        now = self._clock()
                        self.counts.seconds = now - self._started
                        self._draw_due(now, at_once=False)

        thread = threading.Thread(target=look, name="uql-progress", daemon=True)
        self._looking = ended, thread
        thread.start()

    def draw(self) -> None:
        """Shows how far the run is, where that was not done just now."""
        if self._started is not None:
            now = self._clock()
            self.counts.seconds = now - self._started
            self._draw_at(now)

    def _draw_at(self, now: float, *, at_once: bool = False) -> None:
        if self.enabled:
            with self._drawing:
                self._draw_due(now, at_once)

    def _draw_due(self, now: float, at_once: bool) -> None:
        if self._terminal or self._cell is not None:
            begun = self._live is not None or self._visible
            if at_once or now - self._last_draw_s >= (REFRESH_S if begun else FIRST_S):
                self._last_draw_s = now
                self._draw()
        elif now - self._last_draw_s >= LINE_S:
            self._last_draw_s = now
            print(self.counts.line(), *self.counts.estimate_lines(), sep=", ", file=self.stream, flush=True)

    def say(self, line: str) -> None:
        """A line that stays, above the block where one is drawn; also where progress is not shown."""
        if self._live is not None:
            self._live.console.print(printable(line), markup=False)
        else:
            print(printable(line), file=self.stream, flush=True)

    def _draw(self) -> None:
        if self._cell is not None:
            from uql.show.html import progress

            self._visible = True
            share = self.counts.calls / self.counts.cap if self.counts.cap else None
            self._cell.update(progress(self.counts.line(), share, self.counts.lines()))
            return
        from rich.text import Text

        if self._live is None:
            from rich.console import Console
            from rich.live import Live

            console = Console(file=self.stream, highlight=False)
            self._live = Live(console=console, auto_refresh=False, transient=True)
            self._live.start()
        lines = [self.counts.line(), *(f"  {line}" for line in self.counts.lines())]
        self._live.update(Text("\n".join(lines), overflow="ellipsis", no_wrap=True), refresh=True)

    @contextmanager
    def of(self, subscribe: Callable[[Callable[[Any], None]], Callable[[], None]]) -> Iterator[Progress]:
        """Listens within the block. `subscribe`: `on_event` of a connection."""
        with self:
            stop = subscribe(self)
            try:
                yield self
            finally:
                stop()

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        self.hide()

    def hide(self) -> None:
        """Takes the block away, as before a question to the user; the next event draws it again."""
        if self._looking is not None:
            ended, thread = self._looking
            self._looking = None
            ended.set()
            thread.join()
        with self._drawing:
            self._take_away()

    def _take_away(self) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None
        if self._cell is not None and self._visible:
            self._cell.clear()
            self._visible = False


@contextmanager
def watching(
    subscribe: Callable[[Callable[[Any], None]], Callable[[], None]], setting: bool | None, has_listener: bool
) -> Iterator[None]:
    """Shows a statement's progress where the setting wants it; where it is open, in a notebook that hears of it from nobody else.

    Args:
        subscribe: of the connection's events.  setting: open where None.  has_listener: somebody listens already.
    """
    if setting is False or has_listener or (setting is None and block_here() is None):
        yield
        return
    with Progress().of(subscribe):
        yield
