"""Pictures and sounds in a plan: a model that takes none of them is said before anything is sent."""

from __future__ import annotations

from collections.abc import Iterator

from uql.base.errors import PlanError
from uql.base.schema import Modality
from uql.compiler.bound import BoundQuery, BoundSelect, BoundUnion
from uql.compiler.subqueries import derived, expressions, in_expressions, leaves
from uql.compiler.syntax import Column
from uql.compiler.virtual import VirtualColumn

WORDS = {Modality.IMAGE: "images", Modality.AUDIO: "sounds", Modality.VIDEO: "images"}


def check_media(query: BoundQuery, model: str, *, images: bool | None, audio: bool | None) -> None:
    """Raises PlanError (UQL304) where a text reads a column of images or sounds, and the model takes none (None: not known).

    Args:
        model: its name, for the message.
        images, audio: does the model take them? None: not known.
    """
    support = {Modality.IMAGE: images, Modality.AUDIO: audio, Modality.VIDEO: images}  # of a video it is shown frames
    refused = {kind for kind in support if support[kind] is False}
    for column, read, kind in shown_media(query, {}) if refused else ():
        if kind in refused:
            words = "; without listen = true it reads the words that are said" if kind is Modality.AUDIO else ""
            raise PlanError(
                f'"{column.text}" reads {read.label}, and {model} takes no {WORDS[kind]}',
                code="UQL304",
                span=column.span,
                help=f'use a model that does, or name other columns: "…" USING (column); {read.label} holds {WORDS[kind]}{words}',
            )


def shown_media(query: BoundQuery, outer: dict[Column, Modality]) -> Iterator[tuple[VirtualColumn, Column, Modality]]:
    """Every virtual column of a query and the queries in it, with each column it reads that holds pictures or sounds."""
    if isinstance(query, BoundUnion):
        yield from shown_media(query.left, outer)
        yield from shown_media(query.right, outer)
        return
    assert isinstance(query, BoundSelect)
    own = {Column(leaf.alias, f.name): f.modality for leaf in leaves(query.source) for f in leaf.fields}
    modalities = {**outer, **own}
    for column in query.virtuals:
        for read in column.reads:
            kind = modalities.get(read, Modality.STRUCTURED)
            if kind in WORDS:
                yield column, read, kind
    for part in derived(query.source):
        yield from shown_media(part.query, {})
    for inner in in_expressions(*expressions(query)):
        yield from shown_media(inner.query, modalities)
