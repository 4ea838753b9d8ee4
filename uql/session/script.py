"""A script: each of its statements goes to what runs it: UQL, UQL inside a statement of DuckDB's, or DuckDB alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import duckdb

from uql.base.errors import BindError, BudgetError, ConfigError, DataError, UQLError, UQLSyntaxError, memory_errors
from uql.base.settings import Settings
from uql.compiler.statement_targets import altered, changed
from uql.compiler.syntax import CopyQuery, CreateTable, Explain, Insert, Query, SemanticStatement, SetOption, Statement
from uql.engine.outcome import text_outcome
from uql.session.execute_statement import prepare
from uql.session.plain_query import plain_query, plain_write
from uql.session.prepared import PreparedStatement
from uql.session.read_only import check_reads
from uql.session.resume import Before, StatementInput, offer
from uql.session.statements import (
    Piece,
    answer_types,
    check_target,
    check_to,
    done,
    duckdb_names,
    duckdb_own,
    errors_as_ours,
    has_free_text,
    is_there,
    passed_on,
    refused,
    without_own_options,
    write,
)
from uql.session.store_estimates import listed, placed, refusal

if TYPE_CHECKING:
    from uql.compiler.bound import BoundStatement
    from uql.session.session import Session
    from uql.sources.catalog import Catalog


def run_script(
    session: Session,
    text: str,
    parameters: Mapping[str, Any],
    frames: Mapping[str, Any],
    statement: StatementInput | None = None,
) -> PreparedStatement:
    """The last statement of a script, prepared; those before it run at once, and so does one that changes something.

    Args:
        text: statements with `;` between them.
        parameters: values of `$name`.
        frames: data frames that FROM may name.
        statement: of a resumed run, the statement and the run that it continues.
    Raises: UQLSyntaxError, BindError, ConfigError, DataError, (UQL511) for one that changes something in a read-only session;
        ModelError of statements that run at once.
    """
    with session.lock:
        *first, last = checked(session, text, parameters, frames)
        for piece in first:
            prepared(session, piece, statement).run()
        return prepared(session, last, statement)


@memory_errors()
def checked(session: Session, text: str, parameters: Mapping[str, Any], frames: Mapping[str, Any]) -> tuple[Piece, ...]:
    """The statements of a script, at least one, each bound as far as it can be before the first one runs.

    Args:
        text: statements with `;` between them.
        parameters: values of `$name`; each statement gets those that it names.
        frames: data frames that FROM may name.
    Raises: as `run_script`, but for errors of a run.
    """
    from uql.compiler.bind.parameters import names, refuse_unused
    from uql.compiler.parser import parse_script

    if not isinstance(text, str):
        raise UQLSyntaxError(f"a statement is a text, not {type(text).__name__}")
    statements = parse_script(text)
    if not statements:
        raise UQLSyntaxError("there is no statement in the text", text=text, start=0, end=1)
    session.check_open()
    with session.lock:
        session.catalog.begin()
        check_reads(session.catalog, text)
        with errors_as_ours():
            offer(text, session.settings.ledger, session.ledgers, session.catalog)
        if len(statements) == 1:
            return (Piece(statements[0][0], text, text, statements[0][1], parameters, frames),)
        parameter_names = [names(tree) for tree, _ in statements]
        refuse_unused(parameters, set().union(*parameter_names))
        pieces = tuple(
            Piece(
                tree,
                text,
                text[span.start : span.end],
                span,
                {name: value for name, value in parameters.items() if name in own},
                frames,
            )
            for (tree, span), own in zip(statements, parameter_names, strict=True)
        )
        _check_ahead(session, pieces)
    return pieces


@memory_errors()
def prepared(session: Session, piece: Piece, statement: StatementInput | None = None) -> PreparedStatement:
    """A statement that `checked` gave, ready to run; one that changes something runs at once.

    Args:
        piece: those before it in the script have run.
        statement: of a resumed run, the statement and the run that it continues.
    """
    with session.lock:
        session.statement = statement or StatementInput(piece.source, piece.parameters)
        try:
            return _prepared(session, piece)
        except UQLError as error:
            raise _of_a_copy(session.catalog, piece) or error from error.__cause__
        except duckdb.Error as error:  # such as one before in the same transaction
            session.note_failure(error)
            raise _of_a_copy(session.catalog, piece) or refused(error) from error


def _of_a_copy(catalog: Catalog, piece: Piece) -> DataError | None:
    """The error of a statement that changes a temporary table of the user's own connection; None for others."""
    with suppress(duckdb.Error):  # in a transaction that has ended
        change = changed(piece.source) or altered(piece.source)
        if change is None or not change.name or not catalog.is_copied(change.name):
            return None
        return DataError(
            f"{change.name[-1]} is a temporary table of the connection that UQL is attached to, and UQL reads a copy of it",
            code="UQL509",
            text=piece.source,
            start=change.start,
            end=change.end,
            help="store the answers with CREATE TABLE answers AS SELECT …, and change the temporary table from them by that connection",
        )
    return None


