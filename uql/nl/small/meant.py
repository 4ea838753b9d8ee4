"""A statement as it is meant, where a small model writes SQL of another dialect or takes for a plain column what must be read.

Small models name a column that no table has (`mood`), compare a text by its letters (`letter LIKE '%late%'`), count a condition
(`count(late)`), write a string in double quotes and a day where a time stands. A statement that is meant in one way only is put right
before it is tried, and the first two become columns that are read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from uql.base.errors import QuestionError
from uql.base.schema import Field
from uql.nl.schema.discover import words_of
from uql.nl.schema.name_words import Near, singular, spaced
from uql.nl.schema.scope import Column, Scope
from uql.nl.small.foreign_words import NEAR
from uql.nl.small.read_columns import ReadColumn, Type, field_of, is_condition, tables_of

_DAY = re.compile(r"\d{4}-\d{2}-\d{2}\Z")
_TIME = re.compile(r"\d{4}-\d{2}-(\d{2})(?:[ T](\d{2}):\d{2}.*)?\Z")
_LETTERS = re.compile(r"""\b(contain\w*|words?|phrases?|(start|begin|end)(s|ning|ing)? (with|in))\b|["“‘]""", re.I)
_MADE = frozenset(("rowid", "user", "current_user", "session_user"))  # names that are no columns, and that DuckDB knows
_COMPARED = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.In, exp.Between, exp.Like, exp.ILike)
_AGAIN = (exp.Between, exp.EQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Like)
_NUMBERS = (exp.Sum, exp.Avg, exp.Median, exp.Add, exp.Sub, exp.Mul, exp.Div, exp.GT, exp.GTE, exp.LT, exp.LTE)


@dataclass(slots=True)
class _Meant:
    """One statement that is put right.

    Attributes:
        question: that it answers.
        near: similarities of a word and others.
        columns: that are read; those that the statement takes for granted are added.
    """

    question: str
    near: Near
    scope: Scope
    columns: list[ReadColumn]


def meant(
    sql: str, columns: Sequence[ReadColumn], scope: Scope, question: str, near: Near, *, reads: bool
) -> tuple[str, tuple[ReadColumn, ...]]:
    """The statement put right, and the columns that are read with those that it takes for granted.

    Args:
        sql: as the model wrote it; what cannot be parsed stays as it is.
        columns: that are read already, whatever the statement.
        scope: of the tables without them.
        question: that the statement answers.
        near: similarities of a word of the question and others.
        reads: may texts and images be read?
    Raises: QuestionError (UQL631) where it compares with a value of an example row of which the question says nothing.
    """
    try:
        tree = sqlglot.parse_one(sql, read="duckdb")
    except (SqlglotError, RecursionError):
        return sql, tuple(columns)
    state = _Meant(question, near, scope, list(columns))
    changed = [_strings(tree, state), _days(tree, state), _values(tree, state)]
    _copied(tree, state)
    if reads:
        changed += [
            _invented(tree, state),
            _by_letters(tree, state),
            _compared_again(tree, state),
            _counted(tree, state),
        ]
    changed.append(_any_case(tree))
    _joined(tree, state)
    return (tree.sql(dialect="duckdb") if any(changed) else sql), tuple(state.columns)


# ------------------------------------------------------------------------------------------------------- another dialect
def _strings(tree: exp.Expr, state: _Meant) -> bool:
    """A name in double quotes that nothing has is a string, as in SQLite."""
    found = [node for node in _unknown(tree, state) if node.this.quoted and not node.table]
    for node in found:
        node.replace(exp.Literal.string(node.name))
    return bool(found)


