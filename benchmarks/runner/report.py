"""The report of some results: Markdown, or one HTML page with pictures."""

from __future__ import annotations

import html
from collections import Counter
from collections.abc import Sequence

from uql.benchmarks.runner import pictures, suites
from uql.benchmarks.runner.records import Record
from uql.benchmarks.runner.suite import Table

STYLE = """body { font: 15px/1.5 system-ui, sans-serif; max-width: 75em; margin: 2em auto; padding: 0 1em; color: #222 }
table { border-collapse: collapse; margin: .5em 0 1em } td, th { padding: .2em .7em; border-bottom: 1px solid #ddd; text-align: left }
pre { background: #f6f6f6; padding: .8em; overflow: auto } p.note { color: #555; margin: .2em 0 } h2 { margin-top: 2em }"""


def sections(records: Sequence[Record]) -> list[tuple[str, str, list[Table]]]:
    """(suite, what it is, its tables) of every suite with results; of one that this version has not, how many runs."""
    found = []
    for name in dict.fromkeys(r.suite for r in records):
        own = [r for r in records if r.suite == name]
        if name in suites.names():
            suite = suites.find(name)
            found.append((name, suite.about, suite.tables(own)))
        else:
            found.append((name, f"this version has no such suite: {len(own):,} runs are not shown", []))
    return found


def markdown(records: Sequence[Record], title: str = "Benchmarks") -> str:
    """The report as Markdown; no table holds anything that the results do not."""
    return "\n\n".join([f"# {title}", made_with(records), *suite_sections(records)]) + "\n"


def suite_sections(records: Sequence[Record]) -> list[str]:
    """For each suite its heading and tables as Markdown."""
    parts = []
    for name, about, tables in sections(records):
        parts.append(f"## {name}\n\n{_sentence(about)}")
        parts += [markdown_table(table) for table in tables]
    return parts


def made_with(records: Sequence[Record]) -> str:
    """One line: versions, and how many runs; of several versions of the engine's source how many each."""
    ran = [r for r in records if not r.reason]
    held = {f"{k} {v}" for r in ran for k, v in r.versions.items() if k not in ("cpus", "source")}
    sources = Counter(r.versions["source"] for r in ran if "source" in r.versions)
    held |= {f"source {s}" + (f" ({n:,} of them)" if len(sources) > 1 else "") for s, n in sources.items()}
    cpus = sorted({r.versions.get("cpus", "?") for r in ran})
    return f"{len(ran):,} runs; {', '.join(sorted(held))}; {' or '.join(cpus)} processors."


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:].rstrip(".") + "."


def markdown_table(table: Table) -> str:
    parts = [f"### {table.title}"]
    if table.text:
        parts.append(f"```text\n{table.text}\n```")
    if table.rows:
        lines = [table.head, tuple("---" for _ in table.head), *table.rows]
        parts.append("\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines))
    if table.notes:
        parts.append("\n".join(f"- {note}" for note in table.notes))
    return "\n\n".join(parts)


def page(records: Sequence[Record], title: str = "Benchmarks") -> str:
    """The report as one HTML page: tables, and for each suite its pictures as SVG. Nothing is fetched.

    Raises: ConfigError where the packages that draw are not installed.
    """
    parts = [f"<h1>{html.escape(title)}</h1>", f"<p>{html.escape(made_with(records))}</p>"]
    for name, about, tables in sections(records):
        parts.append(f"<h2>{html.escape(name)}</h2><p>{html.escape(_sentence(about))}</p>")
        if tables:
            own = [r for r in records if r.suite == name]
            parts += [f"<figure>{svg}</figure>" for svg in pictures.of(own, suites.find(name).figures)]
        parts += [_html_table(table) for table in tables]
    body = "\n".join(parts)
    return (
        f"<!doctype html>\n<html lang=en><meta charset=utf-8><title>{html.escape(title)}</title>"
        f"<style>{STYLE}</style>\n{body}\n</html>\n"
    )


def _html_table(table: Table) -> str:
    parts = [f"<h3>{html.escape(table.title)}</h3>"]
    if table.text:
        parts.append(f"<pre>{html.escape(table.text)}</pre>")
    if table.rows:
        head = "".join(f"<th>{html.escape(cell)}</th>" for cell in table.head)
        rows = "".join(
            "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>\n" for row in table.rows
        )
        parts.append(f"<table><tr>{head}</tr>\n{rows}</table>")
    parts += [f"<p class=note>{html.escape(note)}</p>" for note in table.notes]
    return "\n".join(parts)
