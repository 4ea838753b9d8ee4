"""The plot that fits a result: bars with intervals for groups, a line over time, a histogram of numbers, a grid of images."""

from __future__ import annotations

import base64
import math
from collections.abc import Callable, Sequence
from typing import Any, Literal

import pyarrow as pa
from pyarrow import types

from uql.base.arrow_values import cells_of
from uql.base.errors import DataError
from uql.base.media_types import media_type
from uql.base.names import free_names
from uql.base.printable import printable
from uql.engine.outcome import Outcome
from uql.sampling.base import Estimate
from uql.show.plots import MAX_ROWS, Plot
from uql.show.render import cell_width, format_estimate

Kind = Literal["bar", "line", "histogram", "scatter", "images"]
MOST_BARS = 40
MOST_IMAGES = 24
BINS = 30
SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"


def chart(outcome: Outcome, text: str, kind: Kind | None = None) -> Plot:
    """The plot of a result.

    Args:
        kind: None: images where a column holds some; a line where a time stands beside a number; bars for a label, or a group's estimate,
            beside a number; points for two numbers; else a histogram of the first number.
    Raises: DataError (UQL514) where the columns cannot be drawn so, with what they would need.
    """
    shape = _Shape(outcome, text)
    chosen = kind or shape.fitting()
    draw = {
        "bar": shape.bars,
        "line": shape.line,
        "histogram": shape.histogram,
        "scatter": shape.points,
        "images": shape.pictures,
    }.get(chosen)
    if draw is None:
        raise DataError(f"there is no plot {chosen!r}", code="UQL514", help="bar, line, histogram, scatter or images")
    return draw()


