"""Plots: a Vega-Lite specification and its rows, made into SVG, PNG or a page.

The specification is data and never code. It is rendered by vl-convert in a process of its own, without network, within a time
limit, so that no specification can hang or fill the caller. The page holds the picture alone: no script, nothing to fetch.
"""

from __future__ import annotations

import base64
import datetime
import decimal
import html
import json
import math
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from uql.base.arrow_values import rows_of
from uql.base.errors import ConfigError, DataError
from uql.base.extras import need

if TYPE_CHECKING:
    import pyarrow as pa

Format = Literal["svg", "png", "html"]
TIMEOUT_S = 30.0
MAX_ROWS = 20_000  # of all tables of one plot
MAX_PIXELS = 4_000  # width and height, each
MEMORY_BYTES = 2 * 2**30
INK, QUIET, GRID = "#e4e7ea", "#b4bac0", "#3b4248"  # of a plot on a dark page
_NAMES = {"labelColor": QUIET, "titleColor": INK}
DARK: Mapping[str, Any] = {
    "title": {"color": INK, "subtitleColor": QUIET},
    "axis": {**_NAMES, "gridColor": GRID, "domainColor": QUIET, "tickColor": QUIET},
    "legend": _NAMES,
    "header": _NAMES,
    "view": {"stroke": GRID},
    "rule": {"color": INK},
    "text": {"color": INK},
}


@dataclass(frozen=True, slots=True)
class Plot:
    """A Vega-Lite specification whose data are the tables named in it.

    Attributes:
        spec: without data; `{"data": {"name": …}}` names a table.
        tables: by that name; columns of bytes are not shown.
        title: for the page and the file.
    """

    spec: Mapping[str, Any]
    tables: Mapping[str, pa.Table] = field(repr=False)
    title: str = "plot"

    def with_data(self) -> dict[str, Any]:
        """The specification together with its rows, as `datasets`. Raises DataError (UQL510) above MAX_ROWS rows."""
        rows = sum(table.num_rows for table in self.tables.values())
        if rows > MAX_ROWS:
            raise DataError(
                f"a plot of {rows:,} rows", code="UQL510", help=f"at most {MAX_ROWS:,}: aggregate or sample first"
            )
        return {**self.spec, "datasets": {name: _records(table) for name, table in self.tables.items()}}

    def svg(self, *, dark: bool = False) -> str:
        """The picture as SVG; `dark`: for a dark page, whose background shows."""
        spec = self.with_data()
        if dark:
            own = spec.get("config") or {}
            spec["config"] = {**own, **{part: {**DARK[part], **(own.get(part) or {})} for part in DARK}}
            spec["background"] = None
        return render(spec, "svg").decode("utf-8")

    def png(self, scale: float = 2.0) -> bytes:
        """The picture as PNG; `scale` is pixels a unit of the specification."""
        return render(self.with_data(), "png", scale=scale)

    def html(self) -> str:
        """A page with the picture."""
        return _page(self.svg(), self.title)

    def save(self, path: str | Path) -> Path:
        """Writes the picture in the format that the path ends in: .svg, .png, .html, or .json for the specification.

        Raises: ConfigError (UQL105) on another ending.
        """
        target = Path(path)
        ending = target.suffix.lower().removeprefix(".")
        if ending == "png":
            target.write_bytes(self.png())
        elif ending in ("svg", "html", "json"):
            text = self.svg() if ending == "svg" else self.html() if ending == "html" else ""
            target.write_text(text or json.dumps(self.with_data(), indent=2), encoding="utf-8")
        else:
            raise ConfigError(
                f"a plot cannot be written as {target.name}", help="end the name in .svg, .png, .html or .json"
            )
        return target

    def _repr_svg_(self) -> str:
        return self.svg()


def render(spec: Mapping[str, Any], format: Format, *, scale: float = 1.0, timeout_s: float = TIMEOUT_S) -> bytes:
    """A Vega-Lite specification with its data as a picture.

    Args:
        spec: version 6; data inside it.
        format: "svg", "png" or "html".
        scale: of a PNG, pixels a unit.
        timeout_s: after that the renderer is killed.
    Raises: ConfigError (UQL610) where vl-convert is not installed; DataError (UQL510) where it cannot be drawn, in Vega's words.
    """
    if format not in get_args(Format):
        raise ConfigError(f"a plot has no format {format!r}", help=f"one of {', '.join(get_args(Format))}")
    need("plots", "plot", "vl_convert")
    picture = "png" if format == "png" else "svg"
    order = json.dumps({"spec": dict(spec), "format": picture, "scale": scale})
    image = _render(order, timeout_s)
    if format == "html":
        return _page(image.decode("utf-8"), str(spec.get("title") or "plot")).encode("utf-8")
    return image


@lru_cache(maxsize=16)
def _render(order: str, timeout_s: float) -> bytes:
    """The picture of an order, from the renderer's process. Raises DataError (UQL510)."""
    command = [sys.executable, "-I", "-c", _WORKER, str(MEMORY_BYTES)]
    try:
        done = subprocess.run(
            command, input=order.encode(), capture_output=True, timeout=timeout_s, env={}, check=False
        )
    except subprocess.TimeoutExpired:
        raise DataError(
            f"the plot was not drawn within {timeout_s:g} s", code="UQL510", help="show fewer marks"
        ) from None
    if done.returncode != 0:
        lines = done.stderr.decode("utf-8", "replace").strip().splitlines()
        # no lines of its stack
        messages = [line.strip() for line in lines if line.strip() and not line.lstrip().startswith("at ")]
        why = next(
            (line for line in reversed(messages) if "rror:" in line), messages[-1] if messages else "the renderer died"
        )
        raise DataError(f"the plot cannot be drawn: {why[:300]}", code="UQL510")
    return done.stdout


# Runs alone in an isolated interpreter: reads the order on stdin, writes the picture to stdout. No base address is allowed, so
# nothing is fetched; memory that is written to is limited (V8 reserves far more than it uses).
_WORKER = """
import json, resource, sys
resource.setrlimit(resource.RLIMIT_DATA, (int(sys.argv[1]), int(sys.argv[1])))
import vl_convert
order = json.load(sys.stdin)
if order["format"] == "png":
    made = vl_convert.vegalite_to_png(order["spec"], scale=order["scale"], allowed_base_urls=[])
else:
    made = vl_convert.vegalite_to_svg(order["spec"], allowed_base_urls=[]).encode()
sys.stdout.buffer.write(made)
"""


def _page(svg: str, title: str) -> str:
    """A page with the picture as an image, in which no script can run."""
    data = base64.b64encode(svg.encode("utf-8")).decode("ascii")
    name = html.escape(title, quote=True)
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{name}</title>'
        '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; img-src data:"></head>\n'
        f'<body><img alt="{name}" src="data:image/svg+xml;base64,{data}"></body></html>\n'
    )


def _records(table: pa.Table) -> list[dict[str, Any]]:
    """The rows as JSON holds them; columns of bytes are left out."""
    import pyarrow as pa

    names = [f.name for f in table.schema if not (pa.types.is_binary(f.type) or pa.types.is_large_binary(f.type))]
    return [{name: _cell(value) for name, value in row.items()} for row in rows_of(table.select(names))]


def _cell(value: Any) -> Any:
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, decimal.Decimal):
        return float(value)
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    return str(value)
