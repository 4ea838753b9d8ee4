"""Tokens to a tree: `parse` for one statement, `parse_script` for many.

The tables come from compiler/_tables.py. A keyword that is not reserved is a keyword only where the grammar has a place for
it and for the token after it; everywhere else it is a name. To know this, the parser's own stack is played one or two tokens
ahead, so that no list of exceptions has to be kept. The same play says what was expected where something else stands.
"""

from __future__ import annotations

from copy import copy
from functools import cache
from typing import Any, NoReturn

from ply import yacc

from uql.base.errors import UQLError, UQLSyntaxError
from uql.compiler.lexer import RESERVED, TOGETHER, WORDS, Token, statements, tokenize
from uql.compiler.statement_targets import tokens as duckdb_tokens
from uql.compiler.syntax import Node, Span, Statement
from uql.compiler.syntax_errors import Place, unexpected
from uql.compiler.walk import children

MAX_DEPTH = 100
"""How deep parentheses and expressions may nest; every later stage may recurse this deep."""
MAX_BRACKETS = 500
"""How deep brackets may nest in a statement that goes to DuckDB: its parser takes seconds for 3,000 that are not closed."""
_DEEPER = {**dict.fromkeys("([{", 1), **dict.fromkeys(")]}", -1)}

_SOFT = frozenset(WORDS.values()) - RESERVED
_FIRST = frozenset(words[0] for words in TOGETHER)
_AFTER_LIMIT = frozenset(
    ("SEMICOLON", "RPAREN", "OFFSET", "TO", "WITH", "WHERE", "ORDER", "GROUP", "UNION", "USING_SAMPLE")
)


def parse(text: str) -> Statement:
    """The tree of one statement; a `;` may end it.

    Raises UQLSyntaxError, which knows the place, what was expected and often what to write instead:

        UQL100  something else was expected        UQL106  a clause stands where it may not
        UQL103  nested deeper than MAX_DEPTH        UQL107  no token: unclosed quotes, unknown characters
        UQL104  a clause or an option given twice

    >>> parse("SELECT COUNT(*) FROM reviews").items[0].expr.name
    'count'
    """
    return _parse(text, 0, len(text))


def tree_of(text: str) -> Statement | None:
    """As `parse`; None for a text that is no statement of UQL."""
    try:
        return parse(text)
    except UQLSyntaxError:
        return None


def parse_script(text: str) -> list[tuple[Statement | str, Span]]:
    """The statements of a script, cut at each `;` outside strings, texts and comments, with their places.

    What is not UQL comes back as the text itself: DuckDB may know it, and `parse` of it raises the error.
    Raises UQLSyntaxError (UQL103) where brackets nest deeper than MAX_BRACKETS.
    """
    pieces: list[tuple[Statement | str, Span]] = []
    for start, end in statements(text):
        try:
            pieces.append((_parse(text, start, end), Span(start, end)))
        except UQLSyntaxError as error:
            if error.code == "UQL103":
                check_brackets(text[start:end])
            pieces.append((text[start:end], Span(start, end)))
    return pieces


def options(tail: str, sql: str) -> dict[str, Any]:
    """The settings in a `WITH (…)` at the end of a statement. Raises: UQLSyntaxError, ConfigError, at the place in the statement."""
    if not tail:
        return {}
    before = "FROM t "
    try:
        return {o.name: o.value for o in getattr(parse(before + tail), "options", ())}
    except UQLError as error:
        shift = sql.rindex(tail) - len(before)
        error.text, error.start, error.end = sql, error.start + shift, error.end + shift
        raise


def _parse(text: str, start: int, end: int) -> Statement:
    feed = _Feed(text, tokenize(text, start, end), end)
    machine = copy(_machine())
    feed.machine, machine.errorfunc = machine, feed.fail
    statement: Statement = machine.parse(lexer=feed, tokenfunc=feed.token, tracking=True)
    _check_depth(statement, text)
    return statement


@cache
def _machine() -> Any:
    """The LR machine of ply, from the tables that were made at build time."""
    from uql.compiler import _tables
    from uql.compiler.grammar import PRODUCTIONS

    table = yacc.LRTable()
    table.lr_action = _rows(_tables.ACTION, _tables.TERMINALS)
    table.lr_goto = _rows(_tables.GOTO, _tables.RULES)
    table.lr_productions = [
        yacc.MiniProduction("", name, int(length), None if function == "None" else function, "", 0)
        for name, length, function in map(str.split, _tables.PRODUCTIONS.strip().splitlines())
    ]
    table.bind_callables(PRODUCTIONS)
    return yacc.LRParser(table, None)


def _rows(table: str, names: list[str]) -> dict[int, dict[str, int]]:
    rows = {}
    for state, line in enumerate(table[1:-1].split("\n")):
        numbers = [int(number) for number in line.split()]
        rows[state] = {names[k]: v for k, v in zip(numbers[::2], numbers[1::2], strict=True)}
    return rows