def _days(tree: exp.Expr, state: _Meant) -> bool:
    """A time that is compared with a day for equality is on that day."""
    changed = False
    for node in list(tree.find_all(exp.EQ, exp.NEQ)):
        for time, day in ((node.this, node.expression), (node.expression, node.this)):
            of = _base(time, state) if isinstance(time, exp.Column) else None
            if (
                of is not None
                and of[1].type.startswith("TIMESTAMP")
                and isinstance(day, exp.Literal)
                and _DAY.match(day.name)
            ):
                time.replace(exp.cast(time.copy(), "DATE"))
                changed = True
    for node in list(tree.find_all(exp.Like)):
        of = _base(node.this, state) if isinstance(node.this, exp.Column) else None
        if of is not None and of[1].type.startswith(("TIMESTAMP", "DATE")):
            node.this.replace(exp.cast(node.this.copy(), "VARCHAR"))
            changed = True
    return changed


def _any_case(tree: exp.Expr) -> bool:
    """LIKE compares letters in whatever case, as in SQLite."""
    found = list(tree.find_all(exp.Like))
    for node in found:
        node.replace(exp.ILike(this=node.this, expression=node.expression))
    return bool(found)


# -------------------------------------------------------------------------------------------------------------- its joins
def _joined(tree: exp.Expr, state: _Meant) -> None:
    """Raises QuestionError (UQL631) where a column that points to a key is compared with a column of another table that is not that key."""
    for one, other in _compared_columns(tree):
        mine, theirs = _base(one, state), _base(other, state)
        if mine is None or theirs is None or mine[0] == theirs[0]:
            continue
        pair = [Column(table, field.name) for table, field in (mine, theirs)]
        if pair[1] in _same_key(pair[0], state.scope):
            continue
        for column in pair:
            for link in state.scope.links:
                if link.left == column and link.right not in pair:
                    raise QuestionError(
                        f"{column} points to {link.right}, not to {pair[column == pair[0]]}",
                        code="UQL631",
                        help=f"join {link.left.table} and {link.right.table} by {link}",
                    )


def _compared_columns(tree: exp.Expr) -> Iterator[tuple[exp.Column, exp.Column]]:
    """The columns that a statement compares for equality: by =, IN, EXCEPT and INTERSECT."""
    pairs: list[tuple[exp.Expr, exp.Expr]] = [(node.this, node.expression) for node in tree.find_all(exp.EQ)]
    for node in tree.find_all(exp.In):
        if isinstance(query := node.args.get("query"), exp.Query):
            pairs += [(node.this, item) for item in query.selects[:1]]
    for both in tree.find_all(exp.Except, exp.Intersect):
        pairs += zip(both.left.selects, both.right.selects, strict=False)
    for one, other in pairs:
        if isinstance(one, exp.Column) and isinstance(other, exp.Column):
            yield one, other


def _same_key(column: Column, scope: Scope) -> set[Column]:
    """The columns that links join with this one, directly or by others."""
    found, size = {column}, 0
    while size < len(found):
        size = len(found)
        for link in scope.links:
            if link.left in found or link.right in found:
                found |= {link.left, link.right}
    return found


# ------------------------------------------------------------------------------------------------------------- its values
def _values(tree: exp.Expr, state: _Meant) -> bool:
    """A value of the question, as the column has it; or another column of the table, or of the one that a key points to."""
    changed = False
    for node in list(tree.find_all(exp.EQ, exp.NEQ)):
        of = _base(node.this, state) if isinstance(node.this, exp.Column) else None
        value = node.expression.name if node.expression.is_string else ""
        if of is None or not value:
            continue
        table, key = of[0], of[1].name
        here = _having(table, value, state.scope)
        if here.get(key) == value:
            continue
        if key in here or len(here) == 1:
            column = key if key in here else next(iter(here))
            node.this.set("this", exp.to_identifier(column, quoted=True))
            node.expression.replace(exp.Literal.string(here[column]))
            changed = True
        for link in state.scope.links if not here else ():
            there = _having(link.right.table, value, state.scope)
            if (link.left.table, link.left.name) == (table, key) and len(there) == 1:
                [(column, said)] = there.items()
                name = exp.column(exp.to_identifier(column, quoted=True))
                rows = exp.select(exp.column(exp.to_identifier(link.right.name, quoted=True)))
                rows = rows.from_(exp.to_identifier(link.right.table, quoted=True))
                rows = rows.where(exp.EQ(this=name, expression=exp.Literal.string(said)))
                keys = exp.In(this=node.this.copy(), query=exp.Subquery(this=rows))
                node.replace(keys if isinstance(node, exp.EQ) else exp.Not(this=keys))
                changed = True
                break
    return changed


