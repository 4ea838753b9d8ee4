"""Random statements with nothing semantic in them: constants, parameters, ordinals, and aliases that shadow columns.

What DuckDB makes of a statement is the truth; some statements are wrong on purpose, and then both have to say so.
"""

from __future__ import annotations

import random
from typing import Any

TABLES = (
    "CREATE TABLE t AS SELECT i AS id, i % 3 AS a, (i * 7) % 5 AS b, CASE WHEN i % 4 = 1 THEN NULL ELSE substr('abc', i % 3 + 1, 1) || (i % 2) END AS s,"
    " DATE '2024-01-01' + (i % 4)::INTEGER AS d, i % 2 = 0 AS ok FROM range(13) r(i)",
    "CREATE TABLE u AS SELECT i AS id, 2 - i % 3 AS a, substr('AB', i % 2 + 1, 1) AS s FROM range(5) r(i)",
)
COLUMNS = {"t": {"id": "n", "a": "n", "b": "n", "s": "s", "d": "d", "ok": "b"}, "u": {"id": "n", "a": "n", "s": "s"}}
NAMES = ("k", "id", "a", "b", "s", "year", "kind", "d", "total")
CONSTANTS = {
    "n": ("2", "1", "3", "2024", "1.5", "-1", "2 + 1", "CAST(2 AS BIGINT)"),
    "s": ("'happy'", "'a'", "'2'", "''"),
    "d": ("DATE '2024-05-06'",),
    "b": ("true", "false"),
}
VALUES: dict[str, tuple[Any, ...]] = {"n": (2, 1, 7, -3, 1.5), "s": ("happy", "1", "a0"), "b": (True,)}


