"""What a node gives, whether that is valid, and what is told of its run."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from uql.base.arrow_values import cells_of
from uql.base.schema import Field
from uql.compiler.parser import tree_of
from uql.compiler.syntax import Number, Select, Union
from uql.llm.run_record import Cost
from uql.nl.ask.context import Prompted
from uql.nl.plan.dag import Node, NodeKind, SubAnswer

if TYPE_CHECKING:
    import pyarrow as pa

    from uql.engine.outcome import Outcome
    from uql.show.plots import Plot

NOTHING = frozenset(
    {"", "unknown", "not found", "none", "null", "n/a", "nan", "no answer", "not available", "cannot be determined"}
)
_ERRORS = ("error:", "traceback (most recent", "exception:")
EMPTY = "it gives no rows"
SAID = 5  # estimates of a column that are said one by one


@dataclass(frozen=True, slots=True)
class Output:
    """What one node gave.

    Attributes:
        table: its rows, where it makes a table.
        value: JSON of a python node, or what an adapter answered.
        plots: of a plot node.
        outcome: of a UQL statement: estimates, errors, evidence.
        sub: of an adapter node.
        fields: its columns, for the nodes behind it.
    """

    table: pa.Table | None = None
    value: Any = None
    plots: tuple[Plot, ...] = ()
    outcome: Outcome | None = None
    sub: SubAnswer | None = None
    fields: tuple[Field, ...] = ()

    @property
    def hidden(self) -> frozenset[str]:
        """Lower-case names of the columns that no model may see."""
        return frozenset(f.name.lower() for f in self.fields if f.private)

    @property
    def rows(self) -> int | None:
        return None if self.table is None else int(self.table.num_rows)


@dataclass(slots=True)
class Step:
    """One node's run, as the user may look at it.

    Attributes:
        node: its name; `kind`, `description`, `body` (UQL, Python, specification or sub-query, as it ran).
        state: "done", "failed" (with `problem`), "blocked" (an input is missing) or "skipped".
        prompts: what was asked of the planning model in this step, with the replies.
        tries: 1, or 2 where it debugged itself.
        rows: of its table.
        began_s, seconds: since the first node began, and of this one.
        cost: of its calls to models.
        adapter: who answered, of an adapter node; `attempts` how many operators and adapters were tried.
        tried: the bodies that failed before, with the reasons.
    """

    node: str
    kind: str
    body: str
    description: str = ""
    state: str = "blocked"
    problem: str = ""
    prompts: list[Prompted] = field(default_factory=list)
    tries: int = 0
    rows: int | None = None
    began_s: float = 0.0
    seconds: float = 0.0
    cost: Cost = field(default_factory=Cost)
    adapter: str = ""
    attempts: int = 0
    tried: list[tuple[str, str]] = field(default_factory=list)

    @property
    def uql(self) -> str | None:
        """The statement, of a node that is one."""
        return self.body if self.kind in (NodeKind.UQL, NodeKind.SQL) else None

    def __str__(self) -> str:
        rows = "" if self.rows is None else f", {self.rows:,} rows"
        usd = "" if not self.cost.usd else f", ${self.cost.usd:.4f}"
        why = f": {self.problem}" if self.problem else ""
        return f"{self.node} ({self.kind}) {self.state}{rows}, {self.cost.calls} calls, {self.seconds:.1f} s{usd}{why}"


def problem_of(node: Node, output: Output, sources: Collection[str]) -> str | None:
    """Why an output is not valid; None: it is. Its type, its columns, rows, words that say nothing, sources that are not there.

    Args:
        sources: names that an answer may cite.
    """
    if output.sub is not None:
        return _problem_of_answer(output.sub, {name.lower() for name in sources})
    table = output.table
    if node.kind is NodeKind.PLOT:
        return None if output.plots or output.rows == 0 else "it drew nothing"
    if table is None and output.value == []:  # rows that Python left out, all of them
        return None if node.may_be_empty else EMPTY
    if table is None:
        return "its value says nothing" if says_nothing(output.value) else None
    low = {name.lower() for name in table.column_names}
    missing = [name for name in node.columns if name.lower() not in low]
    if missing:
        return f"it has no column {missing[0]}; it has {', '.join(table.column_names)}"
    if table.num_rows == 0:
        return None if node.may_be_empty else EMPTY
    table = without_bounds(output)
    if table.num_rows == 1 and table.num_columns == 1 and says_nothing(cells_of(table.column(0))[0]):
        value = cells_of(table.column(0))[0]
        return f"its only value is {'NULL: no row fits, or none has a value' if value is None else repr(value)}"
    if all(column.null_count == table.num_rows for column in table.columns):
        return "all its values are NULL"
    return None


def _problem_of_answer(answer: SubAnswer, sources: Collection[str]) -> str | None:
    if answer.problem is not None:
        return answer.problem
    if answer.table is not None and not answer.table.num_rows:
        return None  # a statement that finds nothing
    if answer.value is None and not answer.text.strip():
        return "there is no answer"
    if says_nothing(answer.value if answer.value is not None else answer.text):
        return f"the answer says nothing: {answer.text[:80]!r}"
    unknown = [name for name in answer.sources if name.lower() not in sources]
    return f"it cites {unknown[0]!r}, which is not a source" if unknown else None


def without_bounds(output: Output) -> pa.Table:
    """The rows of an output without the ends of intervals, which are told beside them."""
    assert output.table is not None
    estimates = output.outcome.estimates if output.outcome is not None else {}
    ends = {f"{name}_{end}" for name in estimates for end in ("low", "high")}
    return output.table.select([name for name in output.table.column_names if name not in ends])


def caveats(outcome: Outcome | None) -> list[str]:
    """Remarks on a statement's rows: estimates with their intervals, warnings, rows not asked or without an answer."""
    if outcome is None:
        return []
    remarks = []
    for column, estimates in outcome.inexact.items():
        for e in estimates[:SAID]:
            ends = " to ".join("open" if end is None else f"{end:.6g}" for end in (e.low, e.high))
            value = "no value" if e.value is None else f"{e.value:.6g}"
            remarks.append(f"{column} is an estimate: {value}, {e.confidence:.0%} interval {ends}")
        if len(estimates) > SAID:
            remarks.append(f"{column} has {len(estimates) - SAID:,} more estimates")
    remarks += outcome.warnings
    remarks += [note for note in outcome.notes if "`uql calibrate`" not in note]  # true of every answer of a model
    if outcome.errors and not any("gave no answer" in note for note in outcome.notes):
        remarks.append(f"{len(outcome.errors):,} answers of the model are missing")
    return remarks


