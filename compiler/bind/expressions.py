"""Expressions: names become columns, quoted texts become columns or uses of a virtual column, by the place they stand in."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeGuard

from uql.base.errors import BindError
from uql.base.names import suggestion
from uql.compiler import syntax as ast
from uql.compiler.bind import uses
from uql.compiler.bind.functions import LEAST_OR_MOST, ORDERED_BY, PASSED_ON, asked_of, counted
from uql.compiler.bind.reading import close_name, columns_read, misspelt, near_name
from uql.compiler.bind.scope import Scope
from uql.compiler.bind.stars import column_at
from uql.compiler.bind.statement import Statement
from uql.compiler.bind.types import MODEL_SCHEMAS, asked_instead
from uql.compiler.bind.uses import (
    ANY,
    CONDITION,
    NUMBER,
    PRINTED,
    TEXT,
    WORDS,
    Pending,
    Place,
    Use,
    Want,
    is_numeric,
)
from uql.compiler.bound import Bound, BoundSelect
from uql.compiler.sql import NOW, is_literal, type_sql
from uql.compiler.subqueries import is_semantic_query
from uql.compiler.syntax import Binary, Boolean, Call, Cast, Column, Expr, Name, Null, Quoted, ScalarQuery, Star, String
from uql.compiler.virtual import Virtual
from uql.compiler.walk import rewrite, walk
from uql.operators.statement_text import is_statement

MODALITIES = ("IMAGE", "AUDIO", "VIDEO", "DOCUMENT")
FEW_WORDS = 3  # of a label; a longer text on the right of = was perhaps meant for the model
_OF_NUMBERS = re.compile(r"\s*[-+.]?\d")  # a number, a date, a time
BITS = ("&", "|", "<<", ">>")
_HOLE = re.compile(r"(?<!\{)\{(\w+(?:\.\w+)*)\}(?!\})")
BOOLEANS = frozenset(("true", "false", "t", "f", "yes", "no", "y", "n", "1", "0"))  # strings that DuckDB casts
WHOLE = Want(Place.COMPARE, "BIGINT")
ORDERINGS = ("<", "<=", ">", ">=")


@dataclass(slots=True)
class Clause:
    """Where an expression stands: which level its texts are of, and which aliases it may name."""

    name: str
    group: bool = False  # texts in it are about a group
    before: bool = False  # WHERE, ON: before the groups are made
    term: bool = False  # it is a term of WHERE: rows for which it does not hold are gone
    group_aliases: bool = False  # names given in GROUP BY come before columns
    select_aliases: int | None = None  # how many SELECT items' aliases are visible; None: all

    def inside(self) -> Clause:
        """The same inside an aggregate's arguments: rows again."""
        return replace(self, group=False)


@dataclass(slots=True)
class Aliases:
    """The names that SELECT and GROUP BY give, lower case → what they stand for, unbound."""

    select: dict[str, tuple[int, Expr]] = field(default_factory=dict)
    group: dict[str, ast.GroupKey] = field(default_factory=dict)
    spelled: list[str] = field(default_factory=list)


