"""Plots that a model asked for: what is drawn, and what is refused."""

from __future__ import annotations

import datetime
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from uql.base.errors import ConfigError, DataError, GuardError
from uql.nl.plan.nodes.plot import check_plot, make_plots
from uql.show.plots import Plot, render

pytest.importorskip("vl_convert")
pytest.importorskip("altair")

GAMES = pa.table(
    {
        "team": ["Heat", "Suns", "Jazz"],
        "points": [101, 99, None],
        "day": [datetime.date(2026, 1, d) for d in (1, 2, 3)],
        "logo": [b"\x89PNG", None, None],
        "a.b": [1.0, float("nan"), 2.0],
    }
)
TYPES = {"games": {"team": "VARCHAR", "points": "BIGINT", "day": "DATE", "a.b": "DOUBLE"}}
BAR: dict[str, Any] = {
    "mark": "bar",
    "title": "Points a team",
    "encoding": {"x": {"field": "team", "type": "nominal"}, "y": {"field": "points", "type": "quantitative"}},
}


def bar(**change: Any) -> str:
    return json.dumps({**BAR, **change})


def test_a_specification_becomes_a_picture_of_the_rows() -> None:
    (plot,) = make_plots(bar(), {"games": GAMES})
    svg = plot.svg()
    assert svg.startswith("<svg") and all(word in svg for word in ("Heat", "Suns", "Points a team"))
    assert plot.png().startswith(b"\x89PNG")
    assert plot.title == "Points a team" and plot.spec["data"] == {"name": "games"}


def test_several_plots_of_one_node() -> None:
    line = {"mark": "line", "encoding": {"x": {"field": "day", "type": "temporal"}, "y": {"aggregate": "count"}}}
    plots = make_plots(json.dumps([BAR, line]), {"games": GAMES})
    assert [plot.spec["mark"] for plot in plots] == ["bar", "line"]


def test_views_over_two_tables_name_their_data() -> None:
    other = pa.table({"kind": ["x"], "n": [3]})
    right = {"data": {"name": "other"}, "mark": "bar", "encoding": {"x": {"field": "kind"}, "y": {"field": "n"}}}
    (plot,) = make_plots(
        json.dumps({"hconcat": [{**BAR, "data": {"name": "games"}}, right]}), {"games": GAMES, "other": other}
    )
    assert set(plot.tables) == {"games", "other"}
    with pytest.raises(GuardError, match="which table it shows"):
        check_plot(bar(), {**TYPES, "other": {"n": "BIGINT"}})


def test_a_picture_is_saved_by_its_ending(tmp_path: Path) -> None:
    plot = Plot({**BAR, "data": {"name": "games"}}, {"games": GAMES}, "a <b>title</b>")
    for ending in ("svg", "png", "html", "json"):
        assert plot.save(tmp_path / f"p.{ending}").stat().st_size > 500
    page = (tmp_path / "p.html").read_text()
    assert "<script" not in page and "<b>" not in page and "a &lt;b&gt;title" in page
    rows = json.loads((tmp_path / "p.json").read_text())["datasets"]["games"]
    assert rows[0] == {"team": "Heat", "points": 101, "day": "2026-01-01", "a.b": 1.0}
    with pytest.raises(ConfigError, match="end the name"):
        plot.save(tmp_path / "p.gif")


def test_values_with_markup_stay_text() -> None:
    table = pa.table({"team": ["</script><script>alert(1)</script>"], "points": [1]})
    (plot,) = make_plots(bar(), {"games": table})
    assert "<script" not in plot.svg() and "<script" not in plot.html()


def test_fields_made_by_a_transform_are_known_and_escaped_dots_are_read() -> None:
    transform = [{"aggregate": [{"op": "sum", "field": "points", "as": "total"}], "groupby": ["team"]}]
    y = {"field": "total", "type": "quantitative"}
    assert check_plot(bar(transform=transform, encoding={**BAR["encoding"], "y": y}), TYPES)
    y = {"field": "a\\.b", "type": "quantitative"}
    assert check_plot(bar(encoding={**BAR["encoding"], "y": y}), TYPES)
    repeat = {
        "repeat": ["points", "a\\.b"],
        "spec": {"mark": "bar", "encoding": {"x": {"field": {"repeat": "repeat"}}}},
    }
    assert check_plot(json.dumps(repeat), TYPES)
    repeat["repeat"] = ["points", "nothing"]
    with pytest.raises(GuardError, match="field 'nothing'"):
        check_plot(json.dumps(repeat), TYPES)


