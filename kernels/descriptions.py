"""What quoted texts mean, in a line each, `WITH (describe)`: the comments of the columns that a text reads, else what a model proposes.

A proposal takes one call, before the rows are asked. It is kept with what earlier queries taught of the model on the database, so that it
is asked for once. Source: UQE (Dai et al., 2024) §4.2.4, which has the model suggest the context that is not given.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from uql.base.schema import Field
from uql.compiler.syntax import Column
from uql.compiler.virtual import VirtualColumn
from uql.kernels.base import Context
from uql.kernels.relation import Relation
from uql.llm.questions import Write
from uql.operators.texts import quoted, short

SCHEMA = json.dumps({"type": "object", "properties": {"description": {"type": "string"}}, "required": ["description"]})
_SYSTEM = "You say what a column of a table means."


def described(columns: Sequence[VirtualColumn]) -> list[VirtualColumn]:
    """Those that have a description: values of single rows. Not group keys, summaries, and conditions on rows of two tables."""
    return [c for c in columns if c.by_row and not c.is_pair_condition]


def key(column: VirtualColumn) -> str:
    """The name of a proposal among what is remembered: the text, its type and the columns that it reads."""
    return f'"{column.text}" as {column.type} of {", ".join(c.name for c in column.reads)}'


def comments(column: VirtualColumn, fields: Mapping[Column, Field]) -> str:
    """What the comments of the columns say, those of one word ('image', 'private') left out; "" where they say nothing."""
    lines = [(c.name, fields[c].description) for c in column.reads if c in fields]
    return short("; ".join(f"{name}: {text}" for name, text in lines if len(text.split()) > 1))


def initial_description(column: VirtualColumn, fields: Mapping[Column, Field], proposals: Mapping[str, str]) -> str:
    """The description of a text before any call: of the comments, else of `proposals`, proposals by `key`; "" where there is none.

    Args:
        fields: of the columns that it may read, with their comments.
        proposals: of earlier statements.
    """
    return comments(column, fields) or proposals.get(key(column), "")


async def take(columns: Sequence[VirtualColumn], relation: Relation, ctx: Context) -> None:
    """Gives the texts of a statement their descriptions, where the settings want them.

    Args:
        relation: the rows that they read; holds the descriptions.
    """
    if not ctx.settings.describe:
        return
    proposals = ctx.memory.descriptions if ctx.memory is not None else {}
    for column in described(columns):
        description = initial_description(column, relation.fields, proposals)
        if not description:
            description = await _proposed(column, relation, ctx)
            if description:
                proposals[key(column)] = description
        relation[column].prompt.meaning = description


async def _proposed(column: VirtualColumn, relation: Relation, ctx: Context) -> str:
    """One line of a model; "" where it gives none, which is a warning of the run."""
    columns = ", ".join(f"{quoted(c.name)} {f.type}" for c, f in relation.fields.items() if not f.private)
    read = ", ".join(quoted(c.name) for c in column.reads)
    request = (
        f"A table has the columns {columns}. A value of the type {column.type} is to be read from {read or 'the row'}, for: "
        f'"{column.text}". Say in one line of at most 80 characters what the value is: what counts as it, and what does not.'
    )
    text = request.replace("{", "{{").replace("}", "}}")
    question = Write(text, task="describe", schema=SCHEMA, parameters=(("system", _SYSTEM),), max_tokens=80)
    reply = await ctx.write(question, source=relation.source, optional=True)
    description = reply.get("description") if isinstance(reply, dict) else None
    return short(description) if isinstance(description, str) else ""
