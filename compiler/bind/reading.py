"""How a quoted text is read: the guard against misspelt names, and holes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from uql.base.errors import BindError
from uql.base.names import distance, suggestion
from uql.base.schema import Modality
from uql.compiler.bind.scope import Scope
from uql.compiler.syntax import Column, Quoted
from uql.compiler.virtual import VirtualColumn

_WORD = re.compile(r"[^\W\d]\w*", re.UNICODE)
_JOINERS = re.compile(r"[_\-\s]+")
_DOT = re.compile(r'\.(?=(?:[^"]*"[^"]*")*[^"]*$)')  # none inside quotes
_HOLE = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")


def near_name(text: str, names: Iterable[str]) -> str | None:
    """The visible name that a text misspells, by the rule of UQL101; None when it is a free text.

    >>> near_name("star", ["stars"]), near_name("sign-up date", ["sign_up_date"]), near_name("the plot", ["plot"])
    ('stars', 'sign_up_date', None)
    """
    bare = _JOINERS.sub("", text).lower()
    names = list(names)
    if bare:
        for name in names:
            if _JOINERS.sub("", name).lower() == bare:
                return name
    letters = sum(c.isalpha() for c in text)
    if not _WORD.fullmatch(text) or letters < 4:
        return None
    return _nearest({name.lower(): name for name in reversed(names)}, text.lower(), 2 if letters >= 8 else 1)


def close_name(text: str, names: Iterable[str]) -> str | None:
    """A visible name that a text may misspell, though it is too far from it to be sure.

    >>> close_name("sign up dat", ["sign_up_date"]), close_name("the plot", ["plot"]), close_name("regon", ["region"])
    ('sign_up_date', None, 'region')
    """
    bare = _JOINERS.sub("", text).lower()
    if len(bare) < 5 or len(text.split()) > 3:
        return None
    by_bare = {_JOINERS.sub("", name).lower(): name for name in reversed(list(names))}
    return _nearest(by_bare, bare, 2 if len(bare) >= 6 else 1)


def _nearest(names: dict[str, str], word: str, limit: int) -> str | None:
    """The name whose key is nearest to a word; None where none is as near as the limit."""
    by_distance = {distance(word, key, limit): name for key, name in names.items()}
    least = min(by_distance, default=limit + 1)
    return by_distance[least] if least <= limit else None


def misspelt(quoted: Quoted, name: str) -> BindError:
    return BindError(
        f'"{quoted.text}" is not a column, and too close to {name} to be a text for the model',
        code="UQL101",
        span=quoted.span,
        help=f'did you mean "{name}"? PROMPT "{quoted.text}" asks the model',
    )


def holes(quoted: Quoted) -> Iterator[tuple[str, ...]]:
    """The names in the holes {col} and {t.col} of a text, in order. Raises: BindError (UQL205) on a brace that is not a hole."""
    for match in _HOLE.finditer(quoted.text):
        if match[0] in ("{{", "}}"):
            continue
        parts = tuple(_unquoted(part.strip()) for part in _DOT.split(match[1] or ""))
        if not all(parts):
            raise BindError(
                f'"{quoted.text}" has a brace that is not a hole',
                code="UQL205",
                span=quoted.span,
                help="a hole is {column} or {table.column}; {{ and }} are braces",
            )
        yield parts


def _unquoted(name: str) -> str:
    return name[1:-1].replace('""', '"') if len(name) > 1 and name[0] == name[-1] == '"' else name


def spellings(parts: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """The names that a hole may mean: a column's name may have dots of its own.

    >>> list(spellings(("t", "user", "name")))
    [('t', 'user', 'name'), ('t', 'user.name'), ('t.user.name',)]
    """
    yield parts
    for last in range(len(parts) - 2, -1, -1):
        yield (*parts[:last], ".".join(parts[last:]))


def _named_column(quoted: Quoted, parts: tuple[str, ...], scope: Scope) -> Column:
    """The column that a hole names. Raises: BindError (UQL205) where there is none."""
    for names in spellings(parts):
        path = scope.find(names, quoted.span)
        if path is not None and not path[1] and isinstance(path[0], Column):
            return path[0]
    raise unknown_hole(quoted, parts, scope)


def unknown_hole(quoted: Quoted, parts: tuple[str, ...], scope: Scope) -> BindError:
    """The error (UQL205) of a hole that names no column.

    Args:
        quoted: the text that the hole is in.
        parts: the name in the hole, split at its dots.
        scope: where it was looked up.
    """
    name = ".".join(parts)
    names = scope.names()
    if len(parts) > 1:
        relation = scope.relation(parts[0])
        names = [f"{relation.alias}.{f.name}" for relation in ([relation] if relation else scope.relations)
                 for f in relation.fields]  # fmt: skip
    choices = ", ".join(names[:20]) + (", …" if len(names) > 20 else "")
    return BindError(
        f"no column {name} for the hole {{{name}}}",
        code="UQL205",
        span=quoted.span,
        help=suggestion(name, names) + (f"columns: {choices}; " if choices else "") + "{{ and }} are braces",
    )


def columns_read(quoted: Quoted, scope: Scope) -> tuple[tuple[Column, ...], tuple[Column, ...], tuple[Column, ...]]:
    """What a text reads: (columns shown as the row, structured columns whose values become part of the question, those of its holes).

    Its holes; else its USING; else the unstructured columns in FROM; else all VARCHAR ones. Private columns never.
    Raises: BindError: UQL205 unknown hole, UQL202 unknown USING column, UQL207 nothing to read or a private column.
    """
    reads: dict[Column, None] = {}
    filled: dict[Column, None] = {}
    named: list[Column] = []
    for parts in holes(quoted):
        column = _named_column(quoted, parts, scope)
        field = scope.field_of(column)
        unstructured = field is not None and field.is_unstructured
        (reads if unstructured else filled)[_public(column, quoted, scope)] = None
        named.append(column)
    if quoted.using:
        for name in quoted.using:
            path = scope.find(name.parts, name.span)
            if path is None or path[1] or not isinstance(path[0], Column):
                raise scope.unknown(name.parts, name.span)
            reads[_public(path[0], quoted, scope)] = None
            filled.pop(path[0], None)
    if reads or filled:
        return tuple(reads), tuple(filled), tuple(named)
    fields = [(r.column(f), f) for r in scope.relations for f in r.fields if not f.private]
    chosen = [column for column, f in fields if f.is_unstructured and not f.by_name]
    chosen = chosen or [column for column, f in fields if f.holds_words and not f.by_name]
    if not chosen:
        empty = "the query has no FROM" if not fields else "no column in FROM holds text, images or sound"
        way = (
            "say where the rows are: FROM table"
            if not fields
            else 'name what the model sees: "… {column} …" or "…" USING (column)'
        )
        raise BindError(f'"{quoted.text}" has nothing to read: {empty}', code="UQL207", span=quoted.span, help=way)
    return tuple(chosen), (), ()


def video_search(column: VirtualColumn, scope: Scope) -> Column | None:
    """The video of which a text asks whether it holds at some moment; None where it reads no video.

    Raises: BindError (UQL207) where it asks something else of a video, of which models see frames.
    """
    fields = ((read, scope.field_of(read)) for read in column.inputs)
    videos = [read for read, f in fields if f is not None and f.modality is Modality.VIDEO]
    if not videos:
        return None
    video = videos[0]
    several = len({c.table for c in column.inputs}) > 1 or len(videos) > 1
    if column.is_condition and not (several or column.attempt or column.of_group):
        return video
    why = "beside another table or video" if several else "for more than yes or no"
    raise BindError(
        f'"{column.text}" asks {video.label}, a video, {why}; a video is seen frame by frame',
        code="UQL207",
        span=column.span,
        help=f"write FROM {video.table}, unnest(frames({video.label}, every = '1 s')) AS f WHERE \"…\": a row is a moment f.t"
        " of a clip. Of a video itself a text in WHERE asks whether it holds at some moment",
    )


def _public(column: Column, quoted: Quoted, scope: Scope) -> Column:
    field = scope.field_of(column)
    if field is not None and field.private:
        raise BindError(
            f"{column.label} is private and is never shown to a model",
            code="UQL207",
            span=quoted.span,
            help="its comment says private; name another column",
        )
    return Column(column.table, column.name)