class _Feed:
    """Hands the tokens to the machine, deciding for each word whether it is a keyword or a name; says what went wrong.

    It stands in ply's place for a lexer, so that a production reaches it as `p.lexer`.
    """

    lineno = 0  # asked for by ply

    def __init__(self, text: str, tokens: list[Token], end: int) -> None:
        self.text, self.tokens, self.end = text, tokens, end
        self.has_windows = any(token.type == "OVER" for token in tokens)
        self.machine: Any = None
        self.at = -1  # the token handed over last
        self.open: list[Token] = []  # brackets that are not closed yet
        self.stack: list[int] = []  # the machine's states before that token …
        self.stack_before: list[int] = []  # … and before the one before it

    # ------------------------------------------------------------------------------------------------------------ tokens
    def token(self) -> Token | None:
        """The next token, None at the end."""
        self.at += 1
        self.stack_before, self.stack = self.stack, list(self.machine.statestack)
        if self.at >= len(self.tokens):
            return None
        token = self.tokens[self.at]
        if token.type == "SEMICOLON":
            self._end(token)
            return None
        if self.at and self.tokens[self.at - 1].type == "DOT" and token.type in WORDS.values():
            token.type = "NAME"
        elif self._joined(token):
            pass
        elif token.type == "EXCEPT" and self._excludes():
            token.type = "EXCLUDE"
        elif token.type in _SOFT:
            token.type = self._decide(token)
        elif token.value == "%" and self._ends_limit():
            token.type = "PERCENT"
        elif token.type in ("LPAREN", "LBRACKET", "LBRACE"):
            self.open.append(token)
            if len(self.open) > MAX_DEPTH:
                raise _too_deep(self.text, Span(token.lexpos, token.endlexpos))
        elif token.type in ("RPAREN", "RBRACKET", "RBRACE") and self.open:
            self.open.pop()
        return token

    def _end(self, semicolon: Token) -> None:
        """Only semicolons may follow one."""
        for token in self.tokens[self.at :]:
            if token.type != "SEMICOLON":
                place = Span(token.lexpos, token.endlexpos)
                raise self.error_at(
                    "a second statement begins here", place, help="one statement at a time; a script is split at each ;"
                )
        self.end = semicolon.lexpos
        del self.tokens[self.at :]

    def _joined(self, token: Token) -> bool:
        """Words that are one token, as AT TIME ZONE, become it where the grammar has a place for it."""
        if token.type in ("QUOTED", "STRING") or str(token.value).upper() not in _FIRST:
            return False
        ahead = (str(token.value).upper(), *self._words(1))
        for words, kind in TOGETHER.items():
            if ahead[: len(words)] == words and self.shift(self.stack, kind):
                token.type, token.endlexpos = kind, self.tokens[self.at + len(words) - 1].endlexpos
                del self.tokens[self.at + 1 : self.at + len(words)]
                return True
        return False

    def _ends_limit(self) -> bool:
        """Does LIMIT 10% end here, or does a divisor follow?"""
        after = self.tokens[self.at + 1].type if self.at + 1 < len(self.tokens) else "SEMICOLON"
        return after in _AFTER_LIMIT and self.shift(self.stack, "PERCENT") is not None

    def _decide(self, token: Token) -> str:
        """The keyword if it may stand here and the next token may follow, else NAME."""
        kind: str = token.type
        stack = self.shift(self.stack, kind)
        if stack is None:
            return "NAME" if self.shift(self.stack, "NAME") else kind
        if self.shift(self.stack, "NAME") is None:
            return kind
        following = [token.type for token in self.tokens[self.at + 1 : self.at + 3]]
        in_list = self.at > 0 and self.tokens[self.at - 1].type == "COMMA"
        if kind == "OFFSET" and in_list:  # a column or function of a list
            return "NAME"
        if kind == "TO" and in_list and not self._names_what_is_kept(following):  # as in (SELECT a, to IS NULL)
            return "NAME"
        # x = ANY ([1, 2])
        if kind in ("ALL", "ANY") and following == ["LPAREN", "LBRACKET"] and self._after_comparison():
            return kind
        if kind in ("ALL", "ANY", "ARRAY") and not self._opens_a_query():  # all(x), any(x), array(x): functions
            return "NAME"
        return kind if self._follows(stack) else "NAME"

    def _names_what_is_kept(self, following: list[str]) -> bool:
        """Does TO after a comma name a table, with which the statement ends but for its options? Else it is a column."""
        return following[:1] not in (["ISNULL"], ["NOTNULL"]) and following[1:] in (
            [],
            ["SEMICOLON"],
            ["RPAREN"],
            ["WITH"],
        )

    def _after_comparison(self) -> bool:
        return self.at > 0 and self.tokens[self.at - 1].type in ("EQUALS", "COMPARE")

    def _opens_a_query(self) -> bool:
        """Does a parenthesis behind the word, if there is one, hold a query?"""
        ahead = [token.type for token in self.tokens[self.at + 1 : self.at + 1 + MAX_DEPTH]]
        if ahead[:1] != ["LPAREN"]:
            return True
        return next((kind for kind in ahead if kind != "LPAREN"), "") in ("SELECT", "FROM", "WITH")

    def _excludes(self) -> bool:
        """Is it * EXCEPT (a, b), which is * EXCLUDE (a, b)?"""
        return self.at > 0 and self.tokens[self.at - 1].type == "STAR" and not self._opens_a_query()

    def _words(self, ahead: int) -> tuple[str, ...]:
        return tuple(
            str(t.value).upper()
            for t in self.tokens[self.at + ahead : self.at + ahead + 2]
            if t.type not in ("QUOTED", "STRING")
        )

    def _follows(self, stack: list[int]) -> bool:
        """May the next token stand after this stack?"""
        after = self.tokens[self.at + 1] if self.at + 1 < len(self.tokens) else None
        if after is None or after.type == "SEMICOLON":
            return self.shift(stack, "$end") is not None
        kinds: tuple[str, ...] = (after.type, "NAME") if after.type in _SOFT else (after.type,)
        # TIMESTAMP WITH TIME ZONE '…'
        if str(after.value).upper() in _FIRST and after.type not in ("QUOTED", "STRING"):
            kinds += tuple(kind for words, kind in TOGETHER.items() if words[0] == str(after.value).upper())
        return any(self.shift(stack, kind) is not None for kind in kinds)

    def shift(self, stack: list[int], kind: str) -> list[int] | None:
        """The stack after a token of this kind, None where it cannot stand; the given stack stays as it is."""
        action, goto, productions = self.machine.action, self.machine.goto, self.machine.productions
        states = stack
        while True:
            act = action[states[-1]].get(kind)
            if act is None:
                return None
            if act >= 0:  # 0 accepts
                return [*states, act]
            rule = productions[-act]
            states = states[: len(states) - rule.len]
            states.append(goto[states[-1]][rule.name])

    def check_depth(self, node: Node) -> None:
        """Raises UQL103 for what is nested too deep, before a production descends into it."""
        _check_depth(node, self.text)

    # ------------------------------------------------------------------------------------------------------------ errors
    def expected(self, stack: list[int]) -> frozenset[str]:
        """The kinds of token that may stand after this stack."""
        kinds = {kind for row in (self.machine.action[state] for state in stack[-1:]) for kind in row}
        return frozenset(kind for kind in kinds if self.shift(stack, kind) is not None)

    def fail(self, token: Token | None) -> NoReturn:
        """Called by the machine where no action is left."""
        tokens = [t for t in self.tokens if t.type != "SEMICOLON"]
        place = Place(
            text=self.text,
            end=self.end,
            tokens=tokens,
            at=self.at,
            expected=self.expected(self.stack),
            expected_before=self.expected(self.stack_before) if self.stack_before else frozenset(),
            open=tuple(self.open),
        )
        raise unexpected(place)

    def error_at(self, message: str, span: Span, *, code: str = "UQL100", help: str | None = None) -> UQLSyntaxError:
        """An error of this statement, for the productions to raise."""
        return UQLSyntaxError(message, code=code, text=self.text, span=span, help=help)

    def last_word(self, kind: str, span: Span) -> Span:
        """The place of the last token of this kind within `span`."""
        for token in reversed(self.tokens[: self.at + 1]):
            if token.type == kind and span.start <= token.lexpos < span.end:
                return Span(token.lexpos, token.endlexpos)
        return span


def check_brackets(text: str) -> None:
    """Raises UQLSyntaxError (UQL103) where brackets nest deeper than MAX_BRACKETS."""
    depth = 0
    for token in duckdb_tokens(text):
        depth += _DEEPER.get(token.text, 0)
        if depth > MAX_BRACKETS:
            raise _too_deep(text, Span(token.start, token.end), MAX_BRACKETS)


def _too_deep(text: str, span: Span, limit: int = MAX_DEPTH) -> UQLSyntaxError:
    return UQLSyntaxError(
        f"nested more than {limit} deep",
        code="UQL103",
        text=text,
        span=span,
        help="split the statement: WITH name AS (…), a list for IN, or a table made by TO",
    )


def _check_depth(statement: Node, text: str) -> None:
    """Raise UQLSyntaxError (UQL103) when a node lies deeper than MAX_DEPTH. Without recursion."""
    level: list[Node] = [statement]
    for _ in range(MAX_DEPTH):
        level = [child for node in level for child in children(node, queries=True)]
        if not level:
            return
    raise _too_deep(text, level[0].span)