X = BAR["encoding"]["x"]
REFUSED = {
    "": "empty",
    "[]": "0 plots",
    "not json": "not JSON",
    "3": "not a JSON object",
    bar(mark="barr"): "Vega-Lite",
    bar(mark="image"): "mark image",
    json.dumps({"encoding": BAR["encoding"]}): "no mark",
    bar(encoding={"x": {"field": "teams"}}): "field 'teams'.*",
    bar(encoding={"y": {"field": "team", "type": "quantitative"}}): "no quantity",
    bar(encoding={"x": {"field": "logo"}}): "field 'logo'",
    bar(encoding={"x": {**X, "typo": 1}}): "Vega-Lite",
    bar(data={"url": "https://example.org/x.csv"}): "addresses are not allowed",
    bar(data={"url": "file:///etc/passwd"}): "addresses are not allowed",
    bar(data={"values": [{"team": "Heat"}]}): "its data is",
    bar(data={"name": "users"}): "its data is",
    bar(data={"name": "games", "format": {"type": "csv"}}): "its data is",
    bar(data={"sequence": {"start": 0, "stop": 1e9}}): "data of its own",
    bar(datasets={"games": []}): "data of its own",
    bar(usermeta={"embedOptions": {"actions": True}}): "usermeta",
    bar(params=[{"name": "p", "expr": "1+1"}]): "parameters",
    bar(transform=[{"calculate": "datum.points * 2", "as": "twice"}]): "expressions",
    bar(transform=[{"filter": "datum.points > 1"}]): "expressions",
    bar(transform=[{"filter": {"and": ["datum.points > 1"]}}]): "expressions",
    bar(transform=[{"lookup": "team", "from": {"data": {"url": "x"}, "key": "team"}}]): "data of its own",
    bar(encoding={**BAR["encoding"], "href": {"field": "team"}}): "links",
    bar(encoding={**BAR["encoding"], "url": {"field": "team"}}): "addresses",
    bar(encoding={"x": {**X, "axis": {"labelExpr": "datum.label"}}}): "expressions",
    bar(encoding={"color": {"condition": {"test": "datum.points>1", "value": "red"}, "value": "blue"}}): "expressions",
    bar(mark={"type": "bar", "color": {"expr": "'red'"}}): "expressions",
    bar(mark={"type": "bar", "href": "javascript:alert(1)"}): "links",
    bar(width=1_000_000): "width",
    json.dumps({"hconcat": [{**BAR, "data": {"name": "games"}}] * 30}): "30 views",
    "[" * 2_000 + "]" * 2_000: "not JSON|deeper|JSON object",
    json.dumps([BAR] * 9): "9 plots",
    bar(title="x" * 60_000): "characters",
}


@pytest.mark.parametrize("text", REFUSED, ids=lambda text: text[:60])
def test_what_is_no_static_picture_of_the_rows_is_refused(text: str) -> None:
    with pytest.raises(GuardError, match=REFUSED[text]) as told:
        check_plot(text, TYPES)
    assert told.value.code == "UQL620" and "the plot is refused" in str(told.value)


def test_a_table_without_rows_is_refused() -> None:
    with pytest.raises(GuardError, match="no rows to show"):
        make_plots(bar(), {"games": GAMES.slice(0, 0)})


def test_a_picture_that_takes_too_long_is_given_up() -> None:
    spec = {**BAR, "data": {"values": []}, "transform": []}
    with pytest.raises(DataError, match=r"not drawn within 0\.001 s"):
        render(spec, "svg", timeout_s=0.001)


def test_the_renderer_fetches_nothing() -> None:
    spec = {"data": {"url": "http://127.0.0.1:9/x.json"}, "mark": "bar", "encoding": {"x": {"field": "a"}}}
    try:
        drawn = render(spec, "svg")
    except DataError as error:
        assert "cannot be drawn" in str(error)
    else:
        assert b"mark-rect" not in drawn or b'aria-roledescription="bar"' not in drawn


def test_more_rows_than_a_picture_can_show_are_refused() -> None:
    with pytest.raises(DataError, match="aggregate or sample"):
        Plot(BAR, {"games": pa.table({"n": range(20_001)})}).with_data()


@pytest.mark.parametrize(
    "more",
    [
        {"background": "url(http://x.example/a)"},
        {"mark": {"type": "bar", "fill": "url(http://x.example/a#b)"}},
        {"mark": {"type": "bar", "fill": "u\\72l(#x)"}},
        {"mark": {"type": "bar", "color": {"gradient": "linear", "stops": [{"offset": 0, "color": "javascript:x"}]}}},
        {"mark": {"type": "text", "font": "a;src:url(http://x.example/f)"}},
        {"encoding": {"color": {"value": "URL( http://x.example/a )"}}},
        {"encoding": {"color": {"field": "city", "scale": {"range": ["red", "url(http://x.example/a)"]}}}},
    ],
)
def test_no_address_reaches_the_picture_as_a_colour_or_a_font(more: dict[str, Any]) -> None:
    spec = {"mark": "bar", "encoding": {"x": {"field": "city", "type": "nominal"}}, **more}
    with pytest.raises(GuardError, match="addresses are not allowed"):
        check_plot(json.dumps(spec), {"t": {"city": "VARCHAR"}})


def test_a_title_may_hold_any_words_and_a_field_the_escapes_of_its_name() -> None:
    spec = {
        "mark": {"type": "bar", "color": "rgb(10, 20, 30)"},
        "title": "Visits of https://shop.example (per day)",
        "encoding": {"x": {"field": "a\\.b", "type": "nominal"}},
    }
    assert check_plot(json.dumps(spec), {"t": {"a.b": "VARCHAR"}})
