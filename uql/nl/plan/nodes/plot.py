"""A plot that a model asked for: its Vega-Lite specification, checked before anything runs, and drawn.

Allowed is a static picture of the rows given: data by name, fields that the table has. Refused are addresses, links, expressions,
signals, parameters, data of the specification's own, and anything that the schema of Vega-Lite (as altair has it) does not know.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from uql.base.errors import ConfigError, GuardError
from uql.base.extras import install
from uql.nl.plan.result_schema import NUMBERS, fields_of
from uql.show.plots import MAX_PIXELS, Plot

if TYPE_CHECKING:
    import pyarrow as pa

LONGEST = 50_000  # characters of a specification
DEEPEST = 40
MAX_PLOTS = 8  # of one node
MAX_VIEWS = 24  # of one plot

_REFUSED_KEYS = {
    "url": "addresses",
    "href": "links",
    "usermeta": "usermeta",
    "expr": "expressions",
    "labelExpr": "expressions",
    "calculate": "expressions",
    "test": "expressions",
    "signal": "signals",
    "signals": "signals",
    "params": "parameters",
    "param": "parameters",
    "selection": "parameters",
    "bind": "parameters",
    "datasets": "data of its own",
    "sequence": "data of its own",
    "graticule": "data of its own",
    "sphere": "data of its own",
    "from": "data of its own",
    "config": "settings",
    "keyvals": "data of its own",
    "density": "density curves",
    "$schema": "",
}
# What is shown as words, or names columns and values of the rows; any other text (a colour, a font) goes into the picture's attributes.
_SHOWN = "title subtitle text description name field fields as groupby fold flatten pivot equal oneOf domain sort repeat row column"
_WORDS = frozenset(_SHOWN.split())
_ADDRESS = re.compile(r"url\s*\(|\\|://|javascript:|data:", re.IGNORECASE)
_VIEWS = ("hconcat", "vconcat", "concat", "layer")
_OF_VIEWS = {"layer": "LayerChart", "hconcat": "HConcatChart", "vconcat": "VConcatChart", "concat": "ConcatChart"}
Columns = Mapping[str, str]  # name → DuckDB type; "" is unknown


def check_plot(text: str, inputs: Mapping[str, Columns]) -> list[dict[str, Any]]:
    """The specifications of a node, checked and completed with the name of their data.

    Args:
        text: one Vega-Lite specification, or a JSON list of them.
        inputs: the tables that it may show, each with the types of its columns.
    Raises: GuardError (UQL620) naming the key, field or table at fault, and what there is instead; nothing is drawn.
    """
    if not isinstance(text, str) or not text.strip():
        raise _refused("it is empty")
    if len(text) > LONGEST:
        raise _refused(f"it is longer than {LONGEST:,} characters")
    try:
        content = json.loads(text, parse_constant=lambda word: None)
    except (ValueError, RecursionError) as error:
        raise _refused(f"it is not JSON: {error}") from error
    specs = content if isinstance(content, list) else [content]
    if not 1 <= len(specs) <= MAX_PLOTS:
        raise _refused(f"it holds {len(specs)} plots", help=f"one to {MAX_PLOTS}")
    return [_checked(spec, inputs) for spec in specs]


def make_plots(text: str, tables: Mapping[str, pa.Table]) -> tuple[Plot, ...]:
    """The plots of a node over its input tables, each drawn once so that what Vega refuses is known here.

    Raises: GuardError as `check_plot`, and where a table has no rows; DataError (UQL510) where a plot cannot be drawn.
    """
    inputs = {n: {f.name: f.type for f in fields_of(t, {}) if f.type != "BLOB"} for n, t in tables.items()}
    plots = []
    for spec in check_plot(text, inputs):
        data_names = {data["name"] for data in _find_values(spec, "data")}
        for name in sorted(data_names):
            if tables[name].num_rows == 0:
                raise _refused(f"the table {name} has no rows to show")
        plot = Plot(spec, {name: tables[name] for name in sorted(data_names)}, _title(spec))
        plot.svg()
        plots.append(plot)
    return tuple(plots)


# ----------------------------------------------------------------------------------------------------------------- checks
def _checked(spec: Any, inputs: Mapping[str, Columns]) -> dict[str, Any]:
    if not isinstance(spec, dict):
        raise _refused("it is not a JSON object")
    document: dict[str, Any] = {str(key): value for key, value in spec.items() if key != "$schema"}
    spec = document
    _no_code(spec, 0)
    if "data" not in spec and not list(_find_values(spec, "data")):
        if len(inputs) != 1:
            raise _refused(
                "it does not say which table it shows", help=f'give {{"data": {{"name": …}}}} of {_named(inputs)}'
            )
        spec["data"] = {"name": next(iter(inputs))}
    for data in _find_values(spec, "data"):
        if not isinstance(data, dict) or set(data) != {"name"} or data["name"] not in inputs:
            raise _refused(
                f"its data is {json.dumps(data)[:80]}", help=f'give {{"data": {{"name": …}}}} of {_named(inputs)}'
            )
    _small(spec)
    _valid(spec)
    _fields(spec, inputs[spec["data"]["name"]] if "data" in spec else {}, inputs)
    return document


def _no_code(value: Any, depth: int) -> None:
    """Refuses keys that fetch, link, compute or bring data, anywhere in the specification."""
    if depth > DEEPEST:
        raise _refused(f"it is nested deeper than {DEEPEST}")
    if isinstance(value, list):
        for item in value:
            _no_code(item, depth + 1)
    if not isinstance(value, dict):
        return
    for key, inner in value.items():
        if key in _REFUSED_KEYS:
            raise _refused(f"{_REFUSED_KEYS[key]} are not allowed ({key})".strip())
        if key in ("filter", "and", "or", "not") and _has_text(inner):
            raise _refused(
                f"expressions are not allowed ({key})", help='filter with {"field": …, "equal": …}, or in a node before'
            )
        texts = [item for item in (inner if isinstance(inner, list) else [inner]) if isinstance(item, str)]
        if key not in _WORDS and any(map(_ADDRESS.search, texts)):
            raise _refused(f"addresses are not allowed ({key})", help="colours by name or as #rrggbb, fonts by name")
        if key == "formatType" and inner not in ("number", "time"):
            raise _refused("formatType is number or time")
        _no_code(inner, depth + 1)
    mark = value.get("mark")
    if (mark.get("type") if isinstance(mark, dict) else mark) == "image":
        raise _refused("images of addresses are not allowed (mark image)")


def _has_text(value: Any) -> bool:
    """A predicate written as a text is an expression."""
    return isinstance(value, str) or (isinstance(value, list) and any(_has_text(item) for item in value))


def _find_values(value: Any, key: str) -> Iterator[Any]:
    """Every value of a key, anywhere in the specification but in its values of data."""
    if isinstance(value, dict):
        for name, inner in value.items():
            if name == key:
                yield inner
            else:
                yield from _find_values(inner, key)
    elif isinstance(value, list):
        for item in value:
            yield from _find_values(item, key)


def _small(spec: dict[str, Any]) -> None:
    for key in ("width", "height", "step"):
        for size in _find_values(spec, key):
            if isinstance(size, int | float) and not 0 < size <= MAX_PIXELS:
                raise _refused(f"{key} is {size:g}", help=f"at most {MAX_PIXELS:,}")
    views = sum(len(parts) for key in _VIEWS for parts in _find_values(spec, key) if isinstance(parts, list))
    if views > MAX_VIEWS:
        raise _refused(f"it has {views} views", help=f"at most {MAX_VIEWS}")


def _valid(spec: dict[str, Any]) -> None:
    """Checks the specification against the schema of Vega-Lite. Raises GuardError with the first fault and its place."""
    try:
        import altair
        import jsonschema
    except ImportError:
        raise ConfigError("plots need altair", code="UQL610", help=install("plot")) from None
    name = next((kind for key, kind in _OF_VIEWS.items() if key in spec), "Chart")
    if "spec" in spec:
        name = "RepeatChart" if "repeat" in spec else "FacetChart"
    elif name == "Chart" and "mark" not in spec:
        raise _refused("it has no mark", help="bar, line, point, area, arc, rect, tick, boxplot …")
    chart = getattr(altair, name)
    try:
        chart.from_dict({**spec, "datasets": {}})
    except jsonschema.ValidationError as error:
        place = "/".join(str(part) for part in error.absolute_path)
        what = str(error.message).splitlines()[0][:200]
        raise _refused(f"Vega-Lite: {f'{place}: ' if place else ''}{what}") from error
    except (TypeError, ValueError, KeyError) as error:
        raise _refused(f"Vega-Lite: {str(error)[:200]}") from error


def _fields(
    value: Any, columns: Columns, inputs: Mapping[str, Columns], outputs: frozenset[str] | None = frozenset()
) -> None:
    """Every field is a column of the table that its view shows, or an output of a transform above it; None: any field may be one."""
    if isinstance(value, list):
        for item in value:
            _fields(item, columns, inputs, outputs)
    if not isinstance(value, dict):
        return
    if isinstance(value.get("data"), dict):
        columns = inputs[value["data"]["name"]]
    transforms = value.get("transform")
    if outputs is not None and isinstance(transforms, list):
        if any("pivot" in step for step in transforms if isinstance(step, dict)):
            outputs = None
        else:
            new = {str(n) for step in transforms for names in _find_values(step, "as") for n in _listed(names)}
            new |= {"key", "value"} if any("fold" in step for step in transforms if isinstance(step, dict)) else set()
            outputs = outputs | new
    repeated = value.get("repeat")
    field_names = [*_listed(value.get("field")), *_listed(value.get("groupby")), *_listed(value.get("fold"))]
    if isinstance(repeated, dict):
        field_names += [name for axis, names in repeated.items() if axis != "layer" for name in _listed(names)]
    elif isinstance(repeated, list):
        field_names += repeated
    for name in field_names:
        if isinstance(name, str) and outputs is not None and _column(name) not in (*columns, *outputs):
            raise _refused(
                f"it shows the field {name!r}, which the table does not have", help=f"fields: {_named(columns)}"
            )
    field = value.get("field")
    if (
        value.get("type") == "quantitative"
        and isinstance(field, str)
        and value.get("aggregate") not in ("count", "distinct")
    ):
        kind = columns.get(_column(field), "")
        if kind and not kind.startswith((*NUMBERS, "BOOLEAN")) and not (outputs and _column(field) in outputs):
            raise _refused(
                f"the field {field!r} is {kind} and no quantity",
                help="use nominal, ordinal or temporal, or aggregate it",
            )
    for key, inner in value.items():
        if key != "data":
            _fields(inner, columns, inputs, outputs)


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]


def _column(name: str) -> str:
    """A field's name without Vega-Lite's escapes of dots and brackets."""
    return name.replace("\\.", ".").replace("\\[", "[").replace("\\]", "]")


def _title(spec: Mapping[str, Any]) -> str:
    title = spec.get("title", "plot")
    if isinstance(title, dict):
        title = title.get("text", "plot")
    return " ".join(title) if isinstance(title, list) else str(title)


def _named(names: Mapping[str, Any]) -> str:
    return ", ".join(list(names)[:40]) or "none"


def _refused(why: str, help: str | None = None) -> GuardError:
    return GuardError(
        f"the plot is refused: {why}", help=help or "write one static Vega-Lite specification over the table"
    )
