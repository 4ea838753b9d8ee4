"""`uql.register_functions(con)`: questions to a model as functions of plain DuckDB SQL.

    uql_if(text, condition)                BOOLEAN    uql_if(body, 'asks for a refund')
    uql_extract(text, what)                VARCHAR    uql_extract(body, 'the product')::…
    uql_classify(text, question, labels)   VARCHAR    uql_classify(body, 'the mood', ['good', 'bad']); NULL: none of these
    uql_score(text, question)              DOUBLE     uql_score(body, 'how angry the writer is'): 0 not at all … 1 as can be
    uql_embed(text)                        FLOAT[]    of length 1, for list_cosine_similarity

They are a convenience, for a query that needs DuckDB's whole SQL. DuckDB cannot see into them, so nothing of UQL's optimizer
holds: every row that reaches one is asked (no sample, no interval, no order by price, no stop at LIMIT), and a text is the only
thing shown. `con.uql(…)` is the better way wherever it can say the query. What does hold: equal rows are asked once, the ledger
answers what was ever paid for, and the budget is never exceeded. EXPLAIN shows the functions by their names.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import uuid
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

import duckdb
import pyarrow as pa

from uql.base.errors import BudgetError, ConfigError
from uql.base.extras import install
from uql.llm.questions import Cell, Choice, Extract, Failure, Predicate, Question, Row, Score
from uql.llm.run_record import Cost, Run

if TYPE_CHECKING:
    from uql.base.settings import Settings
    from uql.llm.gate import Gate
    from uql.llm.providers.base import Provider

T = TypeVar("T")
SIGNATURES: dict[str, tuple[tuple[str, ...], str]] = {
    "uql_if": (("VARCHAR", "VARCHAR"), "BOOLEAN"),
    "uql_extract": (("VARCHAR", "VARCHAR"), "VARCHAR"),
    "uql_classify": (("VARCHAR", "VARCHAR", "VARCHAR[]"), "VARCHAR"),
    "uql_score": (("VARCHAR", "VARCHAR"), "DOUBLE"),
    "uql_embed": (("VARCHAR",), "FLOAT[]"),
}
_ARROW = {"BOOLEAN": "bool", "VARCHAR": "string", "DOUBLE": "double"}
LEVELS = 10  # of a score
SOURCE = "DuckDB functions"  # the table that the ledger notes for their answers


def register_functions(
    connection: duckdb.DuckDBPyConnection, *, model: str | Provider | None = None, **settings: Any
) -> Functions:
    """Gives a DuckDB connection the functions of this module. A second time replaces them.

    Args:
        connection: the user's own; nothing else of it is changed.
        model: as in `uql.connect`; without one uql_embed alone works.
        settings: of `uql.connect`; `budget` counts over all queries until `reset()` (256 calls where it is not set), and a query
            that would need more ends with UQL401, its answers kept.
    Returns: what was paid and what failed; `close()` takes the functions away.
    Raises: ConfigError on a setting.

    >>> import duckdb, uql
    >>> with duckdb.connect() as con, uql.register_functions(con, ledger=":memory:") as functions:
    ...     con.sql("SELECT function_name FROM duckdb_functions() WHERE function_name LIKE 'uql_%' ORDER BY 1").fetchall()
    [('uql_classify',), ('uql_embed',), ('uql_extract',), ('uql_if',), ('uql_score',)]
    """
    from uql.api.opening import with_model

    functions = Functions(connection, *with_model(model, **settings))
    create: Any = connection.create_function  # its stubs do not know the short names of the options
    for function, (parameters, returned) in SIGNATURES.items():
        with contextlib.suppress(duckdb.Error):
            connection.remove_function(function)
        create(
            function, functions.callable(function), list(parameters), returned, type="arrow", null_handling="special"
        )
    return functions


class Functions:
    """The functions of one connection: a gate in an event loop of its own thread, which DuckDB's threads ask.

    Attributes:
        errors: every row without an answer, whose value is NULL.
    """

    def __init__(
        self, connection: duckdb.DuckDBPyConnection, settings: Settings, model: Provider | None = None
    ) -> None:
        self._connection, self._settings, self._model = connection, settings, model
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._gate: Gate | None = None
        self._embedder: Any = None
        self.errors: list[Failure] = []

    @property
    def cost(self) -> Cost:
        """What was paid since they were registered, or since `reset()`."""
        return self._gate.cost if self._gate is not None else Cost()

    def reset(self) -> None:
        """Begins a new budget, a new count of cost, and an empty list of errors. Not while a query runs."""
        with self._lock:
            self._end()
            self.errors = []

    def close(self) -> None:
        """Takes the functions from the connection and ends their thread."""
        for function in SIGNATURES:
            with contextlib.suppress(duckdb.Error):
                self._connection.remove_function(function)
        with self._lock:
            self._end()

    def __enter__(self) -> Functions:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def callable(self, name: str) -> Callable[..., pa.Array]:
        """What DuckDB calls with a batch of rows: Arrow arrays in, one out."""
        if name == "uql_embed":
            return lambda text: self._embedded(text)  # no annotations: DuckDB would evaluate them
        if name == "uql_classify":
            return lambda text, question, labels: self._answer_batch(name, text, question, labels)
        return lambda text, question: self._answer_batch(name, text, question)

    # ------------------------------------------------------------------------------------------------------------ asking
    def _answer_batch(self, function: str, text: pa.Array, about: pa.Array, labels: pa.Array | None = None) -> pa.Array:
        """The answers for a batch: rows of one question are asked together. NULL in any argument gives NULL and no call."""
        texts = text.to_pylist()
        listed = labels.to_pylist() if labels is not None else [[]] * len(texts)
        rows_by_question: dict[Question, list[int]] = {}
        for i, parts in enumerate(zip(texts, about.to_pylist(), listed, strict=True)):
            if None not in parts:
                rows_by_question.setdefault(_question(function, *parts[1:]), []).append(i)
        values: list[Any] = [None] * len(texts)
        for question, answers in self._run(self._answers(rows_by_question, texts)) if rows_by_question else ():
            for i, value in zip(rows_by_question[question], answers, strict=True):
                values[i] = value / (LEVELS - 1) if function == "uql_score" and value is not None else value
        return pa.array(values, type=pa.type_for_alias(_ARROW[SIGNATURES[function][1]]))

    async def _answers(self, rows_of: dict[Question, list[int]], texts: list[str]) -> list[tuple[Question, list[Any]]]:
        gate = self._open_gate()
        result: list[tuple[Question, list[Any]]] = []
        for question, indices in rows_of.items():
            answers = await gate.ask(question, [Row((Cell("text", texts[i]),)) for i in indices], source=SOURCE)
            spent = [failure for failure in answers.failures if failure.kind == "budget"]
            if spent:
                raise BudgetError(
                    f"{len(spent):,} rows of {question.text!r} were not asked: {spent[0].message}",
                    help="uql.register_functions(con, budget = 'all') asks every row; what was answered is in the ledger",
                )
            self.errors += answers.failures
            result.append((question, list(answers.values)))
        return result

    def _embedded(self, text: pa.Array) -> pa.Array:
        texts = text.to_pylist()
        with self._lock:
            if self._embedder is None:
                self._embedder = _embedder(self._settings)
            vectors = self._embedder.embed(texts)
        embeddings = [None if t is None else row for t, row in zip(texts, vectors, strict=True)]
        return pa.array(embeddings, type=pa.list_(pa.float32()))

    # ------------------------------------------------------------------------------------------------- the gate's thread
    def _open_gate(self) -> Gate:
        from uql.llm.gate import Gate

        if self._gate is None:
            run = Run(uuid.uuid4().hex[:12], self._settings.seed, SOURCE)
            self._gate = Gate.open(self._settings, run=run, model=self._model)
        return self._gate

    def _run(self, task: Coroutine[Any, Any, T]) -> T:
        """Runs a coroutine in the loop of the functions' own thread and waits; other threads of DuckDB's go on meanwhile."""
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(target=self._loop.run_forever, name="uql-functions", daemon=True)
                self._thread.start()
            loop = self._loop
        return asyncio.run_coroutine_threadsafe(task, loop).result()

    def _end(self) -> None:
        loop, thread, gate = self._loop, self._thread, self._gate
        self._loop = self._thread = self._gate = None
        if loop is None or thread is None:
            return
        if gate is not None:
            asyncio.run_coroutine_threadsafe(gate.aclose(), loop).result()
        asyncio.run_coroutine_threadsafe(loop.shutdown_default_executor(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def _question(function: str, text: str, labels: list[str | None]) -> Question:
    """What a function asks. Braces are doubled: there are no columns to stand in holes."""
    plain = text.replace("{", "{{").replace("}", "}}")
    match function:
        case "uql_if":
            return Predicate(plain)
        case "uql_extract":
            return Extract(plain)
        case "uql_score":
            return Score(plain, LEVELS)
    return Choice(plain, tuple(dict.fromkeys(label for label in labels if label is not None)))


def _embedder(settings: Settings) -> Any:
    """The embedder of the settings. Raises ConfigError where it is not available."""
    from uql.features.static import embedder_of

    embedder = embedder_of(settings)
    if embedder is None:
        raise ConfigError("uql_embed needs an embedder", help=f"{install('local')}, or embedder = 'openai:MODEL'")
    return embedder
