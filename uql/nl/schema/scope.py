"""What a plan may name: the tables that a question may need, and the joins between them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from uql.base.schema import Field, Modality


@dataclass(frozen=True, slots=True)
class Source:
    """A table that the question may need.

    Attributes:
        name: in the statements of the plan, and in the workspace.
        origin: as the user's database names it.
        fields: its columns; private ones are shown to no model.
        row_count: rows.
        description: of the table: its comment, a caption.
        samples: example values by column, each one short line.
        matches: values that stand in the question, as (column, value).
        words: of the question, that stand in some value of a column of words; of a column of texts the stems of those that stand in some
            text; without an entry where not all rows were looked at.
        rows: the first ones, as texts by the names of the columns that may be shown as text.
    """

    name: str
    origin: str
    fields: tuple[Field, ...]
    row_count: int
    description: str = ""
    samples: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    matches: tuple[tuple[str, str], ...] = ()
    words: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    rows: tuple[Mapping[str, str | None], ...] = ()

    @property
    def visible_fields(self) -> tuple[Field, ...]:
        """The columns that a model may see."""
        return tuple(f for f in self.fields if not f.private)

    def has(self, modality: Modality) -> bool:
        return any(f.modality is modality for f in self.visible_fields)


@dataclass(frozen=True, slots=True)
class Column:
    table: str
    name: str

    def __str__(self) -> str:
        return f"{self.table}.{self.name}"


@dataclass(frozen=True, slots=True)
class Link:
    """Rows of `left` point to rows of `right`, whose column is (nearly) a key."""

    left: Column
    right: Column

    def __str__(self) -> str:
        return f"{self.left} = {self.right}"


@dataclass(frozen=True, slots=True)
class Scope:
    """What a plan may name.

    Attributes:
        sources: by name, the nearest to the question first.
        links: pairs of columns on which two sources are joined.
        relevant: columns as (table, column) that the question needs, where that is given; empty: it is not.
        left_out: a remark on each table that could not be read.
    """

    sources: Mapping[str, Source]
    links: tuple[Link, ...] = ()
    relevant: frozenset[tuple[str, str]] = frozenset()
    left_out: tuple[str, ...] = ()

    def only(self, names: Sequence[str]) -> Scope:
        """The part of the scope that holds these tables."""
        sources = {n: s for n, s in self.sources.items() if n in names}
        return replace(
            self,
            sources=sources,
            links=tuple(x for x in self.links if x.left.table in sources and x.right.table in sources),
        )

    def named(self, name: str) -> str | None:
        """The source of a name in whatever case; None: there is none."""
        return next((source for source in self.sources if source.lower() == name.lower()), None)

    def linked(self, name: str) -> list[str]:
        """The other sources that a link joins with this one."""
        pairs = [(x.left.table, x.right.table) for x in self.links]
        return list(dict.fromkeys(b if a == name else a for a, b in pairs if name in (a, b) and a != b))

    def connected(self, names: Collection[str]) -> Scope:
        """These tables with those that link two of them."""
        met: dict[str, set[str]] = {}
        for link in self.links:
            for mine, theirs in ((link.left.table, link.right.table), (link.right.table, link.left.table)):
                if theirs in names:
                    met.setdefault(mine, set()).add(theirs)
        return self.only([n for n in self.sources if n in names or len(met.get(n, ())) > 1])