def _having(table: str, value: str, scope: Scope) -> dict[str, str]:
    """The columns of a table that have a value of the question, in whatever case and number, each with it as it is there."""

    def rank(said: str) -> int:
        alike = (
            said == value,
            said.lower() == value.lower(),
            bool(words_of(value)) and words_of(said) == words_of(value),
        )
        return alike.index(True) if any(alike) else len(alike)

    found = [
        (rank(said), column, said) for column, said in scope.sources[table].matches if field_of(table, column, scope)
    ]
    return {column: said for at, column, said in sorted(found, reverse=True) if at < 3}  # the nearest last


def _copied(tree: exp.Expr, state: _Meant) -> None:
    """Raises QuestionError (UQL631) for a value of an example row that the question does not speak of."""
    for node in tree.find_all(exp.EQ, exp.In):
        of = _base(node.this, state) if isinstance(node.this, exp.Column) else None
        if of is None:
            continue
        shown = {str(row.get(of[1].name) or "").lower() for row in state.scope.sources[of[0]].rows}
        for literal in [node.expression] if isinstance(node, exp.EQ) else node.expressions:
            if (
                isinstance(literal, exp.Literal)
                and literal.is_string
                and literal.name.lower() in shown
                and not _is_said(literal.name, state)
            ):
                raise QuestionError(
                    f"{literal.sql()} is of an example row, the question does not say it",
                    code="UQL631",
                    help="compare with what the question says",
                )


def _is_said(value: str, state: _Meant) -> bool:
    """Does the question speak of a value: of one of its words or numbers, or of the day and hour of a time?"""
    numbers = {int(n) for n in re.findall(r"\d+", state.question)}
    time = _TIME.match(value)
    if time is not None:
        return int(time[1]) in numbers and (int(time[2] or 0) == 0 or int(time[2]) in numbers)
    words = re.findall(r"[A-Za-z]{3,}", value)
    if not words:
        mine = {int(n) for n in re.findall(r"\d+", value)}
        return not mine or bool(mine & numbers)
    asked = [word.lower() for word in re.findall(r"[A-Za-z]{3,}", state.question)]
    words = [word for word in words if words_of(word)]
    if not words or words_of(value) & words_of(state.question) or any(w.lower() in asked for w in words):
        return True
    return bool(asked) and max(max(state.near(word.lower(), asked)) for word in words) >= NEAR


# --------------------------------------------------------------------------------------------------------- what is read
def _invented(tree: exp.Expr, state: _Meant) -> bool:
    """A column that no table has is read from the text or image of its row. Is a name changed?"""
    changed = False
    for node in list(_unknown(tree, state)):
        held = next((c for c in state.columns if c.name.lower() == node.name.lower()), None)
        if held is not None:  # that is read, under the name of another table
            names = [alias for alias, table in _around(node).items() if table == held.table.lower()]
            if node.table and len(names) == 1:
                node.set("table", exp.to_identifier(names[0]))
                changed = True
            continue
        column = _read_as(node, tree, state)
        if column is not None:
            state.columns.append(column)
    return changed


def _read_as(node: exp.Column, tree: exp.Expr, state: _Meant) -> ReadColumn | None:
    """The column that a name stands for, where one text or image of its table, or of one that is linked, can be meant."""
    if any(field_of(table, node.name, state.scope) is not None for table in state.scope.sources):
        return None  # a plain column of another table
    around = _around(node)
    tables = [around[node.table.lower()]] if node.table.lower() in around else [*around.values()]
    named = [name for name in state.scope.sources if name.lower() in tables]
    texts = [(name, name, f) for name in named for f in _texts(name, state.scope)]
    if not texts:
        texts = [
            (name, other, f) for name in named for other in state.scope.linked(name) for f in _texts(other, state.scope)
        ]
    if len(texts) != 1:
        return None
    table, source, text = texts[0]
    kind = _type_of(node.name, tree)
    return ReadColumn(table, node.name.lower(), kind, source, text, _words(node.name, kind, source, state))


