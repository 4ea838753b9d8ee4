"""Texts drawn from a grammar of llama.cpp, in the part of its notation that `uql.nl.small.slots_grammar` writes."""

from __future__ import annotations

import re
from random import Random

_TOKEN = re.compile(r'"(?:\\.|[^"\\])*"|\[[^]]*\]|\{\d+(?:,\d+)?\}|[a-z]+(?:-[a-z]+)*|[()|?]')


def drawn(grammar: str, random: Random) -> str:
    """One text of the grammar, its choices by chance."""
    rules = {}
    for line in grammar.splitlines():
        name, _, body = line.partition(" ::= ")
        rules[name] = _TOKEN.findall(body)
    return _rule("root", rules, random)


def _literal(token: str) -> str:
    return re.sub(r"\\(.)", lambda m: "\n" if m[1] == "n" else m[1], token[1:-1])


def _rule(name: str, rules: dict[str, list[str]], random: Random) -> str:
    return _options(rules[name], 0, rules, random)[0]


def _options(tokens: list[str], at: int, rules: dict[str, list[str]], random: Random) -> tuple[str, int]:
    """One of the alternatives up to the end of a group, and where that is."""
    starts, depth, i = [at], 0, at
    while i < len(tokens) and not (tokens[i] == ")" and depth == 0):
        depth += {"(": 1, ")": -1}.get(tokens[i], 0)
        if tokens[i] == "|" and depth == 0:
            starts.append(i + 1)
        i += 1
    return _sequence(tokens, random.choice(starts), rules, random), i


def _sequence(tokens: list[str], at: int, rules: dict[str, list[str]], random: Random) -> str:
    said = ""
    while at < len(tokens) and tokens[at] not in "|)":
        start, end = at, _end(tokens, at)
        least, most, at = 1, 1, end
        if at < len(tokens) and tokens[at] == "?":
            least, at = 0, at + 1
        elif at < len(tokens) and tokens[at].startswith("{"):
            bounds = [int(bound) for bound in tokens[at][1:-1].split(",")]
            least, most = bounds[0], bounds[-1]
            at += 1
        said += "".join(_one(tokens, start, rules, random) for _ in range(random.randint(least, min(most, least + 3))))
    return said


def _end(tokens: list[str], at: int) -> int:
    depth = 0
    while True:
        depth += {"(": 1, ")": -1}.get(tokens[at], 0)
        at += 1
        if depth == 0:
            return at


def _one(tokens: list[str], at: int, rules: dict[str, list[str]], random: Random) -> str:
    token = tokens[at]
    if token == "(":
        return _options(tokens, at + 1, rules, random)[0]
    if token.startswith('"'):
        return _literal(token)
    if token.startswith("["):
        if token[1] == "^":
            return random.choice("ab ")
        low, high = (token[1], token[3]) if token[2] == "-" else (token[1], token[1])
        return chr(random.randint(ord(low), ord(high)))
    return _rule(token, rules, random)