class _Shape:
    """The columns of a result by what they can be in a plot."""

    def __init__(self, outcome: Outcome, text: str) -> None:
        self.outcome = outcome
        self.data = outcome.table.rename_columns(free_names(outcome.table.column_names))

        def named(fits: Callable[[Any], bool]) -> list[str]:
            return [field.name for field in self.data.schema if fits(field.type)]

        self.numbers = named(lambda t: types.is_integer(t) or types.is_floating(t) or types.is_decimal(t))
        self.times = named(lambda t: types.is_date(t) or types.is_timestamp(t))
        blobs = named(lambda t: types.is_binary(t) or types.is_large_binary(t))
        self.images = [name for name in blobs if _holds_images(self.data.column(name))]
        self.labels = [n for n in self.data.column_names if n not in {*self.numbers, *self.times, *blobs}]
        self.title = " ".join(text.split())[:120]

    def fitting(self) -> Kind:
        if self.images:
            return "images"
        if self.times and self.numbers:
            return "line"
        if self.numbers and (self.labels or self.outcome.estimates or self.data.num_rows == 1):
            return "bar"
        return "scatter" if len(self.numbers) > 1 else "histogram"

    # ------------------------------------------------------------------------------------------------------- the kinds
    def bars(self) -> Plot:
        value = self._number("bar")
        label = self.labels[0] if self.labels else next((n for n in self.data.column_names if n != value), None)
        x: dict[str, Any] = {"field": "v", "type": "quantitative", "title": value}
        y: dict[str, Any] = {"field": "label", "type": "nominal", "title": label or "", "sort": None}
        rows = self._with_interval(value, {"label": label} if label else {}).slice(0, MOST_BARS)
        picked = _texts(rows, "label", label is None)
        layers: list[dict[str, Any]] = [{"mark": {"type": "bar", "color": "#5b8ff0"}, "encoding": {"x": x, "y": y}}]
        if picked.column("low").null_count < picked.num_rows:
            bounds = {"x": {"field": "low", "type": "quantitative", "title": value}, "x2": {"field": "high"}, "y": y}
            layers.append({"mark": {"type": "rule", "strokeWidth": 1.5}, "encoding": bounds})
        more = self.data.num_rows - MOST_BARS
        subtitle = self._interval() + (f"; the first {MOST_BARS} of {self.data.num_rows:,} rows" if more > 0 else "")
        return self._plot({"layer": layers, "width": 520, "height": {"step": 26}}, picked, subtitle)

    def line(self) -> Plot:
        value = self._number("line")
        time = self.times[0] if self.times else next((n for n in self.numbers if n != value), None)
        if time is None:
            raise DataError(
                "a line needs a time or a second number", code="UQL514", help="select a DATE or TIMESTAMP too"
            )
        picked = self._with_interval(value, {"t": time})
        x = {"field": "t", "type": "temporal" if self.times else "quantitative", "title": time}
        y = {"field": "v", "type": "quantitative", "title": value}
        layers: list[dict[str, Any]] = [{"mark": {"type": "line", "point": True}, "encoding": {"x": x, "y": y}}]
        if picked.column("low").null_count < picked.num_rows:
            bounds = {"x": x, "y": {"field": "low", "type": "quantitative", "title": value}, "y2": {"field": "high"}}
            layers.insert(0, {"mark": {"type": "area", "opacity": 0.25}, "encoding": bounds})
        return self._plot({"layer": layers, "width": 560, "height": 300}, picked, self._interval())

    def histogram(self) -> Plot:
        value = self._number("histogram")
        picked = _columns(self.data, {"v": value})
        x = {"field": "v", "bin": {"maxbins": BINS}, "type": "quantitative", "title": value}
        y = {"aggregate": "count", "type": "quantitative", "title": "rows"}
        return self._plot({"mark": "bar", "encoding": {"x": x, "y": y}, "width": 520, "height": 280}, picked)

    def points(self) -> Plot:
        if len(self.numbers) < 2:
            raise DataError("points need two columns of numbers", code="UQL514", help="select a second number")
        one, other = self.numbers[:2]
        picked = _columns(self.data, {"x": one, "y": other})
        x = {"field": "x", "type": "quantitative", "title": one}
        y = {"field": "y", "type": "quantitative", "title": other}
        return self._plot({"mark": "point", "encoding": {"x": x, "y": y}, "width": 480, "height": 320}, picked)

    def pictures(self) -> Plot:
        if not self.images:
            raise DataError("no column holds images", code="UQL514", help="select a BLOB of PNG, JPEG or WebP bytes")
        name = self.images[0]
        label = self.labels[0] if self.labels else (self.numbers[0] if self.numbers else None)
        first_rows = self.data.slice(0, MOST_IMAGES)
        urls = [
            f"data:{_image(value)};base64,{base64.b64encode(value).decode('ascii')}"
            if value and _image(value)
            else None
            for value in first_rows.column(name).to_pylist()
        ]
        captions = [str(v) for v in cells_of(first_rows.column(label))] if label else [""] * len(urls)
        picked = pa.table(
            {
                "url": pa.array(urls, pa.string()),
                "said": captions,
                "x": [i % 6 for i in range(len(urls))],
                "y": [i // 6 for i in range(len(urls))],
            }
        )
        place = {axis: {"field": axis, "type": "ordinal", "axis": None} for axis in ("x", "y")}
        image = {"mark": {"type": "image", "width": 100, "height": 90}, "encoding": place | {"url": {"field": "url"}}}
        words = {"mark": {"type": "text", "dy": 56, "limit": 110}, "encoding": place | {"text": {"field": "said"}}}
        size = {"width": {"step": 116}, "height": {"step": 124}}
        more = f"the first {MOST_IMAGES} of {self.data.num_rows:,} rows" if self.data.num_rows > MOST_IMAGES else ""
        return self._plot({"layer": [image, words], **size}, picked, more)

    # --------------------------------------------------------------------------------------------------------- helpers
    def _number(self, kind: str) -> str:
        if not self.numbers:
            raise DataError(f"a {kind} needs a column of numbers", code="UQL514", help="select one, as COUNT(*)")
        estimated = [n for n in self.numbers if n in self.outcome.estimates]
        return (estimated or self.numbers)[0]

    def _interval(self) -> str:
        inexact = any(not e.exact for estimates in self.outcome.estimates.values() for e in _listed(estimates))
        return "estimates with their intervals" if inexact else ""

    def _with_interval(self, value: str, others: dict[str, str]) -> pa.Table:
        """A column as `v` with its interval as `low` and `high`, NULL where exact, and others by their new names."""
        estimates = _listed(self.outcome.estimates.get(value))
        n = self.data.num_rows
        ends = [
            (None, None) if i >= len(estimates) or estimates[i].exact else (estimates[i].low, estimates[i].high)
            for i in range(n)
        ]
        low, high = [pa.array([e[side] for e in ends], pa.float64()) for side in (0, 1)]
        return _columns(self.data, {"v": value, **others}).append_column("low", low).append_column("high", high)

    def _plot(self, spec: dict[str, Any], rows: pa.Table, subtitle: str = "") -> Plot:
        if rows.num_rows > MAX_ROWS:
            rows, subtitle = rows.slice(0, MAX_ROWS), f"the first {MAX_ROWS:,} of {rows.num_rows:,} rows"
        title = {"text": self.title, "anchor": "start", "limit": 620} | ({"subtitle": subtitle} if subtitle else {})
        return Plot({"$schema": SCHEMA, "title": title, "data": {"name": "rows"}, **spec}, {"rows": rows}, self.title)


def bars(outcome: Outcome, width: int = 40) -> str:
    """Bars for a terminal: a line a row, its label, a bar as long as its number, the number with its interval.

    Raises: DataError (UQL514) where no column holds numbers.
    """
    shape = _Shape(outcome, "")
    value = shape._number("bar")
    names = shape.labels or [n for n in shape.data.column_names if n != value]
    count = min(shape.data.num_rows, MOST_BARS)
    labels = (
        [printable(str(v))[:30] for v in cells_of(shape.data.column(names[0]).slice(0, count))]
        if names
        else [value] * count
    )
    numbers = [float(v) if v is not None else 0.0 for v in shape.data.column(value).slice(0, count).to_pylist()]
    estimates = _listed(outcome.estimates.get(value))
    most = max((abs(v) for v in numbers if math.isfinite(v)), default=0.0) or 1.0
    room = max((cell_width(label) for label in labels), default=0)
    lines = []
    for i, (label, number) in enumerate(zip(labels, numbers, strict=True)):
        eighths = 0 if math.isnan(number) else round(min(abs(number) / most, 1.0) * width * 8)
        bar = "█" * (eighths // 8) + " ▏▎▍▌▋▊▉"[eighths % 8].strip()
        text = format_estimate(estimates[i], whole=number.is_integer()) if i < len(estimates) else f"{number:g}"
        lines.append(f"{label}{' ' * (room - cell_width(label))}  {bar} {text}")
    if shape.data.num_rows > count:
        lines.append(f"… and {shape.data.num_rows - count:,} more")
    return "\n".join(lines)


def _listed(estimates: Estimate | list[Estimate] | None) -> Sequence[Estimate]:
    if estimates is None:
        return ()
    return estimates if isinstance(estimates, list) else (estimates,)


def _columns(data: pa.Table, names: dict[str, str]) -> pa.Table:
    """Columns under new names; the first of equal names."""
    return pa.table({new: data.column(data.column_names.index(old)) for new, old in names.items()})


def _texts(data: pa.Table, column: str, missing: bool) -> pa.Table:
    """The labels as texts, each different: bars of one name would be stacked."""
    values = [""] * data.num_rows if missing else [str(v) for v in cells_of(data.column(column))]
    counts: dict[str, int] = {}
    labels = []
    for value in values:
        counts[value] = counts.get(value, 0) + 1
        labels.append(value if counts[value] == 1 else f"{value} ({counts[value]})")
    others = data.drop_columns([column]) if column in data.column_names else data
    return others.append_column(column, pa.array(labels, pa.string()))


def _image(value: bytes | None) -> str | None:
    """The media type of an image by its first bytes; None: it is not an image."""
    media = media_type(value) if value else ""
    return media if media.startswith("image/") else None


def _holds_images(column: Any) -> bool:
    first = next((v for v in cells_of(column.slice(0, 100)) if v), None)
    return first is not None and _image(first) is not None
