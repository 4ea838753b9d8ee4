"""A node of Python that a model wrote, run over tables by pydantic-monty alone: no files, no network, no packages of Python's.

Monty is an interpreter of its own in a process of its own, which knows a part of Python and a few modules of the standard library.
A table is a list of dictionaries, one a row. The value of the last line is the node's output: a table where it is a list of rows,
else JSON. Time, memory, recursion and the size of the output are limited, and what a limit stopped says so (UQL621).
"""

from __future__ import annotations

import ast
import builtins
import datetime
import decimal
import keyword
import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from uql.base.arrow_values import rows_of
from uql.base.errors import ConfigError, GuardError
from uql.base.extras import install

if TYPE_CHECKING:
    import pyarrow as pa

MODULES = ("bisect", "collections", "datetime", "decimal", "functools", "itertools", "json", "math", "re", "typing")
TIMEOUT_S = 5.0
MEMORY_BYTES = 256 * 1024 * 1024
MAX_ROWS = 100_000  # of an input, and of the output
MAX_VALUES = 1_000_000  # of the output, nested ones counted
LONGEST = 20_000  # characters of the source
RECURSION = 200
_CLOCK = datetime.datetime(2000, 1, 1)  # what now() says: the same run gives the same output
_STOPS = {"TimeoutError": "it ran longer than {s:g} s", "MemoryError": "it needs more memory than {m:,} MB"}
_NAMED = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.ExceptHandler | ast.MatchAs | ast.MatchStar
_MAKERS = frozenset({"eval", "exec", "compile", "__import__"})  # they would make code that the check has not seen


@dataclass(frozen=True, slots=True)
class PythonOutput:
    """What a node of Python ended in.

    Attributes:
        value: the value of its last line as JSON knows it; dates and times are texts in ISO's form.
        table: the same as a table, where it is a list of rows; None: it is not.
        printed: what print() said, its first 10,000 characters.
    """

    value: Any
    table: pa.Table | None
    printed: str = ""


def check_python(source: str, inputs: Collection[str] = ()) -> str:
    """The source, where it can be read, imports what there is, and ends in a value.

    Args:
        source: Python from a model.
        inputs: names of the tables it is given; they must be names of Python.
    Raises: GuardError (UQL620) with the line. Nothing is run.
    """
    if not isinstance(source, str) or not source.strip():
        raise _refused("it is empty")
    if len(source) > LONGEST:
        raise _refused(f"it is longer than {LONGEST:,} characters")
    for name in inputs:
        if not name.isidentifier() or keyword.iskeyword(name):
            raise _refused(
                f"{name!r} is not a valid Python name", help="give the node before it a name of letters and _"
            )
    try:
        tree = ast.parse(source)
    except SyntaxError as error:
        raise _refused(f"line {error.lineno}: {error.msg}") from error
    except (ValueError, RecursionError, MemoryError) as error:
        raise _refused("it cannot be read") from error
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id in _MAKERS:
            raise _refused(f"line {node.lineno}: {node.id} is not allowed")
        if isinstance(node, ast.Import | ast.ImportFrom):
            modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or "."]
            for name in modules:
                if name not in MODULES:
                    raise _refused(
                        f"line {node.lineno}: {name} cannot be imported", help=f"modules: {', '.join(MODULES)}"
                    )
    for name in sorted(_free(tree) - set(inputs)):
        inputs_text = f"its inputs: {', '.join(inputs) or 'none'}"
        raise _refused(
            f"it uses {name}, which is not defined", help=f"{inputs_text}; a table comes in by a query before it"
        )
    if not isinstance(tree.body[-1], ast.Expr):
        raise _refused("its last line is not an expression", help="end in the table or value that the node gives")
    return source


