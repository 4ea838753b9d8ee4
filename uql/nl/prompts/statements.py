"""One statement of plain SQL for a question: worked examples, CREATE TABLE text, the question, and DuckDB's message after an error."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from uql.base.schema import Field
from uql.nl.prompts import Wording, rules_text
from uql.nl.schema.scope import Scope, Source
from uql.operators.texts import one_line, short

TASK = "statement"
VERSION = "statement-3"
_TASK = (
    "You translate a question into one DuckDB SQL SELECT statement. Use only the given tables and columns. Return exactly the "
    "columns that are asked for; of things their name or title, not an id or a code, unless the question asks for that."
)
_ALONE = "Answer with the statement alone."
EXAMPLES = """\
Question: Which is the deepest lake?
SELECT name FROM lakes ORDER BY depth_m DESC LIMIT 1
Question: How many boats does each harbour have?
SELECT h.name, count(*) FROM harbours h JOIN boats b ON b.harbour_id = h.id GROUP BY h.name
Question: harbours without a boat
SELECT name FROM harbours WHERE id NOT IN (SELECT harbour_id FROM boats WHERE harbour_id IS NOT NULL)
Question: What share of the boats is made of wood?
SELECT count(*) FILTER (WHERE hull = 'wood') / count(*) FROM boats
Question: Which harbours have more than two boats built before 1990?
SELECT h.name FROM harbours h JOIN boats b ON b.harbour_id = h.id WHERE b.built < 1990 GROUP BY h.name HAVING count(*) > 2"""
SYSTEM = f"{_TASK} {_ALONE}"
SYSTEM_WITH_EXAMPLES = (
    f"{_TASK} Join only tables whose columns are needed. {_ALONE}\n\nExamples, over other tables:\n{EXAMPLES}"
)
PLOTTED = "The plot is drawn from the rows: return first the column of its x axis, then that of its y axis."
REPLY_TOKENS = 300
CELL = 60  # characters of an example value
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_NUMBER = re.compile(r"-?\d+(\.\d+)?\Z")
_FENCE = re.compile(r"```(?:\w+\n)?(.*?)(?:```|\Z)", re.DOTALL)


def wording(
    question: str,
    schema: str,
    *,
    examples: bool = True,
    rules: Sequence[str] = (),
    plot: bool = False,
    why: str = "",
    temperature: float = 0.0,
    seed: int = 0,
    failure: tuple[str, str] | None = None,
) -> Wording:
    """The request for one candidate.

    Args:
        schema: of `create_tables`.
        examples: is it shown worked examples? They are of plain columns: where texts must be read they lead astray.
        plot: the rows are drawn.
        why: what went wrong before; "" at first.
        temperature, seed: of the model's sampling; 0: the most probable statement.
        failure: a statement and what DuckDB says of it: the request is for a statement that works.
    """
    user = f"{schema}\n\n{rules_text(rules)}Question: {question}"
    user += f"\n\n{PLOTTED}" if plot else ""
    user += f"\n\n{why}" if why else ""
    if failure is not None:
        statement, error = failure
        user += f"\n\nThis statement failed:\n{statement}\n{error}\nWrite a statement that works."
    system = SYSTEM_WITH_EXAMPLES if examples else SYSTEM
    return Wording(TASK, VERSION, system, user, max_tokens=REPLY_TOKENS, temperature=temperature, seed=seed)


def statement_of(reply: str) -> str:
    """The statement of a reply, without a code fence and what follows its semicolon.

    >>> statement_of("Here it is:\\n```sql\\nSELECT 1;\\n```"), statement_of("SELECT ';' AS a; done")
    ('SELECT 1', "SELECT ';' AS a")
    """
    fence = _FENCE.search(reply)
    text = (fence[1] if fence else reply).strip()
    quoted = False
    for n, letter in enumerate(text):
        quoted ^= letter == "'"
        if letter == ";" and not quoted:
            return text[:n].strip()
    return text


def create_tables(scope: Scope, *, chars: int, modalities: bool = False, rows: bool = True) -> str:
    """The tables as CREATE TABLE text, each with two example rows; where that is longer than `chars`, without the rows.

    Args:
        modalities: a text or an image has the type TEXT or IMAGE.
        rows: are there example rows at all?
    """
    sources = [source for _, source in sorted(scope.sources.items())]
    whole = "\n".join(_table(source, rows=rows, modalities=modalities) for source in sources)
    if len(whole) <= chars:
        return whole
    return "\n".join(_table(source, rows=False, modalities=modalities) for source in sources)[:chars]


def _table(source: Source, *, rows: bool, modalities: bool) -> str:
    def type_of(f: Field) -> str:
        return f.modality.value.upper() if modalities and f.is_unstructured else one_line(f.type) or "VARCHAR"

    columns = ",\n".join(f"  {_named(f.name)} {type_of(f)}{_comment(f)}" for f in source.visible_fields)
    text = f"CREATE TABLE {_named(source.name)} (\n{columns}\n);"
    if not rows or not source.rows:
        return text
    return f"{text}\n-- rows of {source.name}: {', '.join(_row(source, row) for row in source.rows)}"


def _comment(f: Field) -> str:
    return f" /* {short(f.description.replace('*/', '* /'))} */" if f.description else ""


def _row(source: Source, row: Mapping[str, str | None]) -> str:
    types = {f.name: f.type for f in source.visible_fields}
    return f"({', '.join(_value(value, types[name]) for name, value in row.items() if name in types)})"


def _value(value: str | None, kind: str) -> str:
    if value is None:
        return "NULL"
    if kind != "VARCHAR" and (_NUMBER.match(value) or value in ("true", "false")):
        return value
    cut = value if len(value) <= CELL else value[: CELL - 1] + "…"
    return "'" + one_line(cut).replace("'", "''") + "'"


def _named(name: str) -> str:
    return name if _PLAIN.match(name) else '"' + one_line(name).replace('"', '""') + '"'