def _check_ahead(session: Session, pieces: Sequence[Piece]) -> None:
    """Binds every statement of a script before the first one runs. Raises: as they would."""
    from uql.compiler.binder import bind
    from uql.session.check_script import check

    def bound(piece: Piece, query: Query) -> BoundStatement:
        statement = bind(
            query,
            session.catalog,
            text=piece.script,
            parameters=piece.parameters,
            frames=piece.frames,
            settings=session.settings,
        )
        if statement.semantic:
            session.plan(statement, session.settings.with_values(**dict(statement.options)))
        return statement

    check(pieces, session.catalog, bound)


def resume(
    session: Session, before: Before, changes: Mapping[str, Any], frames: Mapping[str, Any]
) -> PreparedStatement:
    """The statement of an earlier run, with its settings and parameters, as a continuation of that run.

    Args:
        changes: settings that are not as they were.
        frames: data frames by the name that FROM gives them.
    """
    from uql.session.replay import ENDED

    restored, parameters = before.restored(session.settings)
    own, session.settings = session.settings, restored
    try:
        has_ended = before.status in ENDED
        goes_on = (
            None if has_ended and "budget" in changes else before
        )  # else as the statement itself with a larger budget does
        continuation = StatementInput(before.statement, parameters, goes_on, changes, has_ended)
        return run_script(session, before.statement, parameters, frames, continuation)
    finally:
        session.settings = own


def _prepared(session: Session, piece: Piece) -> PreparedStatement:
    """One statement of a script: UQL, UQL inside a statement of DuckDB's, or DuckDB's alone."""
    from uql.compiler.parser import parse
    from uql.compiler.syntax_errors import semantic_form

    if altered(piece.source) is not None and (copied := _of_a_copy(session.catalog, piece)) is not None:
        raise copied  # of DROP TABLE IF EXISTS DuckDB would find no table, and do nothing
    partial = session.settings.partial
    if not isinstance(piece.tree, str):
        try:
            return _uql(session, piece, piece.tree)
        except BindError as error:
            return duckdb_names(session.catalog, piece, error, partial)
    rewritten = _without_recursion(session, piece)
    if rewritten is not piece:
        try:
            return _prepared(session, rewritten)
        except UQLError as error:
            if error.text == rewritten.script:
                error.text = piece.script
            raise
    try:
        parse(piece.tree)
    except UQLSyntaxError as error:
        if semantic_form(piece.tree.split()) is not None:  # DuckDB has no such statement
            raise error.at(piece.tree) from None
        return _wrapped(session, piece, piece.tree) or duckdb_own(session.catalog, piece, error, partial)
    raise AssertionError(piece)  # the parser has refused it before


def _without_recursion(session: Session, piece: Piece) -> Piece:
    """The statement with the rows of WITH RECURSIVE as views, where it holds a text; the same where it has none."""
    from uql.compiler.parser import parse_script
    from uql.session.recursion import without_recursion

    source = piece.source
    if "recursive" not in source.lower() or not has_free_text(source):
        return piece
    rewritten = without_recursion(source, session.catalog.cursor)
    if rewritten == source:
        return piece
    script = piece.script[: piece.span.start] + rewritten + piece.script[piece.span.end :]
    tree = next(tree for tree, span in parse_script(script) if span.start == piece.span.start)
    return replace(piece, tree=tree, script=script, source=rewritten)


def _wrapped(session: Session, piece: Piece, text: str) -> PreparedStatement | None:
    """What only DuckDB knows, around sub-queries with texts."""
    if '"' not in text and "$" not in text:
        return None
    from uql.session.duckdb_wrapped import around

    def run(part: str, values: Mapping[str, Any]) -> PreparedStatement:
        return run_script(session, part, values, piece.frames)

    return around(session, replace(piece, source=text), run)