def _free(tree: ast.Module) -> set[str]:
    """The names that are read and nowhere given a value: inputs, or names that are not there."""
    read: set[str] = set()
    bindings = set(dir(builtins))
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            (read if isinstance(node.ctx, ast.Load) else bindings).add(node.id)
        elif isinstance(node, ast.arg):
            bindings.add(node.arg)
        elif isinstance(node, _NAMED) and node.name:
            bindings.add(node.name)
        elif isinstance(node, ast.MatchMapping) and node.rest:
            bindings.add(node.rest)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            bindings |= {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
    return read - bindings


def run_python(
    source: str,
    tables: Mapping[str, pa.Table | list[dict[str, Any]]],
    *,
    timeout_s: float = TIMEOUT_S,
    memory_bytes: int = MEMORY_BYTES,
) -> PythonOutput:
    """Runs a checked source over tables and gives what its last line is.

    Args:
        source: Python from a model; it is checked first.
        tables: by the names that the source uses; columns of bytes (images) are left out. JSON of an earlier node is passed as it is.
        timeout_s, memory_bytes: of the source; both are kept inside the interpreter, and by killing it.
    Raises: GuardError, UQL620 where the source is refused or fails, UQL621 where a limit stopped it; ConfigError (UQL610) where
        pydantic-monty is not installed.
    """
    check_python(source, tables)
    try:
        import pydantic_monty as monty
    except ImportError:
        raise ConfigError("Python in a plan needs pydantic-monty", code="UQL610", help=install("ask")) from None
    limits = monty.ResourceLimits(
        max_feed_duration_secs=timeout_s,
        max_memory=memory_bytes,
        max_recursion_depth=RECURSION,
        max_suspensions=100,
    )
    policy = monty.OSPolicy(datetime=_CLOCK, sleep="zero", random_start={"seed": 0})
    stdout = monty.CollectString()
    inputs = {name: _rows_of(name, table) for name, table in tables.items()}
    try:
        with (
            monty.Monty(request_timeout=timeout_s + 5.0) as pool,
            pool.checkout(limits=limits, os_policy=policy, script_name="node.py") as session,
        ):
            value = session.feed_run(source, inputs=inputs, print_callback=stdout)
    except monty.MontyCrashedError as error:
        raise _stopped("its interpreter died, or did not end in time") from error
    except monty.MontyRuntimeError as error:
        inner = error.exception()
        for kind, words in _STOPS.items():
            if type(inner).__name__ == kind and "limit" in str(inner):
                raise _stopped(words.format(s=timeout_s, m=memory_bytes // 2**20)) from error
        if isinstance(inner, RecursionError):
            raise _stopped(f"it calls itself deeper than {RECURSION}") from error
        place = next((f"line {frame.line}: " for frame in reversed(error.traceback())), "")
        raise _refused(f"{place}{type(inner).__name__}: {inner}"[:300]) from error
    except monty.MontyError as error:
        raise _refused(str(error).strip()[:300]) from error
    except (OSError, RuntimeError) as error:  # its program is not there, or may not be started
        message = f"Python in a plan needs the program of pydantic-monty: {error}"
        raise ConfigError(message, code="UQL610", help=install("ask")) from error
    counted = [0]
    plain = _plain(value, counted)
    return PythonOutput(_as_json(plain), _as_table(plain), stdout.output[:10_000])


def _rows_of(name: str, table: Any) -> Any:
    """A table as rows without its columns of bytes; a JSON value as it is."""
    import pyarrow as pa

    if not isinstance(table, pa.Table):
        return table
    if table.num_rows > MAX_ROWS:
        raise _refused(
            f"the table {name} has {table.num_rows:,} rows", help=f"at most {MAX_ROWS:,}: aggregate it first"
        )
    columns = [f.name for f in table.schema if not (pa.types.is_binary(f.type) or pa.types.is_large_binary(f.type))]
    return rows_of(table.select(columns))


def _plain(value: Any, counted: list[int]) -> Any:
    """The value made of dict, list, str, int, float, bool, None, dates and times. Raises GuardError on anything else."""
    counted[0] += 1
    if counted[0] > MAX_VALUES:
        raise _stopped(f"its output has more than {MAX_VALUES:,} values")
    if value is None or isinstance(value, bool | str | datetime.date | datetime.time):
        return value
    if isinstance(value, int):
        if value.bit_length() > 63:
            raise _refused("its output holds a number beyond 64 bits")
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, decimal.Decimal):
        return float(value)
    if isinstance(value, Mapping):
        return {_key(key): _plain(inner, counted) for key, inner in value.items()}
    if isinstance(value, set | frozenset):
        return sorted((_plain(inner, counted) for inner in value), key=repr)
    if isinstance(value, list | tuple):
        return [_plain(inner, counted) for inner in value]
    raise _refused(
        f"its last line is a {type(value).__name__}", help="end in a list of rows, or in texts, numbers, lists, dicts"
    )


def _key(key: Any) -> str:
    if isinstance(key, datetime.date | datetime.time):
        return key.isoformat()
    if key is None or isinstance(key, str | int | float):
        return str(key)
    raise _refused(f"a key of its output is a {type(key).__name__}", help="use texts or numbers as keys")


def _as_json(value: Any) -> Any:
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, dict):
        return {key: _as_json(inner) for key, inner in value.items()}
    return [_as_json(inner) for inner in value] if isinstance(value, list) else value


def _as_table(value: Any) -> pa.Table | None:
    """The table of a list of dictionaries: the columns of all rows in the order first seen; None for any other value."""
    import pyarrow as pa

    if not isinstance(value, list) or not value or not all(isinstance(row, dict) and row for row in value):
        return None
    if len(value) > MAX_ROWS:
        raise _stopped(f"its output has more than {MAX_ROWS:,} rows")
    columns = dict.fromkeys(key for row in value for key in row)
    try:
        return pa.table({name: pa.array([row.get(name) for row in value]) for name in columns})
    except pa.ArrowException as error:
        raise _refused(
            f"a column of its output holds values of different types: {str(error).splitlines()[0][:120]}"
        ) from error


def _refused(why: str, help: str | None = None) -> GuardError:
    return GuardError(f"the Python is refused: {why}", help=help or "write plain Python over the tables given")


def _stopped(why: str) -> GuardError:
    return GuardError(f"the Python was stopped: {why}", code="UQL621", help="aggregate in SQL first, or do less")
