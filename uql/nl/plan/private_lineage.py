"""Which columns of a step's result hold what a private column held, and which errors may say it (`uql.compiler.private_columns`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from uql.base.errors import BindError, UQLError, UQLSyntaxError
from uql.base.schema import Field
from uql.compiler.private_columns import may_read_private, private_columns
from uql.nl.guard.guard import is_refusal
from uql.nl.plan.dag import Node, NodeKind


def marked(node: Node, fields: Sequence[Field], read: Sequence[Field]) -> tuple[Field, ...]:
    """The columns of a node's result, those that hold private values marked so.

    Args:
        read: columns of all that the node may read.
    """
    followed = node.kind in (NodeKind.UQL, NodeKind.SQL)
    private_names = private_columns(node.body if followed else "", [f.name for f in fields], read)
    return tuple(replace(f, private=True) if f.name.lower() in private_names else f for f in fields)


def reads_private(kind: NodeKind, body: str, read: Sequence[Field]) -> bool:
    """May a step see private values?

    Args:
        read: columns of all that it may read.
    """
    return may_read_private("" if kind is NodeKind.PYTHON else body, read)


def without_values(error: UQLError, kind: NodeKind, body: str, read: Sequence[Field]) -> str:
    """An error in a line, as a model may see it: while a step runs over private columns, its words may hold their values.

    Args:
        read: the columns of all that it reads.
    """
    from uql.nl.ask.plan_checks import error_line

    if isinstance(error, BindError | UQLSyntaxError) or is_refusal(error) or not reads_private(kind, body, read):
        return error_line(error)
    return f"{type(error).__name__} {error.code} while it ran; its words are not shown, as it reads private columns"
