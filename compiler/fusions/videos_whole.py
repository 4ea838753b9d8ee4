"""A video as a file in one request, instead of frame after frame: what a request says beside a frame is said once."""

from __future__ import annotations

from collections.abc import Iterator, Set
from dataclasses import replace

from uql.compiler.physical import Block, Stage
from uql.compiler.syntax import Column
from uql.compiler.virtual import Moment
from uql.compiler.walk import walk


def videos_whole(block: Block, watched: Set[Column]) -> Iterator[Block]:
    """The block whose conditions on videos are put to the files, wherever that is legal.

    Legal: the model takes videos (`watched` names the columns that it takes), and no moment is asked for, which a frame alone tells. A
    file that is too large to be sent is searched frame by frame all the same. Frames are asked until one says yes: a clip where that
    comes early costs less by frames.
    """
    if not watched or any(isinstance(node, Moment) for expr in block.expressions for node in walk(expr)):
        return

    def put(stages: tuple[Stage, ...]) -> tuple[Stage, ...]:
        return tuple(replace(s, whole=True) if any(c in watched for c in s.input_columns) else s for s in stages)

    changed = block.with_requests(put(block.filter.stages), put(block.values.stages), put(block.values.late))
    if changed != block:
        yield changed
