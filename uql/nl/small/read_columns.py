"""Columns that a statement of SQL adds to a table, and that a model reads from a text or an image of its rows.

    ALTER TABLE letters ADD COLUMN late BOOLEAN AS read(letter, 'the letter complains about a late delivery');

says the model first, and then it writes a statement over tables that have the column: SELECT count(*) FROM letters WHERE late. That becomes
UQL, with the quoted text in place of the column. To vote it is run with made-up values (`trial`): nothing is read before a plan is chosen.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

import sqlglot
from sqlglot import exp

from uql.base.errors import QuestionError
from uql.base.schema import Field
from uql.compiler.unparse import quote_name
from uql.nl.prompts.read_columns import NOTHING
from uql.nl.schema.discover import words_of
from uql.nl.schema.name_words import spaced
from uql.nl.schema.scope import Scope

Type = Literal["BOOLEAN", "INTEGER", "DOUBLE", "VARCHAR"]
FORM = "ALTER TABLE t ADD COLUMN c BOOLEAN AS read(text_column, 'what is read');"
_NAME = r'(?:"[^"\n]+"|[A-Za-z_]\w*)'
_ADDED = re.compile(
    rf"ALTER\s+TABLE\s+({_NAME})\s+ADD\s+(?:COLUMN\s+)?({_NAME})\s+({'|'.join(get_args(Type))})\s+AS\s*\(?\s*"
    rf"read\(\s*({_NAME}(?:\.{_NAME})?)\s*,\s*'((?:[^']|'')*)'\s*\)\s*\)?\s*;?",
    re.IGNORECASE,
)
COPIED = 16  # characters of an example row's text that are no chance
_HOLE = re.compile(r"\{([^{}]*)\}")
_PLACE = "read_place_"
_CONDITIONS = (exp.Where, exp.And, exp.Or, exp.Not, exp.Having, exp.Paren, exp.If)
Value = Callable[["Use"], "exp.Expr"]


@dataclass(frozen=True, slots=True)
class ReadColumn:
    """One column that is read.

    Attributes:
        table, name, type: of the column.
        source, field: the table and the column that it is read from.
        words: what is read; {name} stands for a plain column of the row.
    """

    table: str
    name: str
    type: Type
    source: str
    field: Field
    words: str


@dataclass(frozen=True, slots=True)
class Use:
    """A place in a statement where a column that is read stands.

    Attributes:
        column: which.
        n: its number in the reply.
        text: the column it is read from, as SQL names it there.
        holes: the plain columns of its words, as SQL names them there.
        is_condition: it stands as a condition.
        literals: that it is compared with anywhere in the statement.
    """

    column: ReadColumn
    n: int
    text: str
    holes: tuple[str, ...]
    is_condition: bool
    literals: tuple[exp.Literal, ...]


def columns_of(reply: str, scope: Scope, question: str = "") -> tuple[ReadColumn, ...]:
    """The columns that a reply adds; none: it says that nothing is read.

    Args:
        question: tells which of two linked tables is meant whose rows the words name.
    Raises: QuestionError (UQL631) for one that is read from no text or image, or that is there.
    """
    rest = _ADDED.sub("", reply).strip().strip("`.").strip().lower()
    if rest not in ("", NOTHING, "sql"):
        raise _wrong(f"{rest[:80]!r} is not of the form", f"{FORM} or {NOTHING}")
    return tuple(_column(match, scope, question) for match in _ADDED.finditer(reply))


def with_columns(scope: Scope, columns: Sequence[ReadColumn]) -> Scope:
    """The scope with the columns that are read, as columns of their tables."""
    sources = dict(scope.sources)
    for column in columns:
        comment = f"read from {column.field.name}: {column.words}"
        source = sources[column.table]
        sources[column.table] = replace(
            source, fields=(*source.fields, Field(column.name, column.type, description=comment))
        )
    return replace(scope, sources=sources)


def grammar(scope: Scope) -> str:
    """The rules of llama.cpp (GBNF) for the columns that a reply adds, of the tables of a text or an image, or linked with them;
    or it says that nothing is read.

    Source: constrained decoding (Geng et al., grammar-constrained decoding, 2023).
    """
    heads = []
    for name, source in scope.sources.items():
        for f in source.visible_fields:
            if f.is_unstructured:
                heads += [(name, named(f.name)), *((other, named(name, f.name)) for other in scope.linked(name))]
    adds = [
        f"{_literal(f'ALTER TABLE {named(t)} ADD COLUMN ')} column {_literal(f' AS read({f}, ')} words"
        for t, f in heads
    ]
    rules = [
        f'root ::= {_literal(NOTHING)} | add ("\\n" add)?',
        f"add ::= {' | '.join(adds)}",
        f'column ::= [a-z] [a-z0-9_]{{1,30}} " " ({" | ".join(map(_literal, get_args(Type)))})',
        'words ::= "\'" [A-Za-z0-9 ,.{}_-]{3,120} "\');"',
    ]
    return "\n".join(rules) + "\n"


def _literal(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def as_uql(sql: str, columns: Sequence[ReadColumn], scope: Scope) -> str:
    """The statement as UQL: a quoted text where a column is read.

    Args:
        sql: one SELECT over tables that have the columns.
        scope: of the tables without them.
    Raises: QuestionError (UQL631) where no column links the table of a column and that of its text.
    """
    texts: list[str] = []

    def place(use: Use) -> exp.Expr:
        texts.append(_quoted(use))
        return exp.column(f"{_PLACE}{len(texts) - 1}_")

    tree = sqlglot.parse_one(sql, read="duckdb")
    for item in tree.expressions if isinstance(tree, exp.Select) else ():
        # count(late) is called as it was written
        if not isinstance(item, exp.Alias | exp.Column) and any(_places(item, columns)):
            item.replace(exp.alias_(item.copy(), item.sql(dialect="duckdb").lower(), quoted=True))
    text = _filled(tree, columns, scope, place).sql(dialect="duckdb")
    return re.sub(rf"{_PLACE}(\d+)_", lambda found: texts[int(found[1])], text)


def trial(sql: str, columns: Sequence[ReadColumn], scope: Scope) -> str:
    """The statement with a made-up value wherever a column is read, which follows from the text or image of the row.

    Equal questions get equal values, in whatever words they ask: half of all texts say yes, or hold the first value that the statement
    compares with.

    Args:
        sql, columns, scope: as of `as_uql`.
    Raises: QuestionError (UQL631) as `as_uql`.
    """
    return _filled(sqlglot.parse_one(sql, read="duckdb"), columns, scope, _made_up).sql(dialect="duckdb")


def used(sql: str, columns: Sequence[ReadColumn]) -> bool:
    """Does the statement name one of the columns?"""
    return any(True for _ in _places(sqlglot.parse_one(sql, read="duckdb"), columns))


# ------------------------------------------------------------------------------------------------------------- the columns
def _column(match: re.Match[str], scope: Scope, question: str) -> ReadColumn:
    table = _table(_bare(match[1]), scope)
    name, kind = _bare(match[2]), match[3].upper()
    source, _, column = match[4].rpartition(".")
    source = _table(_bare(source), scope) if source else table
    field = field_of(source, _bare(column), scope)
    if field is None and not match[4].count("."):  # a text of a table that is linked
        others = [(s, f) for s in scope.sources for f in [field_of(s, _bare(column), scope)] if f and f.is_unstructured]
        if len(others) == 1:
            source, field = others[0]
    if field is None:
        raise _wrong(f"no column {source}.{_bare(column)}", f"columns that are read: {', '.join(_texts(scope))}")
    if not field.is_unstructured:
        raise _wrong(f"{source}.{field.name} is a plain column: it is not read", f"use {source}.{field.name} in SELECT")
    if field_of(table, name, scope) is not None:
        raise _wrong(f"{table} has a column {name}: it is not added", f"use {table}.{name}, or another name")
    words = " ".join(match[5].replace("''", "'").replace(f"{{{name}}}", " ").split())
    shown = [" ".join(str(row.get(field.name)).split()) for row in scope.sources[source].rows]
    if len(words) >= COPIED and any(words.rstrip(".") in text for text in shown):
        raise _wrong(f"{words[:60]!r} is copied from an example row", "say what the question asks of each row")
    holes = _HOLE.findall(words)
    for hole in holes:
        table = _table_of(hole, table, source, scope, f"{question} {words}")
    if not holes and table == source:
        table, words = _of_whom(words, source, scope)
    return ReadColumn(table, name, kind, source, field, words)  # type: ignore[arg-type]


def _texts(scope: Scope) -> list[str]:
    """The texts and images, as SQL names them."""
    return [named(name, f.name) for name, s in scope.sources.items() for f in s.visible_fields if f.is_unstructured]


def _table_of(hole: str, table: str, source: str, scope: Scope, said: str) -> str:
    """The table of a column whose words name a plain column of its row: this one, else the one that points to the text and has it.

    Of several that have it, the one of whose name `said` has a word. Raises QuestionError (UQL631).
    """
    at, _, name = hole.strip().rpartition(".")
    tables = [t for t in scope.sources if not at or t.lower() == _bare(at).lower()]
    having = [t for t in tables if (f := field_of(t, _bare(name), scope)) is not None and not f.is_unstructured]
    if table in having or (at and having):
        return table
    linked = [t for t in having if any({t, source} == {x.left.table, x.right.table} for x in scope.links)]
    pointing = [t for t in linked if any((t, source) == (x.left.table, x.right.table) for x in scope.links)]
    alike = [len(words_of(spaced(t)) & words_of(said)) for t in pointing]
    if alike and alike.count(max(alike)) == 1:
        return pointing[alike.index(max(alike))]
    raise _wrong(
        f"{table} has no plain column {hole.strip()} for {{{hole}}}",
        f"add the column to {linked[0]}: ALTER TABLE {linked[0]} ADD COLUMN …" if linked else "write it without {…}",
    )


def _of_whom(words: str, source: str, scope: Scope) -> tuple[str, str]:
    """What is read of one of several subjects of a text: the table that links the text with its subjects, and the words with {name}.

    So it is where the words say one that stands in the question ("points of Ann Lee") or the kind of them ("the player scored").
    """
    found: dict[str, str] = {}
    for link in scope.links:
        subject, key = link.left.table, link.left.name
        if not any(x.left.table == subject and x.left.name != key and x.right.table == source for x in scope.links):
            continue  # it does not link texts with subjects
        names = {value for t in (subject, link.right.table) for _, value in scope.sources[t].matches}
        kinds = words_of(spaced(link.right.table))
        said = [
            *map(re.escape, names),
            *(rf"(?:the|a|an|any|some|each|every|one) {kind}\w{{0,3}}" for kind in kinds if len(kind) > 3),
        ]
        for one in said:
            pattern = re.compile(rf"\b{one}\b", re.IGNORECASE)
            if pattern.search(words):
                found.setdefault(subject, pattern.sub(f"{{{key}}}", words, count=1))
    return next(iter(found.items())) if len(found) == 1 else (source, words)


def _table(name: str, scope: Scope) -> str:
    table_name = scope.named(name)
    if table_name is None:
        raise _wrong(f"no table {name}", f"tables: {', '.join(scope.sources)}")
    return table_name


def field_of(table: str, name: str, scope: Scope) -> Field | None:
    """A column that a model may see; None: the table has none of the name.

    Args:
        table: its name, as the scope has it.
        name: of the column, in whatever case.
        scope: the tables.
    """
    return next((f for f in scope.sources[table].visible_fields if f.name.lower() == name.lower()), None)


# -------------------------------------------------------------------------------------------------------------- the places
def _filled(tree: exp.Expr, columns: Sequence[ReadColumn], scope: Scope, value: Value) -> exp.Expr:
    """The statement with a value in place of each column that is read, and the tables joined that hold its text."""
    places = list(_places(tree, columns))
    literals = {column: tuple(_compared(tree, [node for node, _, _, c in places if c is column])) for column in columns}
    for node, select, alias, column in places:
        if column.type == "BOOLEAN":
            _compare_as_boolean(node)
        text = named(_text_alias(select, alias, column, scope), column.field.name)
        holes = tuple(_hole(hole, select, alias, column, scope) for hole in _HOLE.findall(column.words))
        replacement = value(Use(column, columns.index(column), text, holes, is_condition(node), literals[column]))
        node.replace(
            exp.alias_(replacement, column.name)
            if node.parent is select and node.arg_key == "expressions"
            else replacement
        )
    return tree


def _places(tree: exp.Expr, columns: Sequence[ReadColumn]) -> Iterator[tuple[exp.Column, exp.Select, str, ReadColumn]]:
    """The columns of a tree that are read: the node, its SELECT, how that calls the table, and which."""
    for node in list(tree.find_all(exp.Column)):
        around = node.find_ancestor(exp.Select)
        if around is not None and _is_alias(node, around):
            continue
        while around is not None:
            place = next(
                (
                    (node, around, alias, column)
                    for alias, table in tables_of(around).items()
                    for column in columns
                    if (column.table.lower(), column.name.lower()) == (table, node.name.lower())
                    and node.table.lower() in ("", alias.lower())
                ),
                None,
            )
            if place is not None:
                yield place
                break
            around = around.find_ancestor(exp.Select)


def _is_alias(node: exp.Column, select: exp.Select) -> bool:
    """In ORDER BY a name of an item of SELECT means that."""
    if node.table or node.find_ancestor(exp.Order, exp.Select) is select:
        return False
    return any(isinstance(item, exp.Alias) and item.alias.lower() == node.name.lower() for item in select.expressions)


def tables_of(select: exp.Select) -> dict[str, str]:
    """The tables of FROM by their names there; in lower case."""
    start = select.args.get("from_") or select.args.get("from")
    sources = [start.this if start is not None else None, *(join.this for join in select.args.get("joins") or ())]
    return {table.alias_or_name: table.name.lower() for table in sources if isinstance(table, exp.Table)}


def _text_alias(select: exp.Select, alias: str, column: ReadColumn, scope: Scope) -> str:
    """How the SELECT calls the table of the text; it is joined where it is not there."""
    if column.source == column.table:
        return alias
    tables = tables_of(select)
    there = next((name for name, table in tables.items() if table == column.source.lower()), None)
    if there is not None:
        return there
    link = next((x for x in scope.links if {x.left.table, x.right.table} == {column.table, column.source}), None)
    if link is None:
        raise _wrong(
            f"no column links {column.table} and {column.source}",
            f"add the column to {column.source}: {FORM}",
        )
    mine, theirs = (link.left, link.right) if link.left.table == column.table else (link.right, link.left)
    _qualify(select, tables, scope)
    on = exp.EQ(this=_sql_column(alias, mine.name), expression=_sql_column(column.source, theirs.name))
    select.join(exp.to_table(named(column.source)), on=on, copy=False)
    return column.source


def _qualify(select: exp.Select, tables: Mapping[str, str], scope: Scope) -> None:
    """Names the table of each column of a SELECT, so that a further table makes none ambiguous."""
    for node in list(select.find_all(exp.Column)):
        if not node.table and node.find_ancestor(exp.Select) is select and not _is_alias(node, select):
            for alias, table in tables.items():
                name = scope.named(table)
                if name is not None and field_of(name, node.name, scope) is not None:
                    node.set("table", exp.to_identifier(alias))
                    break


def _hole(hole: str, select: exp.Select, alias: str, column: ReadColumn, scope: Scope) -> str:
    """The plain column of {…}, as SQL names it there."""
    table, _, name = hole.strip().rpartition(".")
    tables = tables_of(select)
    if table:
        qualifier = _bare(table).lower()
        aliases = [
            candidate for candidate, table_name in tables.items() if qualifier in (candidate.lower(), table_name)
        ]
    else:
        aliases = [alias, *(candidate for candidate in tables if candidate != alias)]
    for candidate in aliases:
        source = scope.named(tables[candidate])
        field = field_of(source, _bare(name), scope) if source is not None else None
        if field is not None and not field.is_unstructured:
            return named(candidate, field.name)
    raise _wrong(f"{{{hole}}} is not a plain column of the tables in FROM", f"join its table, or {{{column.table}.…}}")


def _compared(tree: exp.Expr, nodes: Sequence[exp.Column]) -> Iterator[exp.Literal]:
    """The literals that some places are compared with."""
    texts = set()
    for node in nodes:
        parent = node.parent
        while isinstance(parent, exp.Lower | exp.Upper | exp.Cast | exp.Paren):
            parent = parent.parent
        if isinstance(parent, exp.Binary | exp.In | exp.Between):
            for literal in parent.find_all(exp.Literal):
                if literal.sql() not in texts:
                    texts.add(literal.sql())
                    yield literal.copy()


def _compare_as_boolean(node: exp.Column) -> None:
    """1 and 0 beside a column BOOLEAN are true and false. Raises QuestionError (UQL631) for another number."""
    comparison = node.parent
    if not isinstance(comparison, exp.Predicate):
        return
    if isinstance(comparison, exp.GT | exp.GTE | exp.LT | exp.LTE):
        raise _wrong(
            f"{node.sql()} is true or false and no number", f"write it alone as a condition, or count_if({node.sql()})"
        )
    for number in [n for n in comparison.iter_expressions() if isinstance(n, exp.Literal) and not n.is_string]:
        if not isinstance(comparison, exp.EQ) or number.name not in ("0", "1"):
            raise _wrong(f"{node.sql()} is true or false and no number", "write it alone as a condition")
        number.replace(exp.Boolean(this=number.name == "1"))


def is_condition(node: exp.Column) -> bool:
    """Does a column stand where a condition stands?"""
    parent = node.parent
    if isinstance(parent, exp.If | exp.Filter):
        return parent.this is node or node.arg_key == "expression"
    return isinstance(parent, _CONDITIONS)


# -------------------------------------------------------------------------------------------------------------- the values
def _quoted(use: Use) -> str:
    """The quoted text of UQL, of the type of the column; a condition stays one."""
    words = use.column.words.replace("\\", "").replace('"', "’")
    if use.holes:
        holes = iter(use.holes)
        words = _HOLE.sub(lambda _: "{" + next(holes) + "}", words)
        text = f'PROMPT "{words}, according to {{{use.text}}}"'
    else:
        text = f'PROMPT "{words}" USING ({use.text})'
    return text if use.is_condition and use.column.type == "BOOLEAN" else f"CAST({text} AS {use.column.type})"


def _made_up(use: Use) -> exp.Expr:
    hash_sql = f"hash({', '.join((use.text, *use.holes, str(use.n)))})"
    texts = [literal.name.strip("%").replace("'", "''") for literal in use.literals if literal.is_string]
    numbers = [literal.name for literal in use.literals if not literal.is_string]
    match use.column.type:
        case "BOOLEAN":
            value = f"({hash_sql} % 2 = 0)"
        case "VARCHAR" if texts:
            others = ", ".join(f"'{text}'" for text in texts)
            value = (
                f"CASE WHEN {hash_sql} % 2 = 0 THEN list_extract([{others}], 1 + CAST({hash_sql} // 2 % {len(texts)} AS INTEGER)) "
                f"ELSE concat('other ', {hash_sql} // 2 % 3) END"
            )
        case "VARCHAR":
            value = f"concat('value ', {hash_sql} % 5)"
        case _ if numbers:
            value = f"({numbers[0]} + CAST({hash_sql} % 3 AS INTEGER) - 1)"
        case _:
            value = f"CAST({hash_sql} % 100 AS INTEGER)"
    return sqlglot.parse_one(value, read="duckdb")


def named(*parts: str) -> str:
    """A name as SQL and UQL write it, quoted where it must be."""
    return ".".join(map(quote_name, parts))


def _sql_column(table: str, name: str) -> exp.Column:
    return exp.column(exp.to_identifier(name), table=exp.to_identifier(table))


def _bare(name: str) -> str:
    return name.strip('"')


def _wrong(message: str, help: str) -> QuestionError:
    return QuestionError(message, code="UQL631", help=help)
