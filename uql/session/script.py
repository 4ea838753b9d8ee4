"""A script: each of its statements goes to what runs it: UQL, UQL inside a statement of DuckDB's, or DuckDB alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import duckdb

from uql.base.errors import BindError, BudgetError, ConfigError, UQLSyntaxError, memory_errors
from uql.base.settings import Settings
from uql.session.execute_statement import prepare
from uql.session.prepared import PreparedStatement
from uql.session.read_only import check_reads
from uql.session.resume import Before, Said, offer
from uql.session.statements import (
    check_target,
    check_to,
    duckdb_names,
    duckdb_own,
    is_there,
    nothing,
    placed_by_duckdb,
    refused,
    store,
    write,
)
from uql.session.store_estimates import listed, placed, refusal

if TYPE_CHECKING:
    from uql.compiler.bind.scope import CatalogLike
    from uql.compiler.bound import BoundStatement
    from uql.compiler.syntax import Query, SetOption, Span, Statement
    from uql.session.session import Session


@memory_errors()
def run_script(
    session: Session, text: str, parameters: Mapping[str, Any], frames: Mapping[str, Any], said: Said | None = None
) -> PreparedStatement:
    """The last statement of a script, prepared; those before it run at once, and so does one that changes something.

    Args:
        text: statements with `;` between them.
        parameters: values of `$name`.
        frames: data frames that FROM may name.
        said: of a resumed run, the statement and the run that it continues.
    Raises: UQLSyntaxError, BindError, ConfigError, DataError, (UQL511) for one that changes something in a read-only session;
        ModelError of statements that run at once.
    """
    from uql.compiler.parser import parse_script

    if not isinstance(text, str):
        raise UQLSyntaxError(f"a statement is a text, not {type(text).__name__}")
    pieces = parse_script(text)
    if not pieces:
        raise UQLSyntaxError("there is no statement in the text", text=text, start=0, end=1)
    result: PreparedStatement | None = None
    session.check_open()
    with session.lock:
        session.catalog.begin()
        check_reads(session.catalog, text)
        offer(text, session.settings.ledger, session.ledgers, session.catalog)
        if len(pieces) > 1:
            _check_ahead(session, pieces, text, parameters, frames)
        for i, (piece, span) in enumerate(pieces):
            session.said = said or Said(text if len(pieces) == 1 else text[span.start : span.end], parameters)
            try:
                result = _prepared(session, piece, text, parameters, frames)
            except duckdb.Error as error:  # such as one before in the same transaction
                raise refused(error) from error
            if i < len(pieces) - 1 and result is not None:
                result.run()
    assert result is not None
    return result


def _check_ahead(
    session: Session,
    pieces: Sequence[tuple[Statement | str, Span]],
    text: str,
    parameters: Mapping[str, Any],
    frames: Mapping[str, Any],
) -> None:
    """Binds every statement of a script before the first one runs. Raises: as they would."""
    from uql.compiler.binder import bind
    from uql.session.check_script import check

    def bound(query: Query, catalog: CatalogLike) -> BoundStatement:
        found = bind(query, catalog, text=text, parameters=parameters, frames=frames, settings=session.settings)
        if found.semantic:
            session.plan(found, session.settings.with_values(**dict(found.options)))
        return found

    def placed(error: BindError, piece: Statement, span: Span) -> bool:
        source = text[span.start : span.end]
        return placed_by_duckdb(session.catalog, error, piece, text, source, parameters) is not None

    check(pieces, text, session.catalog, bound, placed)


def resume(
    session: Session, before: Before, changes: Mapping[str, Any], frames: Mapping[str, Any]
) -> PreparedStatement:
    """The statement of an earlier run, with its settings and parameters, as a continuation of that run."""
    restored, parameters = before.restored(session.settings)
    own, session.settings = session.settings, restored
    try:
        said = Said(before.statement, parameters, before, changes)
        return run_script(session, before.statement, parameters, frames, said)
    finally:
        session.settings = own


def _prepared(
    session: Session, piece: Statement | str, text: str, parameters: Mapping[str, Any], frames: Mapping[str, Any]
) -> PreparedStatement:
    """One statement of a script; a str is not UQL: it may be DuckDB's."""
    from uql.compiler.parser import parse

    if not isinstance(piece, str):
        try:
            return _uql(session, piece, text, parameters, frames)
        except BindError as error:
            partial = session.settings.partial
            return duckdb_names(session.catalog, error, piece, text, session.said.text, parameters, partial)
    try:
        parse(piece)
    except UQLSyntaxError as error:
        found = _wrapped(session, piece, parameters, frames)
        return found or duckdb_own(session.catalog, error, piece, parameters, session.settings.partial)
    raise AssertionError(piece)  # the parser has refused it before