def _by_letters(tree: exp.Expr, state: _Meant) -> bool:
    """A text that is compared with LIKE is read, where the question does not speak of its words: is it about this?"""
    if _LETTERS.search(state.question):
        return False
    changed = False
    for node in list(tree.find_all(exp.Like, exp.ILike)):
        operand, pattern = node.this, node.expression
        while isinstance(operand, exp.Lower | exp.Upper | exp.Paren | exp.Cast):
            operand = operand.this
        of = _base(operand, state) if isinstance(operand, exp.Column) else None
        words = (
            " ".join(pattern.name.replace("%", " ").replace("_", " ").split())
            if isinstance(pattern, exp.Literal)
            else ""
        )
        if of is None or not of[1].is_unstructured or not words:
            continue
        column = _about(words, *of, state)
        node.replace(exp.column(column.name, table=operand.args.get("table")))
        changed = True
    return changed


def _about(words: str, table: str, text: Field, state: _Meant) -> ReadColumn:
    """The condition that a text is about some words: one that is read already and says so, or another."""
    said = words_of(words)
    of_text = [c for c in state.columns if c.type == "BOOLEAN" and (c.source, c.field.name) == (table, text.name)]
    held = next((c for c in of_text if said and said <= words_of(f"{c.words} {c.name}")), None)
    if held is not None and held.table == table:
        return held
    name = re.sub(r"\W+", "_", words.lower()).strip("_")[:40] or "about"
    column = ReadColumn(table, f"about_{name}", "BOOLEAN", table, text, f"the {_one(table)} is about {words}")
    state.columns.append(column)
    return column


def _compared_again(tree: exp.Expr, state: _Meant) -> bool:
    """A condition that is compared with what its words say ("built between 1950 and 1959" BETWEEN 1950 AND 1959) holds or does not."""
    changed = False
    for node in list(tree.find_all(*_AGAIN)):
        column = _read(node.this, state) if isinstance(node.this, exp.Column) else None
        compared = {word for one in node.find_all(exp.Literal) for word in re.findall(r"\w+", one.name.lower())}
        if column is None or column.type != "BOOLEAN" or not compared - {"0", "1"}:
            continue
        if compared <= {*re.findall(r"\w+", column.words.lower())}:
            node.replace(node.this.copy())
            changed = True
    return changed


def _read(node: exp.Column, state: _Meant) -> ReadColumn | None:
    """The column that is read of which this is the name."""
    around = _around(node)
    tables = {around[node.table.lower()]} if node.table.lower() in around else {*around.values()}
    return next((c for c in state.columns if c.name.lower() == node.name.lower() and c.table.lower() in tables), None)


def _counted(tree: exp.Expr, state: _Meant) -> bool:
    """count(late) counts the rows of which it holds."""
    changed = False
    for node in list(tree.find_all(exp.Count)):
        column = _read(node.this, state) if isinstance(node.this, exp.Column) else None
        if column is not None and column.type == "BOOLEAN":
            node.replace(exp.CountIf(this=node.this.copy()))
            changed = True
    return changed


