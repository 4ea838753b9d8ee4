"""The candidate rows of a block over a table of a cluster: all of them where they are few, else the first stage of a sample."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import duckdb
import pyarrow as pa

from uql.base.errors import BudgetError, DataError
from uql.base.schema import Field
from uql.base.sql_text import first_line, literal
from uql.cluster.cluster import Cluster
from uql.cluster.lake import LakeTable
from uql.cluster.messages import broken
from uql.cluster.selection import Near
from uql.cluster.shard import PLACE
from uql.compiler.bound import BoundTable
from uql.compiler.join_plans import sources_of
from uql.compiler.physical import Block, Goal
from uql.compiler.subqueries import leaves
from uql.compiler.syntax import Column
from uql.compiler.walk import is_semantic
from uql.kernels.base import Context
from uql.kernels.duck import Duck, quote
from uql.kernels.finish import order_by
from uql.kernels.relation import FirstStage, Relation
from uql.kernels.row_order import varies
from uql.sampling.two_stage import WORTH, most_rows

NEAREST = 4_096  # rows that are nearest to a text: their scores fill a quarter of a message


def table_of(block: Block, duck: Duck) -> LakeTable | None:
    """The table of the cluster that a block reads, and nothing beside it; None of another block."""
    source = block.scan.source
    if not isinstance(source, BoundTable) or block.scan.join is not None:
        return None
    return _lake_table(source, duck)


def _lake_table(source: BoundTable, duck: Duck) -> LakeTable | None:
    """The table of the cluster that a name stands for; None where a table or view of the session has its name."""
    if duck.cluster is None:
        return None
    schema, _, name = source.table.sql.rpartition('"."')
    table = duck.cluster.tables.get(name.removesuffix('"').replace('""', '"'))
    if table is None or schema != '"memory"."main':
        return None
    now = duck.scalar(
        f"SELECT sql FROM system.main.duckdb_views() WHERE NOT temporary AND view_name = {literal(table.name)}"
    )
    return table if now == duck.cluster.views[table.name] else None


def check_few(block: Block, ctx: Context) -> None:
    """Checks of a block that is not over one table of the cluster alone that the driver may hold its rows.

    Raises: DataError (UQL527) where it reads a table that is too large for that.
    """
    if ctx.duck.cluster is None or table_of(block, ctx.duck) is not None:
        return
    most = most_rows(ctx.purse.remaining or 0)
    for leaf in (leaf for source in sources_of(block.scan.join or block.scan.source) for leaf in leaves(source)):
        table = _lake_table(leaf, ctx.duck) if isinstance(leaf, BoundTable) else None
        if table is not None and table.total > most:
            raise DataError(
                f"a join or a sub-query over {table.name} would bring its {table.total:,} rows to this process, which holds {most:,}",
                code="UQL527",
                help=f"CREATE TEMP TABLE some AS SELECT … FROM {table.name} WHERE … makes a smaller table to join, or COPY (SELECT … "
                "JOIN …) TO 'lake/joined.parquet' a table of the lake",
            )


def candidates(
    block: Block, table: LakeTable, sql_of: Callable[[Block], str], fields: dict[Column, Field], ctx: Context
) -> Relation:
    """The candidate rows of a block over a table of a cluster, which its shards choose.

    All of them where they are few; of an aggregate the first stage of its sample; of LIMIT the first rows of its order, or those
    nearest in meaning and a first stage.

    Args:
        block: over that table alone.
        sql_of: the SQL of a block's candidate rows.
        fields: the columns of the relation.
    Raises: DataError (UQL527), BudgetError (UQL401) where each of many rows is wanted.
    """
    cluster, most = ctx.duck.cluster, most_rows(ctx.purse.remaining or 0)
    assert cluster is not None
    sql, place = share_sql(block, table, sql_of, cluster)
    total = cluster.count(sql)
    head = _head(block, total, ctx)
    ordered = head is not None or block.filter.goal is Goal.FIRST  # else they are asked in any order
    tie = "__row"
    if total < most and block.scan.columns and varies(sql_of(block), ctx.duck, by_keys=False):
        tie = f"system.main.hash({', '.join(quote(c.label) for c in block.scan.columns)})"  # as without a cluster
    order = order_by(block.order.keys if ordered else (), ctx.duck, tie)
    if total < most:
        rows = cluster.draw(sql, total)
    elif block.aggregate.present:
        if ctx.purse.remaining is None:
            raise BudgetError(
                f"each of {total:,} rows of {table.name} would be asked, and this process holds {most:,}",
                help="WITH (budget = 1000) estimates the result; plain conditions leave fewer rows",
            )
        rows = cluster.draw(sql, most // WORTH)
    elif head is not None:
        rows = cluster.head(sql, order, head)
    elif block.filter.goal is Goal.FIRST and not block.order.keys:
        rows = _near(block, table, place, sql, cluster)
    else:
        raise DataError(
            f"{total:,} rows of {table.name} are left for the model, and a query that returns rows holds {most:,} at most",
            code="UQL527",
            help="LIMIT, or plain conditions that leave fewer rows; COUNT, SUM, AVG and GROUP BY take any number, and so does "
            "COPY (SELECT …) TO 'folder' (FORMAT parquet) of rows of one table",
        )
    hidden = ["__row", quote(place.label)] if block.scan.columns else ["__row"]
    limit = f" LIMIT {head}" if head is not None and total >= most else ""
    types = {c.label: fields[c].type for c in block.scan.columns if c in fields}
    if not types.keys() <= set(rows.column_names):
        raise broken("a column is missing")
    listed = ", ".join(
        f"CAST({quote(name)} AS {types[name]}) AS {quote(name)}" if name in types else quote(name)
        for name in rows.column_names
    )
    try:
        name, n = ctx.duck.create(
            f"SELECT * EXCLUDE ({', '.join(hidden)}) FROM (SELECT {listed} FROM __rows) ORDER BY {order}{limit}",
            {"__rows": rows},
        )
    except (duckdb.BinderException, duckdb.ConversionException) as error:
        raise broken(first_line(error)) from error
    whole = total < most or (head is not None and block.filter.formula is None)
    stage = None if whole else FirstStage(total, sql_of(block))
    if block.aggregate.present and stage is not None:
        ctx.notes.append(
            f"{n:,} random rows stand for {total:,}: features are made of these, and the interval covers that too"
        )
    return Relation(ctx.duck, name, n, fields, block.scan.tables, stage=stage)


def share_sql(block: Block, table: LakeTable, sql_of: Callable[[Block], str], cluster: Cluster) -> tuple[str, Column]:
    """The candidate rows of a block over a shard's own rows of a table, as SQL, and the column of their place among these.

    Args:
        block: that reads the table.
        sql_of: the candidate rows of a block as SQL.
        cluster: that says which rows are a shard's own.
    """
    source = block.scan.source
    assert isinstance(source, BoundTable)
    place = Column(source.alias, PLACE)
    share = BoundTable(replace(source.table, sql=cluster.share_of(table)), source.alias)
    scan = replace(block.scan, source=share, columns=(*block.scan.columns, place))
    return sql_of(replace(block, scan=scan, filter=replace(block.filter, goal=Goal.EVERY))), place


def _head(block: Block, total: int, ctx: Context) -> int | None:
    """How many rows of an order that DuckDB knows LIMIT needs at most; None where it may need any."""
    if block.aggregate.present or block.order.rows_needed is None or any(is_semantic(k.expr) for k in block.order.keys):
        return None
    if block.filter.formula is None:
        return None if block.needs_every_row or block.project.distinct else block.order.rows_needed
    if block.filter.goal is not Goal.FIRST or not block.order.keys or ctx.purse.remaining is None:
        return None
    return min(total, ctx.purse.remaining + block.order.rows_needed)  # a row that costs no call is rare


def _near(block: Block, table: LakeTable, place: Column, sql: str, cluster: Cluster) -> pa.Table:
    """The rows nearest in meaning to what a WHERE asks, and random ones, each once."""
    import pyarrow.compute as pc

    columns = block.filter.columns
    reads = dict.fromkeys(c for column in columns for c in column.reads)
    expression = (
        f"system.main.concat_ws(system.main.chr(10), {', '.join(f'CAST({quote(c.name)} AS VARCHAR)' for c in reads)})"
    )
    text = "; ".join(column.text for column in columns)
    near = cluster.near(sql, Near(table.name, place.label, expression, text, NEAREST))
    random = cluster.draw(sql, most_rows(0) // WORTH)
    fresh = pc.invert(pc.is_in(random.column("__row"), near.column("__row")))
    return pa.concat_tables([near, random.filter(fresh)], promote_options="permissive")
