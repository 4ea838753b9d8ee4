"""What to say where the grammar has no place for a token: what stands there, what was expected, and the likely slip."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields

from uql.base.errors import UQLSyntaxError, line_column
from uql.base.names import distance
from uql.base.settings import Settings
from uql.compiler.lexer import RESERVED, SYMBOLS, Token

SETTINGS = frozenset(f.name for f in fields(Settings))


@dataclass(frozen=True, slots=True)
class Place:
    """Where a parse came to its end."""

    text: str
    end: int  # of the statement
    tokens: list[Token]
    at: int  # the token that does not fit; len(tokens) is the end
    expected: frozenset[str]  # kinds of token that would fit
    expected_before: frozenset[str]  # those that would have fitted in the place of the token before
    open: tuple[Token, ...]  # brackets that are not closed

    def kind(self, offset: int = 0) -> str:
        """The kind of the token so many places further on, '$end' outside."""
        i = self.at + offset
        return str(self.tokens[i].type) if 0 <= i < len(self.tokens) else "$end"

    def written(self, offset: int = 0) -> str:
        """That token as it is written."""
        i = self.at + offset
        return self.text[self.tokens[i].lexpos : self.tokens[i].endlexpos] if 0 <= i < len(self.tokens) else ""


def unexpected(place: Place) -> UQLSyntaxError:
    """The error for a token that does not fit."""
    if place.at < len(place.tokens):
        token = place.tokens[place.at]
        start, end = token.lexpos, token.endlexpos
        text = place.written()
        label = text if len(text) <= 40 else text[:37] + "…"
    else:
        start = end = max((t.endlexpos for t in place.tokens[-1:]), default=place.end)
        label = "the end"
    if not place.tokens:
        return UQLSyntaxError(
            "there is no statement", text=place.text, start=0, end=0, help="for example: SELECT * FROM t"
        )
    help = next((str(words) for slip in SLIPS if (words := slip(place))), None)
    once = {"FROM"} if any(t.type == "FROM" for t in place.tokens[: place.at]) and "WHERE" in place.expected else set()
    message = f"expected {listed(expected_words(place.expected - once))}, found {label}"
    return UQLSyntaxError(message, text=place.text, start=start, end=end, help=help)


# -------------------------------------------------------------------------------------------------------- what was expected
_OPERATORS = {
    "PLUS", "MINUS", "STAR", "SLASH", "CONCAT", "BITS", "EQUALS", "COMPARE", "AND", "OR", "IS", "IN", "LIKE", "ILIKE", "BETWEEN",
    "DCOLON", "NOT", "ARROW", "TEXT_ARROW", "GLOB", "ISNULL", "MATCHES", "NOTNULL", "POWER", "SIMILAR", "AT_TIME_ZONE", "COLLATE", "TILDE",
    "IGNORE_NULLS", "RESPECT_NULLS",
}  # fmt: skip
_AFTER_OPERAND = {"DOT", "LPAREN", "USING", "FILTER", "OVER", "LBRACKET", "ESCAPE", "WITHIN", "COLON", "ASSIGN"}
_AFTER_OPERAND |= {"PERCENT", "PLACING", "FOR"}
_JOINS = {"JOIN", "ASOF", "INNER", "LEFT", "RIGHT", "FULL", "CROSS", "SEMI", "ANTI", "NATURAL", "POSITIONAL"}
_CLAUSES = {"WHERE", "HAVING", "GROUP", "ORDER", "LIMIT", "OFFSET", "TO", "WITH", "UNION", "INTERSECT", "EXCEPT"}
_CLAUSES |= {"QUALIFY", "WINDOW", "USING_SAMPLE", "SELECT", "FETCH_FIRST"}
_STATEMENTS = {"SELECT", "FROM", "EXPLAIN", "SET", "RESET", "CREATE", "INSERT", "COPY"}
_START = {
    "NUMBER", "STRING", "HEX", "PARAMETER", "NULL", "TRUE", "FALSE", "TEMPORAL", "INTERVAL", "CASE", "CAST", "TRY_CAST", "TRY", "PROMPT",
    "QUOTED", "NAME", "EXISTS", "LPAREN", "LBRACKET", "PLUS", "MINUS", "NOT", "ARRAY", "LAMBDA", "LBRACE", "MAP", "TILDE", "POSITION",
}  # fmt: skip
_SHOWN = {name: symbol for symbol, name in reversed(SYMBOLS.items())} | {
    "$end": "the end",
    "NAME": "a name",
    "QUOTED": 'a text in "…"',
    "STRING": "a string in '…'",
    "NUMBER": "a number",
    "PARAMETER": "$name",
    "UNIT": "a unit of time",
    "GROUP": "GROUP BY",
    "ORDER": "ORDER BY",
    "USING_SAMPLE": "USING SAMPLE",
    "WITH_TIME_ZONE": "WITH TIME ZONE",
    "AT_TIME_ZONE": "AT TIME ZONE",
    "LONG_TYPE": "DOUBLE PRECISION",
    "FRAME": "ROWS",
    "SIDE": "BOTH",
    "FETCH_FIRST": "FETCH FIRST",
    "ROWS_ONLY": "ROWS ONLY",
    "POSITION": "#1",
}


def expected_words(kinds: frozenset[str]) -> list[str]:
    """A short list for people, of the kinds of token that would fit."""
    rest, words = set(kinds), []
    if rest >= _STATEMENTS:
        return ["a statement"]
    if {"CASE", "NUMBER", "NAME"} <= rest:
        words.append("an expression")
        rest -= _START | ({"STAR"} if "SELECT" not in rest else set())
    elif {"NAME", "QUOTED"} <= rest:
        words.append("a name")
        rest -= {"NAME", "QUOTED"}
    elif "AS" in rest:
        rest -= {"NAME"}
    if {"PLUS", "SLASH"} <= rest:
        words += ["an operator"] if {"AND", "OR"} <= rest or "AND" not in rest else ["AND", "an operator"]
        rest -= _OPERATORS | _AFTER_OPERAND
        rest -= {"FROM"} if "RPAREN" in rest else set()
    if rest >= _JOINS:
        rest -= _JOINS - {"JOIN"}
    if len(rest & _CLAUSES) >= 6:
        rest -= _CLAUSES | {"TABLESAMPLE"}
        words.append("a clause such as WHERE, GROUP BY, ORDER BY or LIMIT")
    if "DESC" in rest:
        rest -= {"NULLS"}
    words += sorted(
        (_SHOWN.get(kind, kind) for kind in rest), key=lambda word: (not word[0].isalpha(), word == "the end", word)
    )
    return words


def listed(words: list[str]) -> str:
    """a, b or c"""
    words = [word if word[0].isalpha() else f"‘{word}’" if len(word) <= 2 else word for word in words]
    return " or ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


# -------------------------------------------------------------------------------------------------------------- likely slips
def near_miss(place: Place) -> str | None:
    """WHRE, FORM, SELCT: a name at a small distance from a keyword that would have fitted."""
    for offset, expected in ((0, place.expected), (-1, place.expected_before)):
        if place.kind(offset) == "NAME":
            word = place.written(offset).upper()
            for keyword in sorted(expected):
                if keyword.isalpha() and keyword.isupper() and keyword not in _KINDS and _close(word, keyword):
                    return f"did you mean {_SHOWN.get(keyword, keyword)}?"
    return None


_KINDS = {"NAME", "QUOTED", "STRING", "NUMBER", "PARAMETER", "TEMPORAL", "UNIT", *SYMBOLS.values()}


def _close(word: str, keyword: str) -> bool:
    """One edit apart (an exchange of neighbours is one), for words of four letters or more; two from seven on."""
    if word == keyword or (min(len(word), len(keyword)) < 4 and (sorted(word) != sorted(keyword) or len(word) < 2)):
        return False
    limit = 2 if len(keyword) >= 7 else 1
    return distance(word, keyword, limit) <= limit


def trailing_comma(place: Place) -> str | None:
    ends = {"FROM", "WHERE", "HAVING", "LIMIT", "UNION", "RPAREN", "RBRACKET", "$end"}
    clause = place.kind() in ("GROUP", "ORDER") and place.kind(1) == "BY"
    if place.kind(-1) == "COMMA" and (place.kind() in ends or clause):
        return "remove the comma before it, or write what is missing"
    return None


def reserved_name(place: Place) -> str | None:
    if place.kind() not in RESERVED or not place.expected & {"NAME", "QUOTED"}:
        return None
    naming = place.kind(-1) in ("AS", "TO", "FROM", "JOIN", "TABLE", "INTO", "DOT")
    no_clause = place.kind() in ("GROUP", "ORDER") and place.kind(1) != "BY"
    follows = place.kind(1) in ("COMMA", "FROM", "EQUALS", "COMPARE", "AS")
    lonely = place.kind() in ("LIMIT", "BY", "ON", "UNION", "JOIN") and follows
    if naming or no_clause or lonely:
        word = place.written()
        return f'{word} is a reserved word; as a name it stands in quotes: "{word}"'
    return None


def quoted_alias(place: Place) -> str | None:
    if place.kind() == "QUOTED" and "AS" in place.expected:
        return f"an alias in quotes needs AS: AS {place.written()[:40]}"
    if place.kind() == "STRING" and ("AS" in place.expected or place.kind(-1) == "AS"):
        return f'an alias is a name, or stands in double quotes: AS "{str(place.tokens[place.at].value)[:40]}"'
    return None


def nothing_inside(place: Place) -> str | None:
    """ENUM(), WITH (), STRUCT(a)."""
    opens = {"RPAREN": "LPAREN", "RBRACKET": "LBRACKET"}.get(place.kind())
    if opens is not None and place.kind(-1) == opens and "CASE" not in place.expected:
        return f"something belongs between {place.written(-1)} and {place.written()}, or leave both out"
    if place.kind() in ("RPAREN", "COMMA") and "LONG_TYPE" in place.expected and place.kind(-1) in ("NAME", "QUOTED"):
        return f"a type belongs behind {place.written(-1)}, as in STRUCT(a VARCHAR, b DOUBLE)"
    return None


def labels_in_quotes(place: Place) -> str | None:
    """ENUM(billing, tech)."""
    opened = place.at - 1
    while opened > 0 and place.tokens[opened].type in ("NAME", "COMMA", "QUOTED", "STRING", "NUMBER"):
        opened -= 1
    if place.tokens[opened].type != "LPAREN" or place.written(opened - 1 - place.at).upper() != "ENUM":
        return None
    after = place.tokens[opened + 1 :]
    last = next((i for i, t in enumerate(after) if t.type == "RPAREN"), len(after))
    labels = [str(t.value) for t in after[:last] if t.type != "COMMA"]
    if place.kind() == "PARAMETER":
        return 'a text and its labels are one parameter: $what, with what=uql.sem("the tone", ["angry", "calm"])'
    if not labels:
        return None
    return "labels are strings: ENUM(" + ", ".join(f"'{label}'" for label in labels[:8]) + ")"


def options_in_brackets(place: Place) -> str | None:
    """WITH budget = 5, WITH budget 5, WITH exact, SET budget = 5, WITH (budget 5), WITH (budget => 5), WITH (uql.budget = 5)."""
    begun = place.tokens.index(place.open[-1]) if place.open else place.at - 1
    named = (i for i in range(begun + 1 - place.at, 2) if place.written(i).lower() in SETTINGS)
    option = min(named, key=abs, default=None)
    after_with = place.written(begun - bool(place.open) - place.at).upper() == "WITH"
    arrow = place.kind(-1) == "EQUALS" and place.kind() == "COMPARE"
    if after_with and option is not None and (arrow or place.kind(-1) == "NAME" or begun == place.at - 1):
        constant = (i for i in range(option + 1, option + 4) if place.kind(i) in ("NUMBER", "STRING", "TRUE", "FALSE"))
        value = "".join(f" = {place.written(i)}" for i in list(constant)[:1])
        return f"options stand in parentheses behind WITH: WITH ({place.written(option).lower()}{value})"
    for name, equals in ((0, 1), (-1, 0)):
        if place.kind(equals) != "EQUALS" or place.kind(name) in ("QUOTED", "$end"):
            continue
        word = place.written(name)
        value = place.written(equals + 1) or "…"
        if place.written(name - 1).upper() in ("SET", "RESET"):
            return f"a setting of UQL is written SET uql.{word} = {value}" if word.lower() in SETTINGS else None
        if place.kind(name - 1) == "WITH" or (word.lower() in SETTINGS and name == 0):
            return f"options stand in parentheses behind WITH: WITH ({word} = {value})"
    return None


def sentence(place: Place) -> str | None:
    """WHERE the review is positive."""
    first, last = place.at, place.at
    while first > 0 and _is_word(place.tokens[first - 1]):
        first -= 1
    while last < len(place.tokens) and _is_word(place.tokens[last]):
        last += 1
    names = [t for t in place.tokens[first:last] if t.type == "NAME"]
    if last - first < 3 or not 0 < first <= place.at < last or len(names) < 2:
        return None
    words = place.text[place.tokens[first].lexpos : place.tokens[last - 1].endlexpos]
    return f'a text for the model stands in double quotes: "{" ".join(words.split())[:60]}"'


def _is_word(token: Token) -> bool:
    """A word that a sentence may hold; no clause begins with it."""
    return str(token.value).isidentifier() and token.type not in (RESERVED - {"NOT"}) | _NO_WORDS


_NO_WORDS = {"QUOTED", "STRING", "PARAMETER", "NUMBER", "DESC", "ASC", "NULLS", "WITH", "USING", "INTO", "MANY"}


def select_into(place: Place) -> str | None:
    kinds = [t.type for t in place.tokens[: place.at]]
    if place.written(-1).upper() == "INTO" and "FROM" not in kinds and place.kind() in ("NAME", "QUOTED"):
        return f"write TO {place.written()[:40]} at the end, or CREATE TABLE {place.written()[:40]} AS SELECT …"
    return None


def parameter_elsewhere(place: Place) -> str | None:
    if place.kind() != "PARAMETER":
        return None
    if place.kind(-1) in ("FROM", "JOIN"):
        return f"a parameter is a value or a text, no table: con.register({place.written()[1:]!r}, …) names one"
    if any(t.type == "WITH" for t in place.tokens[: place.at]) and place.kind(-1) == "EQUALS":
        return "options are constants: with con.settings(budget=n): … sets them from Python"
    return None


def brackets(place: Place) -> str | None:
    opened = sum(t.type in ("LPAREN", "LBRACKET") for t in place.tokens[: place.at])
    closed = sum(t.type in ("RPAREN", "RBRACKET") for t in place.tokens[: place.at])
    if place.kind() in ("RPAREN", "RBRACKET") and opened <= closed and "CASE" not in place.expected:
        return f"this {place.written()} closes nothing"
    if place.kind() == "$end" and place.open:
        token = place.open[-1]
        line, column = line_column(place.text, token.lexpos)
        return f"the {token.value} at line {line}, column {column} is never closed"
    return None


_FOLLOWS = {
    "BY": "a column, an expression or a text", "LIMIT": "a number of rows", "OFFSET": "a number of rows", "FROM": "a table",
    "JOIN": "a table", "UNION": "a SELECT", "INTERSECT": "a SELECT", "EXCEPT": "a SELECT",
    **dict.fromkeys(("WHERE", "AND", "OR", "NOT", "HAVING", "ON", "WHEN", "QUALIFY"), "a condition"),
}  # fmt: skip


def unfinished(place: Place) -> str | None:
    """WHERE "…" AND, GROUP BY: a word behind which the statement ends."""
    word = place.written(-1).upper()
    if place.kind() != "$end" or word not in _FOLLOWS or place.open:
        return None
    clause = f"{place.written(-2).upper()} BY" if word == "BY" else word
    return f"write what follows {clause}, {_FOLLOWS[word]}, or remove {clause}"


def missing_from(place: Place) -> str | None:
    kinds = [t.type for t in place.tokens[: place.at]]
    if place.kind() == "NAME" and "FROM" in place.expected and "FROM" not in kinds and place.at and not place.open:
        return f"is FROM missing before {place.written()[:40]}?"
    return None


def in_without_list(place: Place) -> str | None:
    if place.kind(-1) == "IN" and "LPAREN" in place.expected and "NUMBER" not in place.expected:
        return "write IN ('a', 'b') or IN (SELECT …)"
    if place.kind(-2) == "IN" and place.kind(-1) == "QUOTED":
        return f"write IN ({place.written(-1)[:40]})"
    return None


def column_beside_text(place: Place) -> str | None:
    """body "is positive", body MATCHES "the price", "it is positive" USING body, "it is positive"(body), "the "best" film"."""
    before, here = place.kind(-1), place.kind()
    touches = 0 < place.at < len(place.tokens) and place.tokens[place.at - 1].endlexpos == place.tokens[place.at].lexpos
    if touches and here in ("NAME", "QUOTED") and "QUOTED" in (before, here):
        return 'a quote inside a text is written \\" or ""'
    if before == "USING" and here == "NAME":
        return f"write USING ({place.written()})"
    if before == "QUOTED" and here in ("LPAREN", "ON") and "USING" in place.expected:
        return f"the columns that a text reads stand behind it: {place.written(-1)[:40]} USING (column)"
    text = next((place.written(i).strip('"')[:40] for i in (0, 1) if place.kind(i) == "QUOTED"), "")
    column = -2 if before == "IS" else -1
    fits = before == "IS" or ("AND" in place.expected and "AS" not in place.expected)
    if text and fits and place.kind(column) == "NAME" and here in ("NAME", "QUOTED", "MATCHES"):
        return f'the column that a text reads stands in it: "{{{place.written(column)}}} {text}"'
    return None


def no_place_for_a_text(place: Place) -> str | None:
    """CREATE TABLE t (a INT CHECK ("…")), VALUES ("a string")."""
    kinds = [token.type for token in place.tokens[: place.at]]
    text = next((str(token.value)[:40] for token in reversed(place.tokens) if token.type == "QUOTED"), "…")
    if kinds[:2] == ["CREATE", "TABLE"] and place.kind() == "LPAREN":
        return (
            f"a string stands in single quotes: '{text}'; answers to a text are stored by CREATE TABLE name AS SELECT …"
        )
    if "VALUES" in kinds and place.kind() == "$end" and not place.open:
        return f"a string stands in single quotes: '{text}'; a text for the model reads the rows of a table: SELECT … FROM …"
    return None


def type_in_angles(place: Place) -> str | None:
    """STRUCT<a: INT>, ARRAY<STRING>."""
    for i in range(-6, 0):
        if place.written(i) == "<" and place.written(i - 1).upper() in ("STRUCT", "ARRAY", "LIST", "MAP"):
            return "types are written STRUCT(a INTEGER), VARCHAR[] and MAP(VARCHAR, INTEGER)"
    return None


QUESTION_WORDS = {"how", "what", "when", "where", "which", "who", "why", "is", "are", "do", "does", "count", "list"}


def question_in_words(place: Place) -> str | None:
    """Which film is best, "which film is best"."""
    asks = len(place.tokens) > 2 and str(place.tokens[0].value).lower() in QUESTION_WORDS
    if place.at == 0 and (place.kind() == "QUOTED" or asks):
        question = " ".join(place.text[: place.end].replace('"', "").split())[:60]
        return f'a question in words is for con.ask("{question}"), uql ask "{question}", or ? {question} in the shell'
    return None


def colon(place: Place) -> str | None:
    if place.kind() == "COLON":
        return "a parameter is written $name, a cast x::type"
    if place.kind() in ("LBRACE", "RBRACE"):
        return "a hole belongs into the quotes: \"… {column} …\"; a struct is written {'a': 1}"
    return None


OTHERWISE = {
    "RECURSIVE": "make a table of it first (DuckDB runs WITH RECURSIVE where no text is asked), then query that",
    "PIVOT": "put the texts into a sub-query: PIVOT (SELECT …) ON …",
    "UNPIVOT": "put the texts into a sub-query: UNPIVOT (SELECT …) ON …",
    "FETCH": "write FETCH FIRST n ROWS ONLY or LIMIT n",
    "TIES": "write QUALIFY rank() OVER (ORDER BY x) <= n",
    "RLIKE": "write x ~ 'pattern' or regexp_matches(x, 'pattern')",
    "REGEXP": "write x ~ 'pattern' or regexp_matches(x, 'pattern')",
    "EXPLODE": "write FROM t, unnest(t.list) AS u(item)",
    "FLATTEN": "write FROM t, unnest(t.list) AS u(item)",
    "SAFE_CAST": "write TRY_CAST(x AS type)",
    "SUMMARIZE": "write SUMMARIZE SELECT …",
    "INDEX": "an index cannot contain a text: store the answers with CREATE TABLE name AS SELECT …",
    "UPDATE": 'texts stand in its SET and WHERE: UPDATE t SET x = "…" WHERE "…"',
    "DELETE": 'texts stand in its WHERE: DELETE FROM t WHERE "…"',
    "MERGE": 'put the texts into a sub-query: MERGE INTO t USING (SELECT id, "…" AS x FROM s) a ON t.id = a.id WHEN MATCHED …',
    "VIEW": "a view cannot contain a text: store the answers with CREATE TABLE name AS SELECT …",
    "MACRO": "a macro cannot contain a text: store the answers with CREATE TABLE name AS SELECT …",
}


def written_otherwise(place: Place) -> str | None:
    """Forms of DuckDB's that hold no quoted text, and what to write in their place."""
    if place.written(2).upper() == "TIES":  # FETCH FIRST n ROWS WITH TIES
        return OTHERWISE["TIES"]
    for offset in (0, -1, -2, -3, -4, -5):
        word = place.written(offset).upper()
        # a function's arguments lie between
        near = offset > -3 or place.kind(offset + 1) == "LPAREN"
        if word in OTHERWISE and near and place.kind(offset) != "QUOTED":
            return OTHERWISE[word]
    return None