class Expressions:
    """Binds the expressions of one query block, noting the uses of its texts."""

    def __init__(
        self, statement: Statement, scope: Scope, sub: Callable[[ast.Query, Scope], Bound], aggregated: bool = False
    ) -> None:
        self.statement, self.scope, self.sub, self.aggregated = statement, scope, sub, aggregated
        self.aliases = Aliases()
        self.uses: list[Use] = []
        self._expanding: list[str] = []
        self._named_at: list[Expr] = []  # where the names that are expanded stand
        self._items: list[str] = []  # names of the lambdas around, in lower case
        self.keys: list[tuple[Expr, Expr]] = []  # expressions of GROUP BY, as written and as bound

    # ------------------------------------------------------------------------------------------------------ dispatch
    def bind(self, expr: Expr, clause: Clause, want: Want = ANY) -> Expr:
        """The bound expression; texts that a model answers are `Pending` until the block is settled.

        Args:
            expr: as the parser gave it.
            clause: that it stands in.
            want: what its place asks of a text: a condition, a number, …
        Raises: BindError and UnknownColumnError, at the place in the text.
        """
        bound = self._bound(expr, clause, want)
        if want is CONDITION:
            self._check_condition(bound, expr)
        elif want.place is Place.COMPARE and uses.is_number_or_time(want.type):
            assert want.type is not None
            self.statement.type_by_name(self._open_texts(bound), want.type)
        elif _is_of_words(want) and isinstance(bound, Column):
            self.statement.type_by_name(self.statement.statements(self.scope.field_of(bound)), "VARCHAR")
        return bound

    def _open_texts(self, bound: Expr) -> tuple[str, ...]:
        return self.statement.open_texts(self.scope.field_of(bound)) if isinstance(bound, Column) else ()

    def _bound(self, expr: Expr, clause: Clause, want: Want) -> Expr:
        if clause.group:
            for unbound, key in self.keys:
                if unbound == expr:
                    return key
        certain = clause.term
        if clause.term and not (isinstance(expr, Binary) and expr.op == "AND"):
            clause = replace(clause, term=False)
        match expr:
            case Quoted():
                return self.quoted(expr, clause, want)
            case ast.SameThing():
                return self._same_thing(expr, clause)
            case Name():
                return self.name(expr, clause, want)
            case ast.Position():
                return column_at(expr, self.scope)
            case String():
                self._string(expr)
                if want is CONDITION and expr.value.lower() not in BOOLEANS:
                    raise self.error(
                        f"'{expr.value[:40]}' is a string, and a condition is wanted",
                        "UQL206",
                        expr,
                        help=f'a text for the model stands in double quotes: "{expr.value[:40]}"; as a parameter it is uql.sem("…")',
                    )
                return expr
            case ast.Number() | Null() | Boolean() | ast.TypedLiteral() | Column():
                return expr
            case ast.Unary(op="*"):
                raise self.error(
                    f"{self._written(expr)} cannot stand here",
                    "UQL212",
                    expr,
                    help="*COLUMNS(…) gives several arguments to a function, or items to a list, in SELECT: greatest(*COLUMNS('n.*'))",
                )
            case ast.Unary(op="NOT"):
                return replace(expr, operand=self.bind(expr.operand, clause, CONDITION))
            case ast.Unary():
                return replace(expr, operand=self.bind(expr.operand, clause, WHOLE if expr.op == "~" else NUMBER))
            case Binary(op="AND" | "OR"):
                left, right = self.bind(expr.left, clause, CONDITION), self.bind(expr.right, clause, CONDITION)
                return replace(expr, left=left, right=right)
            case Binary():
                return self._binary(expr, clause, certain)
            case ast.Like():
                escape = self.bind(expr.escape, clause, WORDS) if expr.escape is not None else None
                self._check_pattern(expr)
                pattern = self.bind(expr.pattern, clause, WORDS)
                return replace(expr, operand=self.bind(expr.operand, clause, TEXT), pattern=pattern, escape=escape)
            case ast.InList():
                for item in expr.items:
                    self._check_string(Binary("IN", expr.operand, item, span=expr.span))
                items = tuple(self.bind(item, clause) for item in expr.items)
                inner = self._against_one_of(items, certain and not expr.negated)
                return replace(expr, operand=self.bind(expr.operand, clause, inner), items=items)
            case ast.InQuery():
                return self._in_query(expr, clause, certain)
            case ast.Between():
                for bound in (expr.low, expr.high):
                    self._check_string(Binary("BETWEEN", expr.operand, bound))
                low, high = self.bind(expr.low, clause, NUMBER), self.bind(expr.high, clause, NUMBER)
                operand = self.bind(expr.operand, clause, self._against(low, ordering=True))
                for bound in (expr.low, expr.high):
                    self._check_compared(Binary("BETWEEN", expr.operand, bound), operand)
                return replace(expr, operand=operand, low=low, high=high)
            case ast.IsNull():
                return replace(expr, operand=self.bind(expr.operand, clause, uses.PRESENCE))
            case ast.IsDistinct():
                stated = all(map(_states, (expr.left, expr.right)))
                right = self.bind(expr.right, clause, CONDITION if stated else ANY)
                want = CONDITION if isinstance(right, Boolean) else self._against(right, ordering=False)
                return replace(expr, left=self.bind(expr.left, clause, want), right=right)
            case ast.Case():
                return self._case(expr, clause, want)
            case Cast():
                return self._cast(expr, clause)
            case ast.Try():
                return self._try(expr, clause, want)
            case Call(name="row" | "struct_pack") if (members := _members(expr, want)) is not None:
                return replace(expr, args=tuple(map(self.bind, expr.args, [clause] * len(expr.args), members)))
            case Call():
                return self._call(expr, clause, want)
            case ast.Exists():
                return replace(expr, query=_first_row(self.sub(expr.query, self.scope)))
            case ScalarQuery():
                value = self.sub(expr.query, self.scope)
                if len(value.query.items) != 1:
                    raise self.error("a sub-query as a value gives one column", "UQL211", expr)
                return replace(expr, query=value)
            case ast.ListExpr():
                item_type = uses.member_types(want.type or "").get("")
                free = item_type is None or want is uses.LIST
                of_items = self._among(expr.items, ANY) if free else _compared_with(item_type or "")
                return replace(expr, items=tuple(self.bind(item, clause, of_items) for item in expr.items))
            case ast.Quantified():
                return self._quantified(expr, clause)
            case ast.Subscript():
                places = [self.bind(p, clause) if p is not None else None for p in (expr.low, expr.high, expr.step)]
                member = not (expr.slice or expr.high or expr.step or isinstance(expr.low, String))
                # a slice is that of a text, too
                operand = self.bind(expr.operand, clause, uses.LIST if member else ANY)
                return replace(expr, operand=operand, low=places[0], high=places[1], step=places[2])
            case ast.Lambda():
                self._items += [name.lower() for name in expr.names]
                try:
                    return replace(expr, body=self.bind(expr.body, clause, WORDS))
                finally:
                    del self._items[len(self._items) - len(expr.names) :]
            case ast.Named():
                return replace(expr, value=self.bind(expr.value, clause, want))
            case Star():
                raise self.error("* may stand as a SELECT item and in COUNT(*)", "UQL212", expr)
        raise self.error(f"{type(expr).__name__} cannot stand here", "UQL212", expr)

    def _check_condition(self, bound: Expr, unbound: Expr) -> None:
        """A value that a model made is a condition only where it is BOOLEAN. Raises: BindError (UQL206).

        A text without a type under a name, as in a sub-query, becomes BOOLEAN: the statement is bound again.
        """
        type: str | None = None
        texts: tuple[str, ...] = ()
        match bound:
            case Pending():
                want = self.uses[bound.index].want
                type = want.type if want.place is Place.CAST else None
                if want.place is Place.CAST and want.labels:
                    type = "ENUM"
                texts = (self.uses[bound.index].text,)
            case Column():
                field = self.scope.field_of(bound)
                type, texts = (field.type, field.source_texts) if field is not None else (None, ())
            case ScalarQuery(query=Bound() as inner):
                type = inner.query.items[0].type
                texts = tuple(n.column.text for n in walk(inner.query.items[0].expr) if isinstance(n, Virtual))
            case Call(name=name) if name in PASSED_ON or name == "if":
                return  # each of its values was judged by itself
            case Call() | ast.Subscript() | Cast() | Binary(op="+" | "-" | "*" | "/" | "//" | "%" | "||" | "^"):
                texts = tuple(text for node in walk(bound) for text in self._texts_of(node))
                type = self.statement.types.of(self.blank(bound), self.scope) if texts else None
        if not texts or type is None or type.strip('"') in ("BOOLEAN", "NULL"):
            return
        if isinstance(bound, Column | ScalarQuery) and set(texts) & self.statement.open - self.statement.conditions:
            self.statement.needed |= set(texts)
            return
        unbound = self._named_at[0] if self._named_at else unbound
        text, name = texts[0][:40], self._written(unbound)
        raise self.error(
            f'{name} comes from "{text}" and is {type.split("(")[0]}: a condition is BOOLEAN',
            "UQL206",
            unbound,
            help=f'write "{text}"::BOOLEAN where it is asked, or compare it here, as in {name} = …',
        )

    def _texts_of(self, node: ast.Node) -> tuple[str, ...]:
        """The texts that the value of a name or a text comes from."""
        if isinstance(node, Pending):
            return (self.uses[node.index].text,)
        field = self.scope.field_of(node) if isinstance(node, Column) else None
        return field.source_texts if field is not None else ()

    def _written(self, expr: Expr) -> str:
        """An expression as the user wrote it, on one line."""
        text = self.statement.text[expr.span.start : expr.span.end] if expr.span.start >= 0 else ""
        return " ".join(text.split())[:40] or "this value"

    # --------------------------------------------------------------------------------------------- names and readings
    def quoted(self, quoted: Quoted, clause: Clause, want: Want) -> Expr:
        """The reading rule: a column or an alias in scope, a misspelt one (UQL101), else a text for the model.

        Args:
            quoted: the text in double quotes.
            clause: that it stands in.
            want: what its place asks of a text for the model.
        Raises: UnknownColumnError (UQL101) for a misspelt column, BindError (UQL212) for an empty text.
        """
        mode = self.statement.settings.quoted
        if not quoted.forced and not quoted.using:
            meaning = self._named((quoted.text,), quoted, clause, want)
            if meaning is not None:
                self.statement.read(quoted.span, quoted.text, "column", _described(meaning, quoted.text))
                return meaning
            if mode == "strict":
                error = self.scope.unknown((quoted.text,), quoted.span, self.aliases.spelled)
                error.help = f'{error.help}; PROMPT "{quoted.text[:40]}" asks the model (uql.quoted = strict)'
                raise error
            if mode == "guard":
                low = quoted.text.lower()
                item = self.aliases.select.get(low)
                # "the mood" AS "the mood", and what names that alias
                own = low in self._expanding or (item is not None and item[0] == clause.select_aliases)
                aliases = [name for name in self.aliases.spelled if not own or name.lower() != low]
                near = near_name(quoted.text, [*self.scope.names(), *aliases])
                if near is not None:
                    raise misspelt(quoted, near)
                close = close_name(quoted.text, [*self.scope.names(), *aliases])
                if close is not None:
                    self.statement.warn(
                        f'UQL102: "{quoted.text}" is a text for the model, and close to the column {close}; PROMPT "{quoted.text}" '
                        "asks without this warning"
                    )
        if not quoted.text.strip():
            raise self.error("an empty text asks nothing", "UQL212", quoted)
        reads, holes, named = columns_read(quoted, self.scope)
        self.uses.append(Use(quoted.text, reads, holes, named, want, clause.group, clause.before, span=quoted.span))
        self.statement.semantic = True
        return Pending(index=len(self.uses) - 1, span=quoted.span)

    def _same_thing(self, key: ast.SameThing, clause: Clause) -> Expr:
        """The key of DISTINCT ON "…": a column of this name, or a text about two rows."""
        bound = self.quoted(key.text, clause, uses.SAME)
        if not isinstance(bound, Pending):
            return bound
        text = f'"{key.text.text[:40]}"'
        if not key.only_key:
            raise self.error(
                f"DISTINCT ON takes a text alone: {text} says of two rows whether they are one thing",
                "UQL212",
                key.text,
                help=f"write DISTINCT ON {text} without the other keys, or {text}::VARCHAR for the text's value in each row",
            )
        if clause.group:
            raise self.error(
                f"DISTINCT ON {text} compares rows, and here are groups of rows",
                "UQL212",
                key.text,
                help=f"compare them before: FROM (SELECT DISTINCT ON {text} * FROM …) AS t",
            )
        if self.uses[bound.index].holes:
            raise self.error(
                f"DISTINCT ON {text} compares two rows: a hole {{…}} would have a value of each",
                "UQL212",
                key.text,
                help=f"write the text without holes; {text} USING (…) says which columns are compared",
            )
        return bound

    def name(self, name: Name, clause: Clause, want: Want) -> Expr:
        """The column or alias of a name without quotes, an item of a list in a lambda, or the time.

        Args:
            name: its parts, the table first.
            clause: that it stands in.
            want: what its place asks of an alias that is a text.
        Raises: UnknownColumnError.
        """
        if name.parts[0].lower() in self._items:  # an item of a list, in a lambda
            item: Expr = replace(name, parts=name.parts[:1])
            return _member(item, name.parts[1:], name.span)
        meaning = self._named(name.parts, name, clause, want)
        if meaning is not None:
            return meaning
        if len(name.parts) == 1 and name.parts[0].lower() in NOW:
            return Call(name.parts[0].lower(), span=name.span)
        moment = self.scope.moment(name.parts, name.span)
        if moment is not None:
            return moment
        row = self.scope.row(name.parts[0], name.span) if len(name.parts) == 1 else None
        if row is not None:
            return row
        raise self.scope.unknown(name.parts, name.span, self.aliases.spelled)

    def _named(self, parts: tuple[str, ...], node: Expr, clause: Clause, want: Want) -> Expr | None:
        """What a name means: a name of GROUP BY where groups exist, a column, an alias of SELECT; None when nothing."""
        low = parts[0].lower()
        key = self.aliases.group.get(low) if len(parts) == 1 else None
        if key is not None and clause.group_aliases and low not in self._expanding:
            return self._expand(low, key.expr, clause, self.group_want(key), node)
        path = self.scope.find(parts, node.span)
        if path is not None:
            column, inner = path
            field = self.scope.field_of(column) if isinstance(column, Column) else None
            if inner and field is not None and field.type.startswith("MAP("):
                column, inner = ast.Subscript(column, String(inner[0]), span=node.span), inner[1:]
            if inner and field is not None and field.type.startswith("UNION("):
                column, inner = Call("union_extract", (column, String(inner[0])), span=node.span), inner[1:]
            return replace(_member(column, inner, node.span), span=node.span)
        if len(parts) > 1 or low in self._expanding:
            return None
        item = self.aliases.select.get(low)
        if item is not None and (clause.select_aliases is None or item[0] < clause.select_aliases):
            return self._expand(low, item[1], clause, want, node)
        return self._expand(low, key.expr, clause, self.group_want(key), node) if key is not None else None

    def _expand(self, name: str, expr: Expr, clause: Clause, want: Want, node: Expr) -> Expr:
        if self._expanding:
            self.statement.copy(1, node.span)
        first = len(self.uses)
        self._expanding.append(name)
        self._named_at.append(node)
        try:
            bound = self.bind(expr, clause, want)
        finally:
            self._expanding.pop()
            self._named_at.pop()
        self.uses[first:] = [replace(use, at=node.span) for use in self.uses[first:]]
        return bound

    @staticmethod
    def group_want(key: ast.GroupKey) -> Want:
        return Want(Place.GROUP, "VARCHAR", into=key.into, many=key.many)

    def _string(self, string: String) -> None:
        if not string.double:
            return
        hole = next((h for h in _HOLE.findall(string.value) if self.scope.find(h.split("."), string.span)), None)
        if hole is not None:
            raise self.error(
                f'"{string.value[:40]}" is a string here, and {{{hole}}} in it would not be read',
                "UQL206",
                string,
                help=f'PROMPT "{string.value[:40]}" asks the model; a string stands in single quotes',
            )
        self.statement.read(string.span, string.value, "string")
        column = next((n for n in self.scope.names() if n.lower() == string.value.lower()), None)
        if column is not None:
            self.statement.warn(
                f'UQL102: "{string.value}" is read as a string here; for the column write its table before it, '
                f'as in {self._owner(column)}."{column}"'
            )

    def _owner(self, column: str) -> str:
        return next((r.alias for r in self.scope.relations if r.find(column) is not None), "t")

    # ------------------------------------------------------------------------------------------------------ operators
    def _binary(self, expr: Binary, clause: Clause, certain: bool) -> Expr:
        if expr.op == "COLLATE":
            return replace(expr, left=self.bind(expr.left, clause, TEXT))
        if expr.op in BITS:
            return self._bits(expr, clause)
        if expr.op == "||":
            left, right = self.bind(expr.left, clause, PRINTED), self.bind(expr.right, clause, PRINTED)
            return replace(expr, left=left, right=right)
        if expr.op in ("+", "-", "*", "/", "//", "%"):
            return self._arithmetic(expr, clause)
        ordering = expr.op in ORDERINGS
        if ordering:
            self._check_names(expr)
        if _may_ask(expr.right) and not isinstance(expr.right, Cast):  # 3 < PROMPT "…": the left side tells the type
            stated = not ordering and all(map(_states, (expr.left, expr.right)))
            left = self.bind(expr.left, clause, CONDITION if stated else NUMBER if ordering else WORDS)
            right = self.bind(
                expr.right, clause, CONDITION if _is_truth(left, expr.right) else self._against(left, ordering)
            )
            return replace(expr, left=left, right=right)
        words = isinstance(expr.left, String) or self._type_of(expr.left) == "VARCHAR"
        right = self.bind(expr.right, clause, NUMBER if ordering and not words else ANY)
        if isinstance(right, ScalarQuery) and isinstance(right.query, Bound):
            right = replace(
                right, query=self._as_number(expr.right, right.query, ordering or self._is_number(expr.left))
            )
        self._check_string(expr)
        want = self._against(right, ordering)
        if _is_truth(right, expr.left):
            want = CONDITION
        elif isinstance(right, String) and not ordering:
            want = Want(Place.COMPARE, "VARCHAR", (right.value,), certain=certain and expr.op == "=")
        left = self.bind(expr.left, clause, want)
        self._check_compared(expr, left)
        return replace(expr, left=left, right=right)

    def _check_names(self, expr: Binary) -> None:
        """Raises: BindError (UQL206) where two texts without a type, each under a name, would be compared by their letters."""
        sides = []
        for side in (expr.left, expr.right):
            path = self.scope.find(side.parts, side.span) if isinstance(side, Name) else None
            sides.append(self._open_texts(path[0]) if path is not None and not path[1] else ())
        if not all(sides):
            return
        text, name = sides[0][0][:40], self._written(expr.left)
        raise self.error(
            f'{name} comes from "{text}", to which nothing gives a type: {expr.op} would compare letters',
            "UQL206",
            expr.left,
            help=f'write "{text}"::DOUBLE where it is asked, ::DATE for a day, ::VARCHAR for letters',
        )

    def _check_compared(self, expr: Binary, left: Expr) -> None:
        """Two texts that a user meant to compare, and a statement compared with a number."""
        if not isinstance(left, Pending):
            against_words = _is_words(expr.right) and self.statement.types.of(self.blank(left), self.scope) is not None
            of_texts = isinstance(left, Call) and left.name in LEAST_OR_MOST and uses.is_pending(left)
            if against_words and (of_texts or self._against(left, ordering=False) is NUMBER):
                raise self._number_against_words(expr)
            return
        text, right = self.uses[left.index].text[:40], expr.right
        ordering = expr.op in (*ORDERINGS, "BETWEEN")
        if isinstance(right, String) and right.double and ordering and not _OF_NUMBERS.match(right.value):
            raise self.error(
                f'"{right.value[:40]}" is a string on the right of {expr.op}: the answers to "{text}" would be sorted among words',
                "UQL206",
                right,
                help=f'to compare two answers write "{text}"::DOUBLE {expr.op} PROMPT "{right.value[:40]}"::DOUBLE'
                + " AND …" * (expr.op == "BETWEEN"),
            )

    def _check_pattern(self, like: ast.Like) -> None:
        """A free text behind LIKE is a pattern, which only equal texts match."""
        pattern = like.pattern
        if not isinstance(pattern, String) or not pattern.double or len(pattern.value.split()) < 2:
            return
        if not any(c in pattern.value for c in "%_*?"):
            self.statement.warn(
                f'UQL102: "{pattern.value[:40]}" is a pattern behind {like.op} that only an equal text matches; '
                f"WHERE \"{pattern.value[:40]}\" asks the model, '%word%' finds a word"
            )

    def _bits(self, expr: Binary, clause: Clause) -> Expr:
        """& | << >>: a text in them is a whole number; where one says what is true or false, or both are texts, AND or OR was meant."""
        texts = [side.text for side in (expr.left, expr.right) if isinstance(side, Quoted)]
        if len(texts) == 2 or any(map(is_statement, texts)):
            word = {"&": "AND", "|": "OR"}.get(expr.op)
            if word is not None:
                raise self.error(f"{expr.op} is an operator on bits", "UQL206", expr, help=f"write {word}")
        return replace(expr, left=self.bind(expr.left, clause, WHOLE), right=self.bind(expr.right, clause, WHOLE))

    def _check_string(self, expr: Binary) -> None:
        """A free text on the right of a comparison is a string: said where it was surely meant for the model."""
        text, left = expr.right, expr.left
        if not _is_words(text):
            return
        compares = isinstance(left, Binary) and left.op in (*ORDERINGS, "=", "<>")
        if (compares or (_states(left) and is_statement(text.value))) and text.value.lower() not in BOOLEANS:
            raise self.error(
                f'"{text.value}" is a string on the right of {expr.op}, and what it is compared with is true or false',
                "UQL206",
                text,
                help=f'write PROMPT "{text.value[:40]}"::BOOLEAN to ask the model'
                + (
                    f', and "{left.text[:40]}"::BOOLEAN'
                    if isinstance(left, Quoted)
                    else ", or put the text on the left"
                ),
            )
        if (
            isinstance(left, ast.Number)
            or self._is_number(left)
            or (uses.is_time(self._column_type(left)) and " " in text.value and not _OF_NUMBERS.match(text.value))
        ):
            raise self._number_against_words(expr)
        if isinstance(left, String) or (isinstance(left, Name) and is_statement(text.value)):
            self.statement.warn(
                f'UQL102: "{text.value}" is read as a string here, which {self._written(left)} is compared with; '
                f'WHERE "{text.value[:40]}" asks the model'
            )
        if isinstance(left, Quoted) and len(text.value.split()) > FEW_WORDS:
            self.statement.warn(
                f'UQL102: "{text.value}" is read as a string here, one label of "{left.text}"; '
                f'PROMPT "{text.value[:40]}" asks the model'
            )

    def _number_against_words(self, expr: Binary) -> BindError:
        """Of a number that is compared with what reads as a string, in double quotes."""
        turned = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}.get(expr.op, expr.op)
        text = expr.right.value if isinstance(expr.right, String) else ""
        return self.error(
            f'"{text}" is a string on the right of {expr.op}, and what it is compared with is no string',
            "UQL206",
            expr.right,
            help=f'write PROMPT "{text[:40]}" to ask the model, or put the text on the left, with {turned}',
        )

    def _arithmetic(self, expr: Binary, clause: Clause) -> Expr:
        chain: list[Binary] = []
        node: Expr = expr
        while isinstance(node, Binary) and node.op in ("+", "-", "*", "/", "//", "%"):
            chain.append(node)
            node = node.left
        first = chain[-1]
        want = NUMBER
        if isinstance(first.right, ast.TypedLiteral):
            want = Want(Place.COMPARE, "TIMESTAMP" if first.right.type == "INTERVAL" else first.right.type)
        bound = self.bind(node, clause, want)
        for link in reversed(chain):
            bound = replace(link, left=bound, right=self.bind(link.right, clause, NUMBER))
        return bound

    def _against(self, other: Expr, ordering: bool) -> Want:
        """What a comparison with `other` asks of a text: a value of the other side's type."""
        if isinstance(other, Null | Boolean):
            return ANY if isinstance(other, Null) else CONDITION
        if ordering and isinstance(other, String) and uses.is_numeral(other.value):
            return NUMBER
        cast = self.uses[other.index].want if isinstance(other, Pending) else None
        if cast is not None and (cast.place is not Place.CAST or cast.labels):
            return CONDITION if cast == CONDITION else NUMBER if ordering else WORDS
        type = cast.type if cast is not None else self.statement.types.of(self.blank(other), self.scope)
        if type is not None and type.strip('"') == "NULL":  # made of texts alone, as max("…") OVER (…)
            inside = [self.uses[n.index].want for n in walk(other) if isinstance(n, Pending)]
            return NUMBER if ordering or any(want.type == "DOUBLE" for want in inside) else WORDS
        if type == "BOOLEAN":
            return CONDITION
        return NUMBER if type is None else _compared_with(type)

    def _against_one_of(self, others: Sequence[Expr], certain: bool = False) -> Want:
        """What equality with one of several expressions asks of a text: one of their labels, or a value of their type."""
        labels = tuple(other.value for other in others if isinstance(other, String))
        if labels and len(labels) == len(others):
            return Want(Place.COMPARE, "VARCHAR", labels, certain=certain)
        return self._against(others[0], ordering=False) if others else ANY

    def blank(self, expr: Expr) -> Expr:
        """The expression with NULL for every text that is not settled yet."""

        def change(node: object) -> object:
            return Null(span=node.span) if isinstance(node, Pending) else node

        return rewrite(expr, change)  # type: ignore[no-any-return]

    def _as_number(self, expr: Expr, bound: Bound, number: bool) -> Bound:
        """A sub-query whose one item is a text without a cast, where a number is wanted: bound again, the text a number."""
        query: object = getattr(expr, "query", None)
        if not number or not isinstance(query, ast.Select) or len(query.items) != 1 or not bound.query.items:
            return bound
        item, value = query.items[0], bound.query.items[0].expr
        if not isinstance(item.expr, Quoted) or not isinstance(value, Virtual) or not value.column.is_value:
            return bound
        cast = replace(item, expr=Cast(item.expr, ast.TypeName("DOUBLE"), span=item.expr.span))
        return self.sub(replace(query, items=(cast,)), self.scope)

    def _quantified(self, expr: ast.Quantified, clause: Clause) -> Expr:
        bound = self.sub(expr.query, self.scope)
        number = expr.op in ORDERINGS or (expr.operand is not None and self._is_number(expr.operand))
        bound = self._as_number(expr, bound, number)
        want = self._of_columns(expr, bound)
        if expr.operand is None:
            return replace(expr, query=bound)
        return replace(expr, operand=self.bind(expr.operand, clause, want), query=bound)

    def _of_columns(self, expr: ast.Quantified | ast.InQuery, bound: Bound) -> Want:
        """What a comparison with the rows of a sub-query asks of a text, or of each text of a row."""
        wants = tuple(_compared_with(item.type) for item in bound.query.items)
        if len(wants) == 1:
            return wants[0]
        row = expr.operand
        if not isinstance(row, Call) or row.name != "row" or len(row.args) != len(wants):
            word = expr.word if isinstance(expr, ast.Quantified) else "IN"
            raise self.error(f"a sub-query after {word} gives one column", "UQL211", expr)
        return Want(Place.COMPARE, members=wants)

    def _in_query(self, expr: ast.InQuery, clause: Clause, certain: bool) -> Expr:
        bound = self._as_number(expr, self.sub(expr.query, self.scope), self._is_number(expr.operand))
        want, type = self._of_columns(expr, bound), bound.query.items[0].type
        if not want.members and (type == "VARCHAR" or type.startswith("ENUM")):
            known = not bound.correlated and not is_semantic_query(bound.query)  # before a call
            labels = bound if known else None
            want = Want(Place.COMPARE, "VARCHAR", label_query=labels, certain=certain and not expr.negated)
        return replace(expr, operand=self.bind(expr.operand, clause, want), query=bound)

    def _case(self, expr: ast.Case, clause: Clause, want: Want) -> Expr:
        operand = expr.operand
        tests = [self.bind(w.condition, clause, CONDITION if operand is None else ANY) for w in expr.whens]
        if operand is not None:
            operand = self.bind(operand, clause, self._against_one_of(tests))
        values = [*(when.value for when in expr.whens), *([expr.default] if expr.default is not None else [])]
        want = self._among(values, want)
        bound = [self.bind(value, clause, want) for value in values]
        whens = [replace(w, condition=t, value=v) for w, t, v in zip(expr.whens, tests, bound, strict=False)]
        default = bound[-1] if expr.default is not None else None
        return replace(expr, operand=operand, whens=tuple(whens), default=default)

    def _cast(self, expr: Cast, clause: Clause) -> Expr:
        type = type_sql(expr.type)
        labels = expr.type.labels if expr.type.name == "ENUM" and not expr.type.dims else ()
        if type in MODALITIES:
            bound = self.bind(expr.operand, clause)
            if not isinstance(bound, Column):
                raise self.error(f"only a column can be cast to {type}", "UQL206", expr)
            return replace(bound, span=expr.span)
        if labels:
            asked = isinstance(expr.operand, Quoted)
            if len(set(labels)) != len(labels) or (asked and not all(label.strip() for label in labels)):
                raise self.error("the labels of ENUM are different and not empty", "UQL206", expr)
            want = Want(Place.CAST, "VARCHAR", labels, closed=True)
        else:
            want = Want(Place.CAST, type)
        bound = self.bind(expr.operand, clause, want)
        if isinstance(bound, Pending) and not isinstance(expr.operand, Cast):  # "…"::INTEGER::VARCHAR is cast twice
            self.uses[bound.index] = replace(self.uses[bound.index], lenient=expr.lenient)
            return replace(bound, span=expr.span)
        if not expr.lenient and (uses.is_number_or_time(type) or type == "BOOLEAN"):
            self.statement.type_by_name(self._open_texts(bound), type)
        return replace(expr, operand=bound)

    def _try(self, expr: ast.Try, clause: Clause, want: Want) -> Expr:
        inner = expr.operand
        if want is CONDITION:
            help = "leave TRY out: rows without an answer do not pass, and stand in result.errors with the reason"
            raise self.error("TRY gives STRUCT(value, error), and a condition is wanted", "UQL206", expr, help=help)
        if isinstance(inner, Cast) and isinstance(inner.operand, Quoted):
            labels = inner.type.labels if inner.type.name == "ENUM" else ()
            kind = "VARCHAR" if labels else type_sql(inner.type)
            want, inner = Want(Place.CAST, kind, labels, closed=bool(labels)), inner.operand
        else:
            want = replace(want, place=Place.SELECT, type=None) if want.place is not Place.CAST else want
        if not isinstance(inner, Quoted):
            raise self.error('TRY takes a text for the model: TRY "…"', "UQL212", expr)
        self.quoted(replace(inner, forced=True), clause, want)
        self.uses[-1] = replace(self.uses[-1], attempt=True)
        return Pending(index=len(self.uses) - 1, span=expr.span)

    # ---------------------------------------------------------------------------------------------------------- calls
    def _method(self, call: Call) -> Call:
        """x.f(y) is f(x, y) where x is a column."""
        *parts, name = call.name.split(".")
        if not parts or (self.scope.find(parts, call.span) is None and parts[0] not in self._items):
            if parts and parts[0].lower() in MODEL_SCHEMAS:
                raise self.error(f"there is no function {call.name}", "UQL209", call, help=asked_instead(name))
            if not all(part.isidentifier() for part in parts):
                text, form = parts[0][:40], f'{name}("{parts[0][:40]}")'
                raise self.error(
                    f'"{text}" is not a table or column', "UQL212", call, help=f"a text stands inside: {form}"
                )
            return call
        return replace(call, name=name, args=(Name(tuple(parts), span=call.span), *call.args))

    def is_aggregate(self, call: Call) -> bool:
        if call.over is not None or call.name not in self.statement.aggregates:
            return False
        if self.statement.aggregates.is_shadowed(call.name):
            message = f"{call.name} is a macro here and an aggregate function of DuckDB: beside a text it is unclear which is meant"
            help = f"give the macro another name (DROP MACRO {call.name}), or USE a database that does not have it"
            raise self.error(message, "UQL209", call, help=help)
        return True

    def _call(self, call: Call, clause: Clause, want: Want) -> Expr:
        call = self._method(call)
        call = counted(call) if self.is_aggregate(call) else call
        aggregate = call.over is not None or self.is_aggregate(call)
        inside = clause.inside() if self.is_aggregate(call) else clause
        name, args = call.name, list(call.args)
        if name == "if" and want.type is None and any(map(self._is_number, args[1:])):
            want = NUMBER
        first, rest = asked_of(call, aggregate, want)
        if name in PASSED_ON - ORDERED_BY and first.type is None:
            first = rest = NUMBER if any(map(self._is_number, args)) else self._with_booleans(args, first)
        bound: list[Expr] = []
        for index, arg in enumerate(args):
            if isinstance(arg, Star) and name == "count" and len(args) == 1:
                bound.append(Star(span=arg.span))  # COUNT(t.*) counts rows, too
            elif isinstance(arg, Star):
                near = "" if name in self.statement.aggregates else suggestion(name, ["count"]).strip()
                help = near or f"{name} takes a value, as in {name}(x); COUNT(*) counts rows"
                raise self.error("* may stand as a SELECT item and in COUNT(*)", "UQL212", call, help=help)
            else:
                bound.append(self.bind(arg, inside, first if index == 0 else rest))
        if name == "count" and not call.distinct and len(bound) == 1 and isinstance(bound[0], Pending):
            text, type = self.uses[bound[0].index].text, self.uses[bound[0].index].want.type
            if is_statement(text) or type == "BOOLEAN" or text in self.statement.conditions:
                self.statement.warn(
                    f'UQL102: COUNT("{text[:40]}") counts the rows that have an answer, yes or no; those for which it holds '
                    f'are COUNT(*) FILTER (WHERE "{text[:40]}")'
                )
        if name in ("sum", "avg", "mean") and isinstance(bound[0], Pending):
            use = self.uses[bound[0].index]
            if use.want is NUMBER and is_statement(use.text):
                counted_rows = f'CASE WHEN "{use.text[:40]}" THEN 1 ELSE 0 END'
                self.statement.warn(
                    f'UQL102: "{use.text[:40]}" says what is true or false, and {name} asks for a number; '
                    f"the {'number' if name == 'sum' else 'share'} of rows for which it holds is {name}({counted_rows})"
                )
        order = tuple(self.order_key(key, inside) for key in call.order_by)
        if name == "mode" and not order and bound and not is_literal(bound[0]):
            order = (ast.OrderKey(bound[0], span=call.span),)  # of values that are as frequent, the smallest
        where = self.bind(call.filter, inside, CONDITION) if call.filter is not None else None
        over = call.over
        if over is not None:
            parts = tuple(self.bind(part, clause) for part in over.partition_by)
            keys = tuple(self.order_key(key, clause) for key in over.order_by)
            over = ast.Window(parts, keys, over.frame, span=over.span)
        return replace(call, args=tuple(bound), order_by=order, filter=where, over=over)

    def _column_type(self, expr: Expr | None) -> str | None:
        """The type of a column; None for anything else."""
        path = self.scope.find(expr.parts, expr.span) if isinstance(expr, Name) else None
        return self.statement.types.of(path[0], self.scope) if path is not None and not path[1] else None

    def _is_number(self, arg: Expr | None) -> bool:
        """Is it a column or a constant of a numeric type?"""
        if isinstance(arg, ast.Number):
            return True
        if isinstance(arg, ast.Unary) and arg.op in ("-", "+"):
            return self._is_number(arg.operand)
        type = self._column_type(arg)
        return type is not None and is_numeric(type)

    def _among(self, values: Sequence[Expr], want: Want) -> Want:
        """What is asked of a text that is one of several values: what their place asks, else a value like the others."""
        if (want.type is None or want is PRINTED) and any(map(self._is_number, values)):
            return NUMBER
        if want.type is None and any(map(_is_label, values)):
            return uses.TEXT
        return want if want.type is not None else self._with_booleans(values, want)

    def _with_booleans(self, values: Sequence[Expr], want: Want) -> Want:
        """What is asked of a text that is one of several values: a condition where another of them is BOOLEAN."""
        types = [self._type_of(value) for value in values]
        has_text = any(self._is_asked(value) and type != "BOOLEAN" for value, type in zip(values, types, strict=True))
        return CONDITION if has_text and "BOOLEAN" in types else want

    def _type_of(self, value: Expr) -> str | None:
        if _is_test(value):
            return "BOOLEAN"
        path = self.scope.find(value.parts, value.span) if isinstance(value, Name) else None
        if isinstance(value, Boolean) or (path is not None and not path[1]):
            return self.statement.types.of(value if path is None else path[0], self.scope)
        return None

    def _is_asked(self, value: Expr) -> bool:
        """Is it a text without a type, by itself or under a name?"""
        path = self.scope.find(value.parts, value.span) if isinstance(value, Name) else None
        field = self.scope.field_of(path[0]) if path is not None and isinstance(path[0], Column) else None
        return isinstance(value, Quoted) or (field is not None and bool(field.source_texts))

    def order_key(self, key: ast.OrderKey, clause: Clause) -> ast.OrderKey:
        return replace(key, expr=self.bind(key.expr, clause, uses.ORDER))

    def error(self, message: str, code: str, node: Expr, help: str | None = None) -> BindError:
        """An error at the place of an expression.

        Args:
            code: UQL2xx.
            node: gives the place.
            help: what to write instead.
        """
        return BindError(message, code=code, span=node.span, help=help)


