"""Functions of DuckDB's that a query may call and that change something: a read-only session refuses them."""

from __future__ import annotations

from itertools import pairwise

from uql.compiler.statement_targets import tokens

READS_ONLY = "the session is read-only: a query, EXPLAIN of a query, or SET uql.name = value"
TO_CHANGE = "start it without --read-only, and `uql ui` with --write, to change something"
# they change settings, write files, or run what they are given as a value
_CHANGING_FUNCTIONS = """
    add_grammar_extension checkpoint create_external_resource deregister_external_resource destroy_external_resource
    disable_logging disable_profiling enable_logging enable_profiling force_checkpoint json_execute_serialized_sql
    register_external_resource register_external_resource_type remove_grammar_extension truncate_duckdb_logs write_log
"""
_CHANGING = frozenset(_CHANGING_FUNCTIONS.split())


def calls_change(sql: str) -> bool:
    """Does a statement call one of them? `query` runs the text that it is given: a constant is looked into, anything else refused.

    >>> calls_change("FROM query('FROM enable_logging()')"), calls_change("FROM query('FROM t')"), calls_change("FROM checkpoint")
    (True, False, False)
    """
    found = tokens(sql)
    for n, (token, after) in enumerate(pairwise(found)):
        name = token.name.lower()
        if after.text != "(" or (name != "query" and name not in _CHANGING):
            continue
        given = [argument.text for argument in found[n + 2 : n + 4]]
        constant = len(given) == 2 and given[0].startswith("'") and given[1] == ")"
        if name != "query" or not constant or calls_change(given[0][1:-1].replace("''", "'")):
            return True
    return False