def left_out(statement: str, rows: int | None) -> str:
    """The remark on a statement whose LIMIT, without ORDER BY, may have left out any of its rows; "": it has left out none.

    Args:
        rows: that it gave.

    >>> [left_out(f"SELECT id FROM t {end}", 5) for end in ("LIMIT 5", "LIMIT 6", "ORDER BY id LIMIT 5")]
    ['LIMIT 5 without ORDER BY: other rows may be left out', '', '']
    """
    tree = tree_of(statement)
    if not isinstance(tree, Select | Union) or not isinstance(tree.limit, Number) or tree.order_by:
        return ""
    whole = not tree.percent and str(rows) != tree.limit.text
    return "" if whole else f"LIMIT {tree.limit.text} without ORDER BY: other rows may be left out"


def says_nothing(value: Any) -> bool:
    """NULL, an empty list, "unknown", "not found", or the text of an error.

    >>> [says_nothing(v) for v in (None, "Unknown.", "Error: no key", [], 0, "Rome")]
    [True, True, True, True, False, False]
    """
    if value is None:
        return True
    if isinstance(value, str):
        low = value.strip().strip(".!").lower()
        return low in NOTHING or low.startswith(_ERRORS)
    if isinstance(value, list | dict | tuple):
        return not value
    return isinstance(value, float) and value != value