def _first_row(query: Bound) -> Bound:
    """A sub-query of EXISTS, which asks until one row passes. (The pairs of a correlated one are asked together.)"""
    rows = query.query
    if (
        query.correlated
        or not isinstance(rows, BoundSelect)
        or rows.aggregated
        or rows.limit is not None
        or rows.offset
    ):
        return query
    return replace(query, query=replace(rows, limit=1))


def _compared_with(type: str) -> Want:
    """What a comparison with a value of a type asks of a text."""
    if type.strip('"') == "NULL":
        return WORDS
    type = "VARCHAR" if type.startswith("ENUM") and not type.endswith("]") else type
    return NUMBER if is_numeric(type) else Want(Place.COMPARE, type)


def _members(values: Call, want: Want) -> tuple[Want, ...] | None:
    """What is asked of each value of a row or a struct that is compared with one of the same length, or of the same names."""
    if want.members:
        return want.members if len(want.members) == len(values.args) and values.name == "row" else None
    types = uses.member_types(want.type or "")
    names = [arg.name.lower() if isinstance(arg, ast.Named) else str(i) for i, arg in enumerate(values.args)]
    return tuple(_compared_with(types[name]) for name in names) if names == list(types) else None


def _member(struct: Expr, path: Sequence[str], span: ast.Span) -> Expr:
    """A field of a struct, or of a struct in it."""
    for part in path:
        struct = Call("struct_extract", (struct, String(part)), span=span)
    return struct


