"""`uql.model.toml`, the semantic model of a database: what its tables and columns mean, how they are joined, metrics, verified questions.

    [tables.orders]
    description = "one row an order"
    synonyms = ["purchases"]
    columns.total = { description = "EUR, with tax", synonyms = ["revenue"] }
    columns.email = { private = true }

    [metrics.revenue]
    uql = "SELECT sum(total) FROM orders WHERE NOT cancelled"

    [[joins]]
    left = "orders.customer_id"
    right = "customers.id"

    [[verified]]
    question = "Who ordered most last year?"
    uql = "SELECT …"

A person writes it; `uql model init` proposes a first one, `Answer.verify` adds what a person approved. It changes what prompts say and
which columns are private. Its statements are shown to a model, and run by `uql model check` alone.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from uql.base import toml_file
from uql.base.errors import ConfigError
from uql.base.schema import Table
from uql.nl.schema.name_words import Near
from uql.nl.schema.scope import Column, Link

if TYPE_CHECKING:
    from uql.sources.catalog import Catalog

FILE = "uql.model.toml"
SHOWN = 3  # verified questions in a prompt
NEAR = 0.4  # similarity from which a verified question is shown
LONGEST = 4_000  # characters of one text of the file
_PARTS = {
    "tables": ("description", "synonyms", "columns"),
    "columns": ("description", "synonyms", "private"),
    "metrics": ("description", "uql"),
    "joins": ("left", "right"),
    "verified": ("question", "uql"),
}


@dataclass(frozen=True, slots=True)
class Note:
    """What the file says of a table or column."""

    description: str = ""
    synonyms: tuple[str, ...] = ()
    private: bool = False

    def beside(self, comment: str) -> str:
        """The text of a comment with what the file says: its description stands in place of the comment's."""
        called = f"also called {', '.join(self.synonyms)}" if self.synonyms else ""
        return "; ".join(text for text in (self.description or comment, called) if text)


@dataclass(frozen=True, slots=True)
class Verified:
    """A question and the UQL that a person approved as its answer."""

    question: str
    uql: str


@dataclass(frozen=True, slots=True)
class SemanticModel:
    """What the file holds.

    Attributes:
        tables: by name in lower case.
        columns: by table and name, in lower case.
        metrics: by name: description and UQL.
        joins: columns on which tables are joined.
        verified: questions with their UQL.
    """

    tables: Mapping[str, Note] = field(default_factory=dict)
    columns: Mapping[tuple[str, str], Note] = field(default_factory=dict)
    metrics: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    joins: tuple[Link, ...] = ()
    verified: tuple[Verified, ...] = ()

    @property
    def private(self) -> frozenset[tuple[str, str]]:
        """The private columns, as the keys of `columns`."""
        return frozenset(key for key, note in self.columns.items() if note.private)

    def described(self, table: Table) -> Table:
        """A table with what the file says of it and its columns."""
        name = table.name.lower()
        note = self.tables.get(name, Note())
        fields = []
        for f in table.fields:
            column_note = self.columns.get((name, f.name.lower()), Note())
            fields.append(
                replace(f, description=column_note.beside(f.description), private=f.private or column_note.private)
            )
        return replace(table, description=note.beside(table.description), fields=tuple(fields))

    def links(self, tables: Collection[str]) -> tuple[Link, ...]:
        """The joins between these tables, by their names here."""
        called = {name.lower(): name for name in tables}
        return tuple(
            Link(Column(called[x.left.table.lower()], x.left.name), Column(called[x.right.table.lower()], x.right.name))
            for x in self.joins
            if {x.left.table.lower(), x.right.table.lower()} <= set(called)
        )

    def rules(self, question: str, near: Near) -> tuple[str, ...]:
        """What a prompt for this question says of metrics and of the nearest verified questions.

        Args:
            near: similarities of a text and others.
        """
        lines = [
            f"{name}{f', {description}' if description else ''}, is: {' '.join(uql.split())}"
            for name, (description, uql) in self.metrics.items()
        ]
        if self.verified:
            questions = [each.question for each in self.verified]
            ranked = sorted(zip(near(question, questions), range(len(questions)), strict=True), reverse=True)[:SHOWN]
            lines += [
                f"The question {self.verified[n].question!r} is answered by: {' '.join(self.verified[n].uql.split())}"
                for score, n in ranked
                if score >= NEAR
            ]
        return tuple(lines)


UNKNOWN = SemanticModel()  # nothing is written of the database


def read(path: Path) -> SemanticModel:
    """The file's content.

    Raises: ConfigError (UQL402) where it is not TOML, or holds what is not listed above; it names the place.
    """
    try:
        content = toml_file.parsed(toml_file.content(path))
    except (ValueError, OSError) as error:
        raise ConfigError(f"{path.name} cannot be read: {error}", help="write it as TOML; uql model init") from error
    _check_names(content, "the file", ("tables", "metrics", "joins", "verified"))
    tables, columns = {}, {}
    for table, parts in _mapping(content, "tables").items():
        where = f"tables.{table}"
        _check_names(parts, where, _PARTS["tables"])
        tables[table.lower()] = _note(parts, where)
        for column, entry in _mapping(parts, "columns", where).items():
            _check_names(entry, f"{where}.columns.{column}", _PARTS["columns"])
            columns[table.lower(), column.lower()] = _note(entry, f"{where}.columns.{column}")
    metrics = {}
    for name, entry in _mapping(content, "metrics").items():
        _check_names(entry, f"metrics.{name}", _PARTS["metrics"])
        metrics[name] = (_text(entry, "description", f"metrics.{name}"), _text(entry, "uql", f"metrics.{name}", True))
    joins = tuple(
        Link(_column(entry, "left", where), _column(entry, "right", where)) for where, entry in _list(content, "joins")
    )
    verified = tuple(
        Verified(_text(entry, "question", where, True), _text(entry, "uql", where, True))
        for where, entry in _list(content, "verified")
    )
    return SemanticModel(tables, columns, metrics, joins, verified)


