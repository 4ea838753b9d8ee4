"""docs/website: the documentation as a site has every page, its links lead somewhere, and nothing in it comes from the network."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path

import pytest
from website.build import DOCS, loaded, main, stage

CONFIG = (DOCS / "website" / "mkdocs.yml").read_text("utf-8")


def test_every_page_is_in_the_navigation_and_every_entry_is_a_page() -> None:
    named = set(re.findall(r"[\w/-]+\.md$", CONFIG, re.M))
    pages = {path.relative_to(DOCS) for path in [*DOCS.rglob("*.md"), *DOCS.glob("examples/*.ipynb")]}
    assert named == {path.with_suffix(".md").as_posix() for path in pages if "dbt" not in path.parts}


def test_every_link_of_the_site_leads_to_a_file_of_it(tmp_path: Path) -> None:
    stage(tmp_path)
    links = [
        (page.relative_to(tmp_path), target)
        for page in tmp_path.rglob("*.md")
        for target in re.findall(r"\]\((?!\w+:)([^)#\s]+)(?:#[^)\s]*)?\)", page.read_text("utf-8"))
    ]
    assert len(links) > 100
    assert [(page, to) for page, to in links if not (tmp_path / page.parent / to).exists()] == []


@pytest.mark.parametrize(
    "text",
    [
        '<script async src="https://host/a.js">',
        '<link rel="stylesheet" href="//fonts.host/css">',
        '<img alt="x" src=http://host/a.png>',
        "@import 'https://host/a.css'",
        "@font-face {src: url(https://host/a.woff2)}",
    ],
)
def test_what_a_page_loads_from_another_host_is_found(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.html").write_text(f"<p>{text}</p>")
    (tmp_path / "b.html").write_text(
        '<a href="https://host/">a link</a><img src="a.png"><link rel="canonical" href="https://host/">'
    )
    assert [line.split(":")[0] for line in loaded(tmp_path)] == ["a.html"]


@pytest.mark.slow
@pytest.mark.skipif(
    any(find_spec(name) is None for name in ("zensical", "mkdocstrings")),
    reason="what builds the site is not installed: make docs",
)
def test_the_site_is_built_without_a_broken_link(tmp_path: Path) -> None:
    assert main(tmp_path) == 0
    page = (tmp_path / "site" / "reference.html").read_text("utf-8")
    assert "the database file; None or" in page and "one in memory; with" in page, "docstrings are rendered"
    assert "rows asked for it" in page, "a field of Estimate has its comment"
    assert "<blockquote>" not in page, "examples of docstrings are code"
