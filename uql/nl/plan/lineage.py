"""The rows of the database behind a row of a result: what its statement read, with the values that the row shows.

Of a statement without anything semantic the rows are those of its FROM and WHERE whose keys are the row's; of one that a model read they
are the rows that it was shown. A row of a node that reads another node is followed back to the database.
Below: which columns of a step's result hold what a private column held, and which errors may say it (`uql.compiler.private_columns`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from uql.base.arrow_values import rows_of
from uql.base.errors import BindError, UQLError, UQLSyntaxError
from uql.base.schema import Field
from uql.base.sqlglot_trees import read_sql
from uql.compiler.private_columns import may_read_private, private_columns
from uql.nl.ask.outputs import Output
from uql.nl.guard.guard import is_refusal
from uql.nl.plan.dag import Node, NodeKind, Plan

if TYPE_CHECKING:
    import pyarrow as pa

SHOWN = 20  # rows behind a row that are kept


class Lineage:
    """Follows rows of results back to the database.

    Args:
        run: gives the rows of a SELECT over the tables of the database and the results of nodes.
        plan: whose nodes are followed back.
        outputs: of the nodes, by name.
    """

    def __init__(self, run: Callable[[str], pa.Table], plan: Plan, outputs: Mapping[str, Output]) -> None:
        self._run, self._outputs = run, outputs
        self._nodes = {node.name: node for node in plan.nodes}
        self._row_cache: dict[tuple[str, int], list[dict[str, Any]]] = {}
        self._first_rows: dict[str, list[dict[str, Any]]] = {}  # the first rows of results

    def rows_behind(self, name: str, row: int) -> list[dict[str, Any]]:
        """At most 20 rows behind row `row` (from 0) of the result of a node; empty where they cannot be told.

        A row of one table is a dictionary of its columns; of a join a dictionary of such by table. Columns of bytes are left out.
        """
        if (name, row) not in self._row_cache:
            self._row_cache[name, row] = self._behind(self._nodes[name], row)
        return self._row_cache[name, row]

    def _behind(self, node: Node, row: int) -> list[dict[str, Any]]:
        output = self._outputs.get(node.name)
        if output is None or output.table is None or row >= output.table.num_rows:
            return []
        trace = output.outcome.trace if output.outcome is not None else None
        if trace is not None and row < len(trace.behind) and trace.columns:
            evidence = [dict(part.shown) for part in trace.why(row).evidence]
            return [one for i, one in enumerate(evidence) if one not in evidence[:i]][:SHOWN]
        if node.kind not in (NodeKind.UQL, NodeKind.SQL):
            return []
        text = statement_behind(node.body, rows_of(output.table.slice(row, 1))[0])
        if text is None:
            return []
        try:
            table = self._run(text)
        except UQLError:  # a statement of a kind that is not followed
            return []
        rows = [{k: _without_bytes(v) for k, v in one.items() if not isinstance(v, bytes)} for one in rows_of(table)]
        if len(node.inputs) != 1 or node.inputs[0] not in self._nodes or node.inputs[0] not in self._outputs:
            return rows
        return self._followed(node.inputs[0], rows)

    def _followed(self, name: str, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """What is behind rows that a statement read of a node's result."""
        before = self._outputs[name].table
        if before is None or set(rows[0] if rows else ()) - set(before.column_names):
            return rows
        if name not in self._first_rows:
            self._first_rows[name] = rows_of(before.slice(0, 10_000))
        back: list[dict[str, Any]] = []
        for one in rows:
            at = next(
                (i for i, o in enumerate(self._first_rows[name]) if all(o.get(k) == v for k, v in one.items())), None
            )
            further = [] if at is None else self.rows_behind(name, at)
            back += [new for new in (further or [one]) if new not in back]
            if len(back) >= SHOWN:
                break
        return back[:SHOWN]


def statement_behind(text: str, row: Mapping[str, Any]) -> str | None:
    """The SELECT of the rows behind a row of a statement; None where they cannot be told.

    >>> statement_behind("SELECT city, count(*) AS n FROM shops WHERE open GROUP BY city", {"city": "Leeds", "n": 2})
    "SELECT * FROM shops WHERE open AND city IS NOT DISTINCT FROM 'Leeds' LIMIT 20"
    """
    try:
        tree = read_sql(text)[0]
    except (ValueError, IndexError):
        return None
    select = _behind(tree, row) if isinstance(tree, exp.Select) else None
    return select.limit(SHOWN).sql(dialect="duckdb") if select is not None else None


def _behind(tree: exp.Select, row: Mapping[str, Any]) -> exp.Select | None:
    source = tree.args.get("from_") or tree.args.get("from")
    joins = tree.args.get("joins") or []
    if source is None or tree.args.get("with_") or tree.args.get("with"):
        return None
    if isinstance(source.this, exp.Subquery):  # ranked rows: those of the inner query
        inner = source.this.this
        return _behind(inner, row) if isinstance(inner, exp.Select) and not joins else None
    tables = [source.this, *(join.this for join in joins)]
    if not all(isinstance(table, exp.Table) for table in tables):
        return None
    columns = ["*"] if not joins else [exp.column(table.alias_or_name) for table in tables]
    select = exp.select(*columns).from_(source.this.copy())
    select.set("joins", [join.copy() for join in joins])
    if tree.args.get("where") is not None:
        select = select.where(tree.args["where"].this.copy())
    for item in tree.expressions:
        value = item.unalias()
        if item.alias_or_name not in row or isinstance(value, exp.Star):
            continue
        if value.find(exp.AggFunc, exp.Window, exp.Select) is not None:
            continue
        constant = literal(row[item.alias_or_name])
        if constant is not None:
            select = select.where(exp.NullSafeEQ(this=value.copy(), expression=constant))
    return select


def literal(value: Any) -> exp.Expr | None:
    """A value as SQL; None for what has no plain literal."""
    if value is None:
        return exp.null()
    if isinstance(value, bool | int | float | str):
        return exp.convert(value)
    if isinstance(value, datetime):
        return exp.cast(exp.Literal.string(value.isoformat(sep=" ")), "TIMESTAMP")
    return exp.cast(exp.Literal.string(value.isoformat()), "DATE") if isinstance(value, date) else None


def _without_bytes(value: Any) -> Any:
    """A value without bytes: of a row of a joined table, its other columns."""
    return {k: v for k, v in value.items() if not isinstance(v, bytes)} if isinstance(value, dict) else value


def marked(node: Node, fields: Sequence[Field], read: Sequence[Field]) -> tuple[Field, ...]:
    """The columns of a node's result, those that hold private values marked so.

    Args:
        read: columns of all that the node may read.
    """
    followed = node.kind in (NodeKind.UQL, NodeKind.SQL)
    private_names = private_columns(node.body if followed else "", [f.name for f in fields], read)
    return tuple(replace(f, private=True) if f.name.lower() in private_names else f for f in fields)


def without_values(error: UQLError, kind: NodeKind, body: str, read: Sequence[Field]) -> str:
    """An error in a line, as a model may see it: while a step runs over private columns, its words may hold their values.

    Args:
        read: the columns of all that it reads.
    """
    from uql.nl.ask.plan_checks import error_line

    says_no_value = isinstance(error, BindError | UQLSyntaxError) or is_refusal(error)
    if says_no_value or not may_read_private("" if kind is NodeKind.PYTHON else body, read):
        return error_line(error)
    return f"{type(error).__name__} {error.code} while it ran; its words are not shown, as it reads private columns"