def read_if_present(path: Path) -> SemanticModel:
    """The file's content; an empty one where there is none. Raises ConfigError as `read`."""
    return read(path) if path.is_file() else UNKNOWN


def beside(catalog: Catalog) -> Path:
    """Where the file of a database is: beside it, and of one in memory in this folder."""
    path = catalog.value(
        "SELECT path FROM system.main.duckdb_databases() WHERE database_name = system.main.current_database()"
    )
    return (Path(str(path)).parent if path else Path()) / FILE


def proposed(tables: Sequence[Table], links: Sequence[Link]) -> str:
    """The text of a first file: every table and column with its comment, and the joins that were found; a person edits it."""
    lines = [
        "# What questions in words need to know of this database (docs/questions.md). Edit it: nothing here is required.",
        "",
    ]
    for table in tables:
        lines += [
            f"[tables.{_key(table.name)}]",
            f"description = {_string(table.description[:LONGEST])}",
            "synonyms = []",
        ]
        for f in table.fields:
            private = ", private = true" if f.private else ""
            lines.append(f"columns.{_key(f.name)} = {{ description = {_string(f.description[:LONGEST])}{private} }}")
        lines.append("")
    for link in links:
        lines += ["[[joins]]", f"left = {_string(str(link.left))}", f"right = {_string(str(link.right))}", ""]
    lines += [
        "# [metrics.revenue]",
        '# description = "of all orders that were paid"',
        '# uql = "SELECT sum(total) FROM orders WHERE paid"',
    ]
    return "\n".join(lines) + "\n"


def keep(path: Path, verified: Verified) -> None:
    """Adds a question with its UQL to the end of the file, which is made where it is not there.

    Raises: ConfigError where the file cannot be read, or holds the question with other UQL, or a text is longer than the file may hold.
    """
    for name in _PARTS["verified"]:
        _text(asdict(verified), name, "verified", True)
    for entry in read_if_present(path).verified:
        if _words(entry.question) == _words(verified.question):
            if entry.uql.split() == verified.uql.split():
                return
            raise ConfigError(
                f"{path.name} has other UQL for {verified.question!r}", help="edit the file: one answer a question"
            )
    before = path.read_text(encoding="utf-8").rstrip("\n") + "\n\n" if path.is_file() else ""
    added = f"[[verified]]\nquestion = {_string(verified.question)}\nuql = {_string(verified.uql)}\n"
    mode = "w" if path.is_file() else "x"  # a link that leads to no file yet is not followed
    with path.open(mode, encoding="utf-8") as file:
        file.write(before + added)


# ------------------------------------------------------------------------------------------------------------- the TOML
def _note(entry: Mapping[str, Any], where: str) -> Note:
    synonyms = entry.get("synonyms", [])
    if not isinstance(synonyms, list) or not all(isinstance(each, str) for each in synonyms):
        raise ConfigError(f"{where}.synonyms is not a list of texts", help='synonyms = ["purchases"]')
    private = entry.get("private", False)
    if not isinstance(private, bool):
        raise ConfigError(f"{where}.private is not true or false", help="private = true")
    return Note(_text(entry, "description", where), tuple(synonyms), private)


def _check_names(entry: object, where: str, names: Sequence[str]) -> None:
    if not isinstance(entry, dict):
        raise ConfigError(f"{where} is not a table of TOML", help=f"it holds {', '.join(names)}")
    for name in entry:
        if name not in names:
            raise ConfigError(f"{where} has no {name!r}", help=f"it holds {', '.join(names)}")


def _mapping(entry: Mapping[str, Any], name: str, where: str = "the file") -> Mapping[str, Any]:
    table = entry.get(name, {})
    if not isinstance(table, dict):
        raise ConfigError(f"{name} of {where} is not a table of TOML", help=f"it holds {', '.join(_PARTS[name])}")
    return table


def _list(entry: Mapping[str, Any], name: str) -> list[tuple[str, Mapping[str, Any]]]:
    tables = entry.get(name, [])
    if not isinstance(tables, list):
        raise ConfigError(f"{name} is not a list of tables", help=f"write [[{name}]] before each")
    for n, each in enumerate(tables, 1):
        _check_names(each, f"{name} {n}", _PARTS[name])
    return [(f"{name} {n}", each) for n, each in enumerate(tables, 1)]


def _text(entry: Mapping[str, Any], name: str, where: str, needed: bool = False) -> str:
    text = entry.get(name, "")
    if not isinstance(text, str) or len(text) > LONGEST or (needed and not text.strip()):
        raise ConfigError(f"{where}.{name} is not a text of at most {LONGEST:,} characters", help=f'{name} = "…"')
    return text


def _column(entry: Mapping[str, Any], name: str, where: str) -> Column:
    table, _, column = _text(entry, name, where, True).rpartition(".")
    if not table or not column:
        raise ConfigError(f"{where}.{name} is not a column", help=f'{name} = "orders.customer_id"')
    return Column(table, column)


def _key(name: str) -> str:
    return name if name.isascii() and name.replace("_", "").replace("-", "").isalnum() else _string(name)


def _string(text: str) -> str:
    """A text as TOML writes it, on one line."""
    body = "".join(
        {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r"}.get(
            c, c if c.isprintable() else f"\\U{ord(c):08x}"
        )
        for c in text
    )
    return f'"{body}"'


def _words(text: str) -> list[str]:
    return text.lower().rstrip("?. ").split()