def semantic_form(words: Sequence[str]) -> str | None:
    """The form of a statement about semantic tables that begins with these words; None for another statement.

    >>> semantic_form("drop semantic moods".split())
    'DROP SEMANTIC TABLE name'
    """
    match [word.upper() for word in words[:4]]:
        case ["CREATE", "SEMANTIC", *_] | ["CREATE", "OR", "REPLACE", "SEMANTIC"]:
            return "CREATE SEMANTIC TABLE name AS SELECT … KEY (column): of the columns that tell one row from another"
        case ["DROP", "SEMANTIC", *_]:
            return "DROP SEMANTIC TABLE name"
        case ["REFRESH", *_]:
            return "REFRESH name"
    return None


def semantic_table(place: Place) -> str | None:
    """A statement about semantic tables with its parts in other places, or with other words."""
    if any(token.type == "AS" for token in place.tokens[: place.at]) and place.written(-1).upper() != "KEY":
        return None  # in its query
    form = semantic_form([place.written(i - place.at) for i in range(4)])
    return form and f"write {form}"


SLIPS: tuple[Callable[[Place], str | bool | None], ...] = (
    semantic_table,
    lambda p: (
        p.written(-1).upper() == "PROMPT"
        and p.kind() in ("STRING", "NAME", "LPAREN")
        and f'PROMPT takes a text in double quotes: PROMPT "{p.written().strip(chr(39))[:40]}"'
    ),
    labels_in_quotes,
    options_in_brackets,
    parameter_elsewhere,
    select_into,
    nothing_inside,
    written_otherwise,
    no_place_for_a_text,
    type_in_angles,
    colon,
    lambda p: p.kind(-1) in ("GROUP", "ORDER") and "BY" in p.expected and f"write {p.kind(-1)} BY",
    trailing_comma,
    lambda p: (
        p.kind(-1) in ("SELECT", "DISTINCT")
        and p.kind() in ("FROM", "WHERE", "$end")
        and "say what to select: *, columns, or a text"
    ),
    near_miss,
    unfinished,
    lambda p: p.kind() == "NUMBER" and p.written(-1).upper() == "TOP" and f"write LIMIT {p.written()} at the end",
    lambda p: (
        p.kind() == "NUMBER"
        and p.written(-2).upper() == "SAMPLE"
        and f"write TABLESAMPLE {p.written()}% after the table, or USING SAMPLE {p.written()} ROWS"
    ),
    lambda p: (
        p.kind() == "AS"
        and bool(p.open)
        and p.written(p.tokens.index(p.open[-1]) - 1 - p.at).upper() == "STRUCT"
        and f"a struct is written {{'{p.written(1)}': {p.written(-1)}}}"
    ),
    lambda p: p.kind() == "COMMA" and p.kind(-2) == "LIMIT" and "write LIMIT count OFFSET how_many_to_skip",
    lambda p: (
        p.written() == "%"
        and p.kind(-1) == "NUMBER"
        and {"COMMA", "RPAREN"} <= p.expected
        and f"a share is a number from 0 to 1: {float(p.written(-1)) / 100:g}"
    ),
    lambda p: p.written() == "%" and "CASE" in p.expected and "a parameter is written $name",
    lambda p: p.kind(-1) == "IS" and p.written().lower() in ("none", "nil") and "write IS NULL",
    lambda p: (
        p.kind() == "STRING"
        and p.kind(-1) in ("IS", "NOT")
        and f"write {'<>' if p.kind(-1) == 'NOT' else '='} {p.written()}"
    ),
    lambda p: p.kind(-1) == "ON" and p.kind(-2) == "DISTINCT" and f"write DISTINCT ON ({p.written()})",
    column_beside_text,
    reserved_name,
    in_without_list,
    lambda p: p.kind() == "NOT" and p.kind(-1) in ("EQUALS", "COMPARE") and "put NOT … in parentheses",
    lambda p: (
        p.kind() in ("AND", "OR", "EQUALS", "COMPARE", "THEN", "CONCAT", "SLASH")
        and "CASE" in p.expected
        and f"something is missing before {p.written()}"
    ),
    quoted_alias,
    lambda p: (
        {"ON", "USING"} <= p.expected
        and "WHERE" not in p.expected
        and "a JOIN needs ON condition or USING (columns); without one it is CROSS JOIN"
    ),
    question_in_words,
    sentence,
    lambda p: (
        p.kind(-1) == "STAR"
        and p.written().upper() == "COLUMNS"
        and "write COLUMNS(…): with a * before it, it gives the arguments of a function, as in greatest(*COLUMNS('n.*'))"
    ),
    missing_from,
    brackets,
    lambda p: (
        p.at == 0
        and p.kind() == "NAME"
        and "UQL reads SELECT, WITH, EXPLAIN, SET, RESET, CREATE TABLE … AS, INSERT and COPY"
    ),
)
"""Each gives the words for one slip, or nothing; the first that speaks is heard. A short one is its condition and its words."""