def _wrapped(
    session: Session, text: str, parameters: Mapping[str, Any], frames: Mapping[str, Any]
) -> PreparedStatement | None:
    """What only DuckDB knows, around sub-queries with texts."""
    if '"' not in text and "$" not in text:
        return None
    from uql.compiler.parser import parse
    from uql.session.duckdb_wrapped import around

    return around(
        text,
        parameters,
        lambda part, values: session.bind(cast("Query", parse(part)), part, values, frames),
        lambda part, values: run_script(session, part, values, frames),
        session.catalog,
        session.store(text),
        session.settings.partial,
    )


def _uql(
    session: Session, piece: Statement, source: str, parameters: Mapping[str, Any], frames: Mapping[str, Any]
) -> PreparedStatement:
    from uql.compiler.syntax import CopyQuery, CreateTable, Explain, Insert, SemanticStatement, SetOption

    if isinstance(piece, SemanticStatement):
        from uql.session.semantic_tables import run

        return run(session, piece, source, parameters, frames)
    if isinstance(piece, SetOption):
        return set_option(session, piece, source)
    if isinstance(piece, Explain):
        from uql.session.explain_statement import explain

        return explain(session, piece, session.bind(piece.statement, source, parameters, frames), source)
    if isinstance(piece, CreateTable | Insert | CopyQuery):
        bound = session.bind(piece.query, source, parameters, frames)
        result = prepare(session, bound, source)
        if isinstance(piece, Insert) and not piece.columns:
            piece = replace(piece, columns=listed(session.catalog, piece.name, len(bound.query.items)))
        check_target(session.catalog.cursor, piece, bound.query.items, source)
        if isinstance(piece, CreateTable) and piece.if_not_exists and is_there(session.catalog.cursor, piece):
            return nothing(source, session.store(source))
        outcome = result.run()
        partial = session.settings.with_values(**dict(bound.options)).partial
        try:
            if not (outcome.exact or partial or isinstance(piece, CreateTable)):
                raise refusal([outcome])
            written = write(session.catalog, piece, outcome, session.said.text, bound)
        except BudgetError as error:
            target = piece.path if isinstance(piece, CopyQuery) else piece.name[-1]
            start = source.find(target)
            raise placed(error, source, start, start + len(target)) from None
        return result.then(written)
    bound = session.bind(piece, source, parameters, frames)
    result = prepare(session, bound, source)
    if bound.to is not None:
        check_to(session.catalog.cursor, bound.to, source)
        result.run()
    return result


def set_option(session: Session, piece: SetOption, source: str) -> PreparedStatement:
    """SET uql.name = value and RESET uql.name. Raises: ConfigError (UQL105) at the place of the name."""
    from uql.compiler.cost import FREE
    from uql.compiler.rules import known_names
    from uql.engine.outcome import text_outcome

    name = piece.name
    value = getattr(Settings(), name, None) if piece.value is None else piece.value
    try:
        known_names(session.settings.with_values(**{name: value}).disabled_rules)
        session.use(**{name: value})
    except ConfigError as error:
        place = source.lower().find(name.lower())
        error.start, error.end = place, place + len(name)
        raise error.at(source) from None
    empty = text_outcome([], None)
    return PreparedStatement(
        lambda: empty,
        lambda: "SET",
        lambda: FREE,
        source,
        lambda to, done: store(session.catalog.cursor, to, done, source),
    )
