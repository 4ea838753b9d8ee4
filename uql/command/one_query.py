"""A query that somebody else wrote, for a database that is open to be read: the client of a server, the sender of a file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from uql.base.errors import DataError

if TYPE_CHECKING:
    from uql.api.connection import Connection
    from uql.api.result import Result

LONGEST = 100_000  # characters of a statement, as on the page of `uql ui`


def one_query(con: Connection, statement: str) -> Result:
    """One query that only reads, bound and not run. Raises: UQLError; DataError (UQL511) for anything else."""
    from uql.compiler.parser import parse_script
    from uql.compiler.syntax import Select, Union
    from uql.session.read_only import reads
    from uql.session.resume import named

    if len(statement) > LONGEST:
        raise DataError(
            f"a statement has at most {LONGEST:,} characters here",
            code="UQL511",
            help="query a table instead of values",
        )
    pieces = parse_script(statement)
    query = len(pieces) == 1 and isinstance(pieces[0][0], Select | Union | str) and reads(pieces[0][0])
    if pieces and not query:
        raise DataError(
            "one query that only reads is taken here",
            code="UQL511",
            text=statement,
            help="one SELECT, without TO, SET or EXPLAIN; settings go into WITH (…) at its end",
        )
    if named(statement):
        raise DataError(
            f"{named(statement)[0]} is not served: the ledger holds what was asked about other databases too",
            code="UQL511",
            text=statement,
            help="query the tables of the database",
        )
    return con.uql(statement)