def _uql(session: Session, piece: Piece, tree: Statement) -> PreparedStatement:
    source = piece.script

    def bound(query: Query) -> BoundStatement:
        return session.bind(query, source, piece.parameters, piece.frames)

    if isinstance(tree, SemanticStatement):
        from uql.session.semantic_tables import run

        return run(session, tree, piece)
    if isinstance(tree, SetOption):
        return set_option(session, tree, source)
    if isinstance(tree, Explain):
        from uql.session.explain_statement import explain

        inside = tree.statement
        written = _to_write(session, piece, inside) if isinstance(inside, CreateTable | Insert | CopyQuery) else None
        if written is not None and not written[1].semantic:
            return passed_on(
                session.catalog, *without_own_options(piece.source, session.settings.partial), piece.parameters
            )
        query = written[1] if written is not None else bound(inside) if isinstance(inside, Query) else None
        return explain(session, tree, piece, query, lambda: _uql(session, piece, inside))
    if isinstance(tree, CreateTable | Insert | CopyQuery):
        return _writes(session, piece, *_to_write(session, piece, tree))
    assert isinstance(tree, Query)
    own = plain_query(session, tree, piece, lambda: bound(tree))
    if own is not None:
        return own
    query = bound(tree)
    result = prepare(session, query, source)
    if query.to is not None:
        check_to(session.catalog.cursor, query.to, source)
        result.run()
    return result


def _to_write(
    session: Session, piece: Piece, tree: CreateTable | Insert | CopyQuery
) -> tuple[CreateTable | Insert | CopyQuery, BoundStatement]:
    """CREATE TABLE … AS, INSERT INTO … and COPY (…) TO with their query bound, checked before it is paid for."""
    source, catalog = piece.script, session.catalog
    bound = session.bind(tree.query, source, piece.parameters, piece.frames)
    into = answer_types(catalog, tree, bound) if isinstance(tree, Insert) else ()
    if any(into):
        bound = session.bind(tree.query, source, piece.parameters, piece.frames, into)
    if isinstance(tree, Insert) and not tree.columns:
        tree = replace(tree, columns=listed(catalog, tree.name, len(bound.query.items)))
    check_target(catalog.cursor, tree, bound.query.items, source, folder=session.cluster is not None)
    return tree, bound


def _writes(
    session: Session, piece: Piece, tree: CreateTable | Insert | CopyQuery, bound: BoundStatement
) -> PreparedStatement:
    """Runs them at once."""
    source, catalog = piece.script, session.catalog
    result = prepare(session, bound, source)
    if isinstance(tree, CreateTable) and tree.if_not_exists and is_there(catalog.cursor, tree):
        return done(catalog, text_outcome([], None), "nothing to do", source)
    written = (
        None if isinstance(tree, Insert) or session.cluster is not None else plain_write(session, tree, piece, bound)
    )
    if written is not None:
        return result.then(written)
    shards = None
    if isinstance(tree, CopyQuery) and session.cluster is not None:
        from uql.session.copy_by_shards import copy_by_shards

        shards = copy_by_shards(session, tree, bound, piece)
    outcome = result.run() if shards is None else shards.run()
    partial = session.settings.with_values(**dict(bound.options)).partial
    try:
        if not (outcome.exact or partial or isinstance(tree, CreateTable)):
            raise refusal([outcome])
        return result.then(
            write(catalog, tree, outcome, piece.source, bound) if shards is None else shards.keep(outcome)
        )
    except BudgetError as error:
        target = tree.path if isinstance(tree, CopyQuery) else tree.name[-1]
        start = source.find(target)
        raise placed(error, source, start, start + len(target)) from None


def set_option(session: Session, piece: SetOption, source: str) -> PreparedStatement:
    """SET uql.name = value and RESET uql.name. Raises: ConfigError (UQL105) at the place of the name.

    Args:
        piece: SET or RESET.
    """
    from uql.compiler.rules import known_names

    name = piece.name
    value = getattr(Settings(), name, None) if piece.value is None else piece.value
    try:
        known_names(session.settings.with_values(**{name: value}).disabled_rules)
        session.use(**{name: value})
    except ConfigError as error:
        place = source.lower().find(name.lower())
        error.start, error.end = place, place + len(name)
        raise error.at(source) from None
    return done(session.catalog, text_outcome([], None), "SET", source)