def _is_words(expr: Expr) -> TypeGuard[String]:
    """Is it a string in double quotes with a letter in it?"""
    return isinstance(expr, String) and expr.double and any(c.isalpha() for c in expr.value)


def _is_test(expr: Expr) -> bool:
    """Is it true or false by its form? "text" = 'a' and "text" IN ('a', 'b') have a label as their value."""
    match expr:
        case ast.Unary(op="NOT") | ast.IsNull() | ast.IsDistinct() | ast.Between() | ast.Like() | ast.Exists():
            return True
        case Binary(op="AND" | "OR" | "<" | "<=" | ">" | ">="):
            return True
        case Binary(op="=" | "<>", left=operand) | ast.InList(operand=operand) | ast.InQuery(operand=operand):
            return not isinstance(operand, Quoted)
    return False


def _may_ask(expr: Expr) -> bool:
    return isinstance(expr, Quoted) or (isinstance(expr, Cast | ast.Unary) and _may_ask(expr.operand))


def _states(expr: Expr) -> bool:
    """Is it a text that is a statement, or a text behind NOT?"""
    return is_statement(expr.text) if isinstance(expr, Quoted) else isinstance(expr, ast.Unary) and expr.op == "NOT"


def _is_label(value: Expr) -> bool:
    """Is it a string that is not 'yes', 'false' …?"""
    return isinstance(value, String) and value.value.lower() not in BOOLEANS


def _is_of_words(want: Want) -> bool:
    """Does the place need a string, as LIKE does, or a label other than 'yes', 'false' …?"""
    words = not want.labels or not all(label.lower() in BOOLEANS for label in want.labels)
    return (
        want.place is Place.COMPARE
        and want.type == "VARCHAR"
        and want is not PRINTED
        and want is not uses.ARGUMENT
        and words
    )


def _is_truth(value: Expr, of: Expr) -> bool:
    """Is it the string 'yes', 'false' …, beside a text that is a statement?"""
    return isinstance(value, String) and value.value.lower() in BOOLEANS and _states(of)


def _described(expr: Expr, text: str) -> str:
    return expr.label if isinstance(expr, Column) else f"the name {text} given in this query"
