"""UQL for Pygments: the shell, notebooks and the documentation highlight with it. A text for the model has a colour of its own.

As in the language, a double-quoted text is a name after FROM, JOIN, AS, TO and a dot, a string after a comparison, and else one
that a model is asked (or a column of that name, which only the binder can tell).
"""

from __future__ import annotations

from typing import ClassVar

from pygments.lexer import RegexLexer, bygroups, words
from pygments.token import Comment, Keyword, Name, Number, Operator, Punctuation, String, Text, _TokenType

from uql.compiler.lexer import WORDS

SEMANTIC = String.Semantic  # a quoted text that a model is asked

_QUOTED = r'"(?:[^"\\]|""|\\.)*(?:"|\Z)'
_SPACE = r"(\s+)"


class UQLLexer(RegexLexer):  # type: ignore[misc]
    """Source text of UQL.

    >>> [(str(kind), text) for kind, text in UQLLexer().get_tokens('SELECT a FROM "t" WHERE "it is so"') if text.strip()][-2:]
    [('Token.Keyword', 'WHERE'), ('Token.Literal.String.Semantic', '"it is so"')]
    """

    name = "UQL"
    aliases: ClassVar[list[str]] = ["uql"]
    filenames: ClassVar[list[str]] = ["*.uql"]
    mimetypes: ClassVar[list[str]] = ["text/x-uql"]
    flags = 10  # re.IGNORECASE | re.MULTILINE

    tokens: ClassVar[dict[str, list[tuple[object, ...]]]] = {
        "root": [
            (r"--[^\n]*", Comment.Single),
            (r"/\*[\s\S]*?(?:\*/|\Z)", Comment.Multiline),
            (r"\s+", Text.Whitespace),
            (rf"\b(FROM|JOIN|AS|TO|INTO|TABLE){_SPACE}({_QUOTED})", bygroups(Keyword, Text.Whitespace, Name.Variable)),
            (rf"(\.)({_QUOTED})", bygroups(Punctuation, Name.Variable)),
            (rf"(<>|!=|<=|>=|==|=|<|>)(\s*)({_QUOTED})", bygroups(Operator, Text.Whitespace, String.Double)),
            (rf"\b(LIKE|ILIKE|BETWEEN){_SPACE}({_QUOTED})", bygroups(Keyword, Text.Whitespace, String.Double)),
            (_QUOTED, SEMANTIC),
            (r"'(?:[^']|'')*(?:'|\Z)", String.Single),
            (r"\$\w+", Name.Attribute),
            (r"\d+(?:\.\d*)?(?:[eE][+-]?\d+)?|\.\d+", Number),
            (words(tuple(sorted(WORDS)), prefix=r"\b", suffix=r"\b"), Keyword),
            (r"([A-Za-z_]\w*)(\s*)(\()", bygroups(Name.Function, Text.Whitespace, Punctuation)),
            (r"[^\W\d]\w*", Name),
            (r"<>|!=|<=|>=|==|::|\|\||[=<>+\-*/%]", Operator),
            (r"[(),.;\[\]{}]", Punctuation),
            (r".", Text),
        ]
    }


def highlighted(text: str, *, color: bool) -> str:
    """A statement for a terminal, in colours where it may have them."""
    if not color:
        return text
    from pygments import highlight
    from pygments.formatters import Terminal256Formatter

    return str(highlight(text, UQLLexer(stripnl=False, ensurenl=False), Terminal256Formatter(style=style())))


def style() -> type:
    """Colours that are readable on dark and on light terminals."""
    from pygments.style import Style

    class UQLStyle(Style):  # type: ignore[misc]
        styles: ClassVar[dict[_TokenType, str]] = {
            Keyword: "bold ansiblue",
            Name.Function: "ansicyan",
            Name.Attribute: "ansiyellow",
            String: "ansigreen",
            SEMANTIC: "bold ansimagenta",
            Number: "ansiyellow",
            Comment: "italic ansibrightblack",
        }

    return UQLStyle
