"""What a name may mean: the relations of a query block, those around it, and how near two names are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

from uql.base.duckdb_functions import AggregateFunctions
from uql.base.errors import BindError, UnknownColumnError
from uql.base.names import suggestion
from uql.base.schema import ROWID, Field, Modality, Table
from uql.compiler.bound import BoundSource
from uql.compiler.syntax import NO_SPAN, Call, Column, Expr, Named, Span
from uql.compiler.virtual import Moment

MOMENT = "t"  # the name of a moment of a video, as of a frame in frames(…)


class CatalogLike(Protocol):
    """What the binder needs of a catalog; `uql.sources.catalog.Catalog` is one."""

    @property
    def aggregates(self) -> AggregateFunctions: ...
    @property
    def orders(self) -> tuple[str, str] | None:
        """default_order and default_null_order; None where they are DuckDB's own."""
        ...

    def table(
        self,
        parts: tuple[str, ...],
        *,
        frames: Mapping[str, object] | None = None,
        file: bool = False,
        plain: bool = False,
    ) -> Table: ...
    def function_table(self, name: str, sql: str) -> Table: ...
    def describe(self, sql: str) -> list[tuple[str, str]]: ...
    def aborted(self) -> bool: ...
    def value(self, sql: str) -> object: ...
    def offer_parts(self) -> None: ...


@dataclass(frozen=True)
class Relation:
    """A table or sub-query in FROM, under its alias; one that is made of another's lists has its columns there."""

    alias: str
    fields: tuple[Field, ...]
    of: str = ""  # the alias of that other one
    inside: tuple[str, ...] = ()  # and the names of the columns there
    has_rowid: bool = False
    also: Field | None = None  # a column that no star gives: the item of range(3) AS r under its first name

    def column(self, field: Field, span: Span = NO_SPAN) -> Column:
        """What a field of it is in the bound query."""
        name = self.inside[self.fields.index(field)] if self.of else field.name
        return Column(self.of or self.alias, name, span=span)

    def find(self, name: str) -> Field | None:
        """The field of this name: exact spelling first, then case-insensitively, then the number of the row."""
        exact, low = self._by_name
        numbered = ROWID if self.has_rowid and name.lower() == ROWID.name else None
        also = self.also if self.also is not None and name.lower() == self.also.name.lower() else None
        return exact.get(name) or low.get(name.lower()) or numbered or also

    @cached_property
    def _by_name(self) -> tuple[dict[str, Field], dict[str, Field]]:
        """The fields by their names and by their names in lower case, of several the first."""
        fields = self.fields[::-1]
        return {f.name: f for f in fields}, {f.name.lower(): f for f in fields}


@dataclass(frozen=True, slots=True)
class Merged:
    """A column of JOIN … USING: one name for a column of either side."""

    name: str
    value: Expr
    hidden: tuple[Column, ...]  # what a bare name or a star no longer means


@dataclass(slots=True)
class Part:
    """One side of FROM: the bound source, and what it brings into scope."""

    source: BoundSource
    relations: list[Relation]
    merged: list[Merged] = field(default_factory=list)