# -------------------------------------------------------------------------------------------------------------- its words
def _type_of(name: str, tree: exp.Expr) -> Type:
    """The type of a column that no table has, by how the statement uses it."""
    kinds: set[Type] = set()
    for node in tree.find_all(exp.Column):
        if node.name.lower() != name.lower():
            continue
        parent = node.parent
        while isinstance(parent, exp.Paren | exp.Lower | exp.Upper):
            parent = parent.parent
        beside = [*parent.find_all(exp.Literal, exp.Boolean)] if isinstance(parent, _COMPARED) else []
        if any(isinstance(one, exp.Boolean) for one in beside) or isinstance(parent, exp.CountIf) or is_condition(node):
            kinds.add("BOOLEAN")
        elif any(one.is_string for one in beside):
            kinds.add("VARCHAR")
        elif beside or isinstance(parent, _NUMBERS):
            kinds.add("DOUBLE" if any("." in one.name for one in beside) else "INTEGER")
    return next((kind for kind in ("VARCHAR", "BOOLEAN", "DOUBLE", "INTEGER") if kind in kinds), "VARCHAR")


def _words(name: str, kind: Type, table: str, state: _Meant) -> str:
    """What is read for a name: as a column that the model asked for says it, else in plain words."""
    said = spaced(name).lower()
    for held in state.columns:
        alike = held.type == kind and held.source == table
        if alike and (own := spaced(held.name).lower()) in held.words.lower():
            return re.sub(re.escape(own), lambda _: said, held.words, count=1, flags=re.IGNORECASE)
    if kind != "BOOLEAN":
        return f"the {said}"
    if " " in said:
        return (
            f"the {_one(table)} {said}"
            if said.split()[0] in ("is", "has", "shows")
            else f"the {_one(table)} is about {said}"
        )
    return f"the {_one(table)} is {said}"


def _one(table: str) -> str:
    """What a row of a table is called."""
    return singular(spaced(table).lower())


# --------------------------------------------------------------------------------------------------------------- the names
def _unknown(tree: exp.Expr, state: _Meant) -> Iterator[exp.Column]:
    """The columns of a statement that are of no table, and no name that the statement or DuckDB makes."""
    made = {item.alias.lower() for item in tree.find_all(exp.Alias)} | _MADE
    for node in tree.find_all(exp.Column):
        around, name = _around(node), node.name.lower()
        if node.table:
            is_plain = around.get(node.table.lower()) in _names(state)
        else:
            is_plain = name not in made and name not in around and _reads_tables_alone(node, state)
        is_name = isinstance(node.parent, exp.Star | exp.Comprehension | exp.Anonymous) or isinstance(
            node.this, exp.Star
        )
        if is_plain and not is_name and _base(node, state) is None and _read(node, state) is None:
            yield node


def _reads_tables_alone(node: exp.Column, state: _Meant) -> bool:
    """Do the SELECTs around a node read nothing but tables, whose columns are known?"""
    select, found = node.find_ancestor(exp.Select), False
    while select is not None:
        start = select.args.get("from_") or select.args.get("from")
        laterals = select.args.get("laterals") or []
        sources = [
            start.this if start is not None else None,
            *(join.this for join in select.args.get("joins") or ()),
            *laterals,
        ]
        if not all(isinstance(one, exp.Table) and one.name.lower() in _names(state) for one in sources):
            return False
        select, found = select.find_ancestor(exp.Select), True
    return found


def _names(state: _Meant) -> set[str]:
    return {name.lower() for name in state.scope.sources}


def _base(node: exp.Column, state: _Meant) -> tuple[str, Field] | None:
    """The table and the column of it that a name means; None: none has it."""
    around = _around(node)
    for alias, table in around.items():
        if node.table.lower() in ("", alias):
            name = state.scope.named(table)
            found = field_of(name, node.name, state.scope) if name is not None else None
            if name is not None and found is not None:
                return name, found
    return None


def _around(node: exp.Expr) -> dict[str, str]:
    """The tables of the SELECT around a node, and of those around that: the lower-case name by the name in it."""
    found: dict[str, str] = {}
    select = node.find_ancestor(exp.Select)
    while select is not None:
        found = {**{alias.lower(): table for alias, table in tables_of(select).items()}, **found}
        select = select.find_ancestor(exp.Select)
    return found


def _texts(table: str, scope: Scope) -> list[Field]:
    return [f for f in scope.sources[table].visible_fields if f.is_unstructured]
