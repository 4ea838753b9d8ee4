"""Statements that pass the guard and would take all time or memory: families of them, each with sizes drawn from a seed."""

from __future__ import annotations

import random
from collections.abc import Callable

import pyarrow as pa

LONG = 300_000  # characters of a text in `t`
ROWS = 2_000


def tables() -> dict[str, pa.Table]:
    """t: ids and short texts; long: two long texts."""
    t = pa.table({"id": list(range(ROWS)), "b": [f"film number {i}" for i in range(ROWS)]})
    long = pa.table({"x": ["ab" * (LONG // 2)], "y": ["ba" * (LONG // 2)]})
    return {"t": t, "long": long}


def statements(seeds: int) -> list[tuple[str, str]]:
    """Each family once for each seed, none twice: (its name and seed, the statement)."""
    made: dict[str, str] = {}
    for seed in range(seeds):
        for family in FAMILIES:
            made.setdefault(family(random.Random(f"{family.__name__} {seed}")), f"{family.__name__}-{seed}")
    return [(name, text) for text, name in made.items()]


# ---------------------------------------------------------------------------------------------- while a statement is bound
def _steps(first: str, item: str, n: int) -> str:
    text = first
    for _ in range(n):
        text = f"SELECT {item} FROM ({text}) AS s"
    return text


def doubling_sums(r: random.Random) -> str:
    return _steps(
        "SELECT id AS x FROM t", r.choice(["x + x AS x", "x * x + x AS x", "x - (x + x) AS x"]), r.randint(40, 60)
    )


def doubling_aliases(r: random.Random) -> str:
    n, op = r.randint(40, 100), r.choice("+-*")
    return "SELECT id AS a0, " + ", ".join(f"a{i} {op} a{i} AS a{i + 1}" for i in range(n)) + " FROM t"


def doubling_texts(r: random.Random) -> str:
    return _steps("SELECT b AS x FROM t", r.choice(["x || x AS x", "concat(x, x) AS x"]), r.randint(36, 60))


def doubling_lists(r: random.Random) -> str:
    return _steps("SELECT [id] AS x FROM t", r.choice(["list_concat(x, x) AS x", "x || x AS x"]), r.randint(36, 60))


def doubling_structs(r: random.Random) -> str:
    n = r.randint(30, 50)
    return _steps("SELECT id AS x FROM t", r.choice(["struct_pack(a := x, b := x) AS x", "{'a': x, 'b': x} AS x"]), n)


def nested_structs(r: random.Random) -> str:
    text = "id"
    for _ in range(r.randint(12, 13)):
        text = f"struct_pack(a := {text}, b := id)"
    pairs = ", ".join(f"{text} AS c{i}" for i in range(3))
    return _steps(f"SELECT {pairs} FROM t", "struct_pack(a := c0, b := c0) AS c0, c1, c2", 30)


def doubling_rows(r: random.Random) -> str:
    return _steps("SELECT id AS x FROM t", "row(x, x) AS x", r.randint(30, 50))


def doubling_cases(r: random.Random) -> str:
    return _steps("SELECT id AS x FROM t", "CASE WHEN x > 1 THEN x + 1 ELSE x - 1 END AS x", r.randint(36, 60))


def doubling_ctes(r: random.Random) -> str:
    n, how = r.randint(26, 60), r.choice(["a.x FROM c{0} AS a, c{0} AS b", "x FROM c{0} UNION ALL SELECT x FROM c{0}"])
    parts = ["c0 AS (SELECT id AS x FROM t)"]
    parts += [f"c{i + 1} AS (SELECT {how.format(i)})" for i in range(n)]
    return f"WITH {', '.join(parts)} SELECT count(*) AS n FROM c{n}"


def doubling_sub_queries(r: random.Random) -> str:
    parts = ["c0 AS (SELECT 1 AS x)"]
    n = r.randint(26, 60)
    parts += [f"c{i + 1} AS (SELECT (SELECT max(x) FROM c{i}) + (SELECT min(x) FROM c{i}) AS x)" for i in range(n)]
    return f"WITH {', '.join(parts)} SELECT x FROM c{n}"


def many_cubes(r: random.Random) -> str:
    n = r.randint(13, 15)
    return f"SELECT count(*) FROM t GROUP BY CUBE ({', '.join(f'id % {i + 2}' for i in range(n))})"


# ------------------------------------------------------------------------------------------------------ inside one call
def similar(r: random.Random) -> str:
    name = r.choice(["jaro_winkler_similarity", "jaro_similarity"])
    return f"SELECT {name}(repeated.x, repeated.y) FROM (SELECT {_wide('x', r)}, {_wide('y', r)} FROM long) AS repeated"


def distances(r: random.Random) -> str:
    name = r.choice(["levenshtein", "damerau_levenshtein"])
    return f"SELECT {name}(x, y) FROM (SELECT {_wide('x', r)}, {_wide('y', r)} FROM long) AS repeated"


def _wide(name: str, r: random.Random) -> str:
    return "concat(" + ", ".join([name] * r.randint(3, 8)) + f") AS {name}"


def replacements(r: random.Random) -> str:
    n, wide = r.randint(4, 9), r.randint(20, 60)
    return "SELECT length(" + "replace(" * n + "x" + f", 'a', '{'a' * wide}')" * n + ") FROM long"


def replacements_by_rows(r: random.Random) -> str:
    return f"SELECT length(replace(x, '{r.choice('ab')}', y)) FROM long"


def patterns(r: random.Random) -> str:
    n, wide = r.randint(3, 5), r.randint(50, 100)
    return "SELECT length(" + "regexp_replace(" * n + "x" + f", '', '{'z' * wide}', 'g')" * n + ") FROM long"


def references(r: random.Random) -> str:
    n, wide = r.randint(6, 9), r.randint(12, 30)
    return (
        "SELECT length("
        + "regexp_replace(" * n
        + "x"
        + rf", '(.*)', '{chr(92)}1{(chr(92) + '1') * wide}')" * n
        + ") FROM long"
    )


def lambdas(r: random.Random) -> str:
    names = "abcde"[: r.randint(3, 5)]
    inner = " + ".join(names)
    for name in reversed(names):
        inner = f"list_transform(l, {name} -> {inner})"
    return f"SELECT length({inner}) AS n FROM (SELECT list(id) AS l FROM t) AS s"


def split_texts(r: random.Random) -> str:
    steps = r.randint(2, 4)
    joins = ", ".join(f"unnest(string_split(x, 'b')) AS u{i}(w{i})" for i in range(steps))
    return f"SELECT max({' || '.join(f'w{i}' for i in range(steps))}) FROM long, {joins}"


# ------------------------------------------------------------------------------------------------------ from row to row
def products(r: random.Random) -> str:
    n = r.randint(4, 8)
    names = ", ".join(f"t AS a{i}" for i in range(n))
    return f"SELECT sum(hash({', '.join(f'a{i}.id' for i in range(n))}) % 7) FROM {names}"


def lists_of_products(r: random.Random) -> str:
    made = r.choice(
        ["list(a.b || c.b || d.b)", "string_agg(a.b || c.b || d.b, ',')", "array_agg(struct_pack(p := a.b, q := d.b))"]
    )
    return f"SELECT {made} FROM t AS a, t AS c, t AS d"


def distinct_products(r: random.Random) -> str:
    made = r.choice(
        [
            "count(DISTINCT a.id * 1000003 + c.id * 1009 + d.id)",
            "histogram(a.b || c.b || d.b)",
            "median(a.id * c.id + d.id)",
        ]
    )
    return f"SELECT {made} FROM t AS a, t AS c, t AS d"


def sorted_products(r: random.Random) -> str:
    key = r.choice(["hash(a.b, c.b, d.b)", "a.b || d.b || c.b", "d.id * 7 % 11, a.b DESC, c.b"])
    return f"SELECT row_number() OVER (ORDER BY {key}) AS n FROM t AS a, t AS c, t AS d"


def windows(r: random.Random) -> str:
    made = r.choice(["list(a.b) OVER (ORDER BY a.id, c.id)", "string_agg(a.b, '') OVER (ORDER BY a.id, c.id)"])
    return f"SELECT length({made}) AS n FROM t AS a, t AS c"


def joins_of_inequalities(r: random.Random) -> str:
    n = r.randint(3, 5)
    joins = " ".join(f"JOIN t AS a{i} ON a{i}.b <> a{i - 1}.b AND length(a{i}.b || a0.b) > {i}" for i in range(1, n))
    return f"SELECT count(*) FROM t AS a0 {joins}"


def correlated(r: random.Random) -> str:
    return f"SELECT count(*) FROM t AS a, t AS c, t AS f, t AS g WHERE EXISTS (SELECT 1 FROM t AS d, t AS e WHERE d.id * e.id > a.id * c.id + f.id * g.id + {r.randint(10**7, 10**8)})"


# ------------------------------------------------------------------------------------------------------------- deep trees
def deep_types(r: random.Random) -> str:
    n = r.randint(70, 95)
    kind = r.choice(["STRUCT(a {0})", "{0}[]", "STRUCT(a {0}[])"])
    text = "INTEGER"
    for _ in range(n if kind != "STRUCT(a {0}[])" else n // 2 + 20):
        text = kind.format(text)
    return f"SELECT NULL::{text} AS x"


def deep_values(r: random.Random) -> str:
    n = r.randint(70, 90)
    left, right = r.choice([("[", "]"), ("{'a': ", "}")])
    return "SELECT " + left * n + "1" + right * n + " AS x"


def deep_growing_types(r: random.Random) -> str:
    return _steps(
        "SELECT id AS x FROM t", r.choice(["[x] AS x", "{'a': x} AS x", "list_value(x) AS x"]), r.randint(70, 90)
    )


def deep_functions(r: random.Random) -> str:
    n = r.randint(300, 900)
    return "SELECT " + "abs(" * n + "id" + ")" * n + " FROM t"


FAMILIES: tuple[Callable[[random.Random], str], ...] = (
    doubling_sums,
    doubling_aliases,
    doubling_texts,
    doubling_lists,
    doubling_structs,
    nested_structs,
    doubling_rows,
    doubling_cases,
    doubling_ctes,
    doubling_sub_queries,
    many_cubes,
    similar,
    distances,
    replacements,
    replacements_by_rows,
    patterns,
    references,
    lambdas,
    split_texts,
    products,
    lists_of_products,
    distinct_products,
    sorted_products,
    windows,
    joins_of_inequalities,
    correlated,
    deep_types,
    deep_values,
    deep_growing_types,
    deep_functions,
)