@dataclass(slots=True)
class Scope:
    """The names of one query block. `correlated` turns true when a name was found outside.

    `lateral`: these are the tables before a sub-query of FROM, which may read their columns.
    """

    relations: list[Relation] = field(default_factory=list)
    merged: list[Merged] = field(default_factory=list)
    outer: Scope | None = None
    correlated: bool = False
    lateral: bool = False

    def names(self) -> list[str]:
        """The column names in scope, each once."""
        return list(dict.fromkeys(f.name for relation in self.relations for f in relation.fields))

    def field_of(self, column: Column) -> Field | None:
        """The field behind a bound column, also of a query around this one."""
        for relation in self.relations:
            if relation.of:
                if relation.of == column.table and column.name in relation.inside:
                    return relation.fields[relation.inside.index(column.name)]
            elif relation.alias == column.table and (inner_field := relation.find(column.name)) is not None:
                return inner_field
        return self.outer.field_of(column) if self.outer is not None else None

    def owns(self, column: Column) -> bool:
        return any(relation.alias == column.table for relation in self.relations)

    def find(self, parts: Sequence[str], span: Span) -> tuple[Expr, tuple[str, ...]] | None:
        """The column that a name means and the struct fields after it, None when there is none here or outside.

        Raises: BindError (UQL204) when it is in several tables.
        """
        path = self._own(parts, span)
        if path is None and self.outer is not None:
            if self.outer.lateral and self.moment(parts, span) is not None:
                return None
            path = self.outer.find(parts, span)
            if path is not None:
                self.correlated = True
        return path

    def _own(self, parts: Sequence[str], span: Span) -> tuple[Expr, tuple[str, ...]] | None:
        # database.schema.table.column: the last qualifier is the alias
        for skip in range(min(len(parts) - 1, 3), 0, -1):
            relation = self.relation(parts[skip - 1])
            if relation is not None and len(parts) > skip:
                hit = relation.find(parts[skip])
                if hit is not None:
                    return relation.column(hit, span), tuple(parts[skip + 1 :])
        bare = self._bare(parts[0], span)
        return (bare, tuple(parts[1:])) if bare is not None else None

    def _bare(self, name: str, span: Span) -> Expr | None:
        merged = next((m for m in self.merged if m.name.lower() == name.lower()), None)
        if merged is not None:
            return merged.value
        hits = [(relation, hit) for relation in self.relations if (hit := relation.find(name)) is not None]
        exact = [(relation, hit) for relation, hit in hits if hit.name == name]
        hits = exact or hits
        if len(hits) > 1:
            choices = " or ".join(f"{relation.alias}.{hit.name}" for relation, hit in hits)
            raise BindError(f"{name} is a column of several tables", code="UQL204", span=span, help=f"write {choices}")
        return hits[0][0].column(hits[0][1], span) if hits else None

    def relation(self, alias: str) -> Relation | None:
        exact = next((r for r in self.relations if r.alias == alias), None)
        return exact or next((r for r in self.relations if r.alias.lower() == alias.lower()), None)

    def row(self, alias: str, span: Span) -> Expr | None:
        """What the name of a table is where a column may stand: a struct of its columns, also of a table outside. None: no table."""
        relation = self.relation(alias)
        if relation is not None:
            return Call(
                "struct_pack", tuple(Named(f.name, relation.column(f, span)) for f in relation.fields), span=span
            )
        struct = self.outer.row(alias, span) if self.outer is not None else None
        self.correlated = self.correlated or struct is not None
        return struct

    def moment(self, parts: Sequence[str], span: Span) -> Moment | None:
        """What `t` means where a table has a video and no column so called: the second at which a condition on it holds."""
        own = self.relations if len(parts) == 1 else [r for r in (self.relation(parts[0]),) if r is not None]
        has_video = any(f.modality is Modality.VIDEO for r in own for f in r.fields)
        if parts[-1].lower() != MOMENT or len(parts) > 2 or not has_video:
            return None
        return Moment(Column(own[0].alias if len(parts) == 2 else "", MOMENT), span=span)

    def unknown(self, parts: Sequence[str], span: Span, more: Iterable[str] = ()) -> UnknownColumnError:
        """No such column: with the nearest name and the choices.

        Args:
            parts: the name, split at its dots.
            more: other names that may stand there: aliases.
        """
        name = ".".join(parts)
        relation = self.relation(parts[0]) if len(parts) > 1 else None
        if len(parts) > 1 and relation is None:
            aliases = [r.alias for r in self.relations]
            tables = f"tables of this query: {', '.join(aliases)}" if aliases else "this query has no FROM"
            return UnknownColumnError(
                f"no table or column {parts[0]} in this query",
                span=span,
                help=suggestion(parts[0], [*aliases, *self.names()]) + tables,
            )
        names = (
            [f.name for f in relation.fields]
            if relation is not None
            else [*self.names(), *(n for n in more if not n.startswith("__uql"))]
        )
        nulls = "write NULL, as in x IS NULL; " if name in ("None", "nan", "NaN") else ""
        text = f'"{parts[-1]}" without {parts[0]} before it asks the model; ' if relation and " " in parts[-1] else ""
        where = relation.alias if relation is not None else ", ".join(r.alias for r in self.relations)
        columns = ", ".join(names[:20]) + (", …" if len(names) > 20 else "")
        videos = [f.name for r in self.relations for f in r.fields if f.modality is Modality.VIDEO]
        moments = (
            f'beside a text in WHERE that reads {videos[0]}, as in WHERE "a dog is seen", t is the second at which it holds; '
            f"FROM … unnest(frames({videos[0]})) AS f has a row for each second; "
            if videos and parts[-1].lower() == MOMENT
            else ""
        )
        return UnknownColumnError(
            f"no column {parts[-1] if relation else name}" + (f" in {where}" if where else ""),
            span=span,
            help=moments
            + nulls
            + text
            + suggestion(parts[-1], names)
            + (f"columns: {columns}" if columns else "this query has no FROM"),
        )