class Statements:
    """A source of random statements; the same seed makes the same ones."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.values: dict[str, Any] = {}

    def statement(self) -> tuple[str, dict[str, Any]]:
        """One statement and the values of its parameters."""
        self.values = {}
        return self._query(0), self.values

    # ------------------------------------------------------------------------------------------------------- queries
    def _maybe(self, share: float) -> bool:
        return self.rng.random() < share

    def _query(self, depth: int) -> str:
        kind = self.rng.random()
        if depth < 2 and kind < 0.12:
            return self._union(depth)
        if depth < 1 and kind < 0.22:
            name = self.rng.choice(("w", "t"))
            inner, columns = self._select(depth + 1, cut=False)
            outer, _ = self._select(depth + 1, {name: columns})
            return f"WITH {name} AS ({inner}) {outer}"
        return self._select(depth)[0]

    def _union(self, depth: int) -> str:
        kinds = [self.rng.choice("ns") for _ in range(self.rng.randint(1, 3))]
        sides, names = [], []
        for _ in range(2):
            items = [(self._expr(kind, COLUMNS["t"], 1), self.rng.choice(NAMES)) for kind in kinds]
            names = names or [name for _, name in items]
            where = f" WHERE {self._condition(COLUMNS['t'], 1)}" if self._maybe(0.5) else ""
            sides.append(f"SELECT {', '.join(f'{e} AS {n}' for e, n in items)} FROM t{where}")
        op = self.rng.choice(("UNION", "UNION ALL", "UNION ALL", "INTERSECT", "EXCEPT", "UNION ALL BY NAME"))
        keys = [self._key(self.rng.choice([*names, str(self.rng.randint(1, len(kinds)))])) for _ in range(2)]
        whole = ", ".join(keys) if self._maybe(0.4) else "ALL"
        return f"{sides[0]} {op} {sides[1]} ORDER BY {whole}{self._cut()}"

    def _select(
        self, depth: int, tables: dict[str, dict[str, str]] | None = None, cut: bool = True
    ) -> tuple[str, dict[str, str]]:
        """A SELECT, and the columns that it gives with their kinds."""
        source, columns = self._source(depth, tables or COLUMNS)
        grouped = self._maybe(0.35)
        if grouped:
            return self._grouped(source, columns, depth, cut)
        items, kinds = [], []
        for _ in range(self.rng.randint(1, 4)):
            kind = self.rng.choice("nnnssdb")
            window = kind == "n" and self._maybe(0.15)
            items.append(self._item(self._window(columns) if window else self._expr(kind, columns, depth)))
            kinds.append(kind)
        on = ""
        if self._maybe(0.12):
            on = f"DISTINCT ON ({self._sort_name(items, columns)}) "
        elif self._maybe(0.12):
            on = "DISTINCT "
        where = f" WHERE {self._condition(columns, depth, items)}" if self._maybe(0.4) else ""
        qualify = f" QUALIFY {self._window(columns)} <= {self.rng.randint(2, 9)}" if self._maybe(0.06) else ""
        order = self._order(items, columns, depth)
        on = "" if on.startswith("DISTINCT ON") and not order else on  # which row is the first would be open
        text = f"SELECT {on}{', '.join(items)} FROM {source}{where}{qualify}{order}{self._cut() if cut else ''}"
        return text, _given(items, kinds)

    def _grouped(self, source: str, columns: dict[str, str], depth: int, cut: bool) -> tuple[str, dict[str, str]]:
        items, kinds, keys = [], [], []
        for _ in range(self.rng.randint(0, 2)):
            kind = self.rng.choice("nnssd")
            item = self._item(self._expr(kind, columns, 2))
            items.append(item)
            kinds.append(kind)
            expr, _, alias = item.rpartition(" AS ")
            place = str(len(items))
            keys.append(self.rng.choice([place, alias or expr, alias or expr, expr or item]))
        for _ in range(self.rng.randint(1, 2)):
            items.append(self._item(self._aggregate(columns)))
            kinds.append("n")
        if self._maybe(0.2):
            keys.append(self.rng.choice([*columns, "2", "'happy'", "7"]))
        if keys and self._maybe(0.2):
            keys = ["ALL"]
        group = ", ".join(keys)
        sets = bool(keys) and keys != ["ALL"] and self._maybe(0.2)
        if sets:
            group = f"{self.rng.choice(('ROLLUP', 'CUBE'))} ({', '.join(self._of_sets(keys))})"
        where = f" WHERE {self._condition(columns, depth, items)}" if self._maybe(0.3) else ""
        having = f" HAVING {self._aggregate(columns)} > {self.rng.randint(0, 4)}" if self._maybe(0.2) else ""
        having = "" if sets else having  # DuckDB 2.0 loses groups of a literal there, not of a parameter
        order = self._order(items, {}, depth) if items else ""
        group = f" GROUP BY {group}" if keys else ""
        distinct = "DISTINCT " if self._maybe(0.1) else ""
        text = f"SELECT {distinct}{', '.join(items)} FROM {source}{where}{group}{having}{order}{self._cut() if cut else ''}"
        return text, _given(items, kinds)

    def _source(self, depth: int, tables: dict[str, dict[str, str]]) -> tuple[str, dict[str, str]]:
        name = self.rng.choice(list(tables))
        columns = tables[name]
        if depth < 2 and tables is COLUMNS and self._maybe(0.15):
            inner, given = self._select(depth + 1)
            if given:
                return f"({inner}) AS q", given
        if tables is COLUMNS and self._maybe(0.12):
            return "t JOIN u USING (a)", {"a": "n", "b": "n", "d": "d"}
        return name, columns

    # --------------------------------------------------------------------------------------------------- expressions
    def _item(self, expr: str) -> str:
        return f"{expr} AS {self.rng.choice(NAMES)}" if self._maybe(0.75) else expr

    def _parameter(self, kind: str) -> str:
        name = f"p{len(self.values)}"
        self.values[name] = self.rng.choice(VALUES[kind])
        return f"${name}"

    def _column(self, kind: str, columns: dict[str, str]) -> str | None:
        fit = [name for name, of in columns.items() if of == kind]
        name = self.rng.choice(fit) if fit else None
        return f'"{name}"' if name is not None and self._maybe(0.1) else name

    def _expr(self, kind: str, columns: dict[str, str], depth: int) -> str:
        chance = self.rng.random()
        if chance < 0.25:
            return self.rng.choice(CONSTANTS[kind])
        if chance < 0.32 and kind in VALUES:
            return self._parameter(kind)
        column = self._column(kind, columns)
        if column is None or (chance > 0.95 and depth < 2 and kind == "n"):
            return f"(SELECT max(id) + {self.rng.randint(1, 3)} FROM u)" if kind == "n" else CONSTANTS[kind][0]
        if chance < 0.7:
            return column
        if kind == "n":
            return self.rng.choice((f"-{column}", f"{column} + 1", f"{column} % 2", f"coalesce({column}, 2)"))
        if kind == "s":
            return self.rng.choice((f"upper({column})", f"{column} || 'x'", f"CASE WHEN {column} > 'b' THEN 'z' END"))
        return column

    def _of_sets(self, keys: list[str]) -> list[str]:
        return keys

    def _aggregate(self, columns: dict[str, str]) -> str:
        column = self._column("n", columns)
        if column is None or self._maybe(0.3):
            return self.rng.choice(("count(*)", "count(*) + 1", "sum(2)", "max('x')", "count(*) FILTER (WHERE true)"))
        return self.rng.choice(
            (f"sum({column})", f"max({column})", f"min({column} + 1)", f"list({column} ORDER BY {column} DESC, 1)[1]")
        )

    def _window(self, columns: dict[str, str]) -> str:
        column = self._column("n", columns) or "1"
        part = self.rng.choice(("", f"PARTITION BY {column} % 2 ", "PARTITION BY 1 ", "PARTITION BY 'x' "))
        order = ", ".join([*self.rng.sample(["2", column, "'x'"], self.rng.randint(1, 3)), *columns])
        return f"{self.rng.choice(('row_number()', 'rank()', 'count(*)'))} OVER ({part}ORDER BY {order})"

    def _condition(self, columns: dict[str, str], depth: int, items: list[str] | None = None) -> str:
        number, word = self._column("n", columns) or "1", self._column("s", columns) or "'b'"
        choices = [
            f"{number} > 1",
            f"{number} IN (1, 2, 3)",
            f"{number} BETWEEN 0 AND {self.rng.randint(1, 5)}",
            f"{word} IS NOT NULL",
            f"{word} <> 'a0'",
            f"{word} LIKE 'a%'",
            f"NOT ({number} = 2)",
            f"{number} < {self._parameter('n') if self._maybe(0.3) else '4'} AND {word} IS NOT NULL",
            f"{number} IN (SELECT id FROM u WHERE u.a > 0)",
            f"EXISTS (SELECT 1 FROM u WHERE {number} = u.id)",
            "true",
        ]
        named = [item.rpartition(" AS ")[2] for item in items or () if " AS " in item and "(" not in item]
        if named and self._maybe(0.2):
            return f"{self.rng.choice(named)} IS NOT NULL"
        return self.rng.choice(choices)

    # ------------------------------------------------------------------------------------------------------- ordering
    def _sort_name(self, items: list[str], columns: dict[str, str]) -> str:
        named = [item.rpartition(" AS ")[2] for item in items if " AS " in item]
        places = [str(place + 1) for place in range(len(items))]
        return self.rng.choice([*named, *named, *places, *columns])

    def _key(self, expr: str) -> str:
        direction = self.rng.choice(("", "", " DESC", " ASC"))
        return expr + direction + self.rng.choice(("", "", " NULLS FIRST", " NULLS LAST"))

    def _order(self, items: list[str], columns: dict[str, str], depth: int) -> str:
        chance = self.rng.random()
        if chance < 0.1:
            return ""
        if chance < 0.2:
            return f" ORDER BY {self._key('ALL')}"
        keys = []
        for _ in range(self.rng.randint(1, 3)):
            expr = self._sort_name(items, columns)
            change = self.rng.random()
            if change < 0.06:
                expr = f"{expr} COLLATE NOCASE"
            elif change < 0.12:
                expr = f"({expr})"
            elif change < 0.15:
                expr = self.rng.choice(("'happy'", "9", "1.5", "NULL", "2 + 1", "true", "-1"))
            elif change < 0.17:
                expr = self._parameter("n")
            elif change < 0.25 and columns:
                expr = self._expr("n", columns, 2)
            if expr.isdigit() and int(expr) > len(items):
                return " ORDER BY 9"  # between others, and under DISTINCT ON, DuckDB counts more than the items
            keys.append(self._key(expr))
        return f" ORDER BY {', '.join([*keys, *columns])}"

    def _cut(self) -> str:
        chance = self.rng.random()
        if chance < 0.6:
            return ""
        limit = self._parameter_limit() if chance < 0.7 else str(self.rng.randint(0, 6))
        return f" LIMIT {limit}" + (f" OFFSET {self.rng.randint(0, 2)}" if self._maybe(0.3) else "")

    def _parameter_limit(self) -> str:
        name = f"p{len(self.values)}"
        self.values[name] = self.rng.randint(0, 6)
        return f"${name}"


def _given(items: list[str], kinds: list[str]) -> dict[str, str]:
    """The names that later clauses can use, with their kinds."""
    named = [(item.rpartition(" AS ")[2], kind) for item, kind in zip(items, kinds, strict=True) if " AS " in item]
    names = [name for name, _ in named]
    return {name: kind for name, kind in named if names.count(name) == 1}
