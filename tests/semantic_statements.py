"""Random statements with texts in every place that a column may have, in the notation of `labels`: DuckDB over the labels is the truth.

They have the shapes of `plain_statements`, over tables with a column to ask about. Rows are in a certain order wherever LIMIT cuts.
"""

from __future__ import annotations

import plain_statements
from plain_statements import Statements

REVIEWS = {"id": "n", "stars": "n", "film": "s", "day": "d", "text": "asked"}
COLUMNS = {
    "reviews": REVIEWS,
    "good": REVIEWS,
    "one": REVIEWS,
    "nothing": REVIEWS,
    "films": {"film": "s", "letters": "n"},
}
WEIGHTS = {"reviews": 5}
JOINS = ("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "SEMI JOIN", "ANTI JOIN")
INNER = "(SELECT id AS i, film AS f, stars AS s_, text FROM reviews WHERE id < 20) AS v"  # film, stars and id mean the outer row
SUB_QUERIES = (
    f"EXISTS (SELECT 1 FROM {INNER} WHERE f = film AND <joke v.text>)",
    f"NOT EXISTS (SELECT 1 FROM {INNER} WHERE f = film AND i < id AND <joke v.text>)",
    f"stars IN (SELECT s_ FROM {INNER} WHERE f = film AND <joke v.text>)",
    f"stars NOT IN (SELECT s_ FROM {INNER} WHERE <joke v.text> AND s_ > 2)",
    f"stars >= ALL (SELECT s_ FROM {INNER} WHERE f = film AND NOT <pos v.text>)",
    f"(SELECT count(*) FROM {INNER} WHERE i BETWEEN id - 5 AND id AND <plot v.text>) > 1",
    f"(SELECT max(s_) FROM {INNER} WHERE f = film AND <pos v.text>) > stars",
)
VALUES = {
    "n": (
        f"(SELECT max(i) FROM {INNER} WHERE f = film AND <joke v.text>)",
        f"(SELECT max((SELECT count(*) FROM films AS w WHERE w.letters > s_)) FROM {INNER} WHERE f = film AND <plot v.text>)",
        "MAP {film: <rating>::INTEGER}[film]",
        "[stars, <rating>::INTEGER][2]",
        "({'a': <anger>::INTEGER}).a",
        "list_sum([y + <rating>::INTEGER FOR y IN [1, 2]])",
        "<rating>::INTEGER",
        "<anger>::INTEGER + 1",
        "coalesce(<rating>::INTEGER, 2)",
        "-<rating>",
        "<rating> * 2",
        "CASE WHEN <pos> THEN 1 ELSE 0 END",
        "CASE <topic> WHEN 'plot' THEN 1 WHEN 'music' THEN 2 END",
        "length(<name>)",
        "if(<joke>, 3, NULL)",
        "<pos>::BOOLEAN::INTEGER",
        "nullif(<rating>::INTEGER, 3)",
    ),
    "s": (
        "<name>::VARCHAR",
        "upper(<name>)",
        "<name> || 'x'",
        "<topic>::ENUM('plot','acting','music')::VARCHAR",
        "CASE WHEN <pos> THEN 'y' WHEN NOT <joke> THEN 'n' END",
        "coalesce(<name>::VARCHAR, 'none')",
    ),
    "d": ("<written>::DATE",),
    "b": (
        "<pos>::BOOLEAN",
        "NOT <pos>::BOOLEAN",
        "<rating> > 4",
        "coalesce(<joke>, stars > 2)",
        "'jokes' IN <tags>::VARCHAR[]",
        "(<pos> AND <joke>)",
        "<pos> IS NULL",
        "<topic> IN ('plot', 'music') OR <joke>",
    ),
}
LEAVES = (
    "<pos>",
    "<joke>",
    "<plot>",
    "<rating> > 4",
    "<rating> BETWEEN 3 AND 7",
    "<rating> IS NULL",
    "<anger>::INTEGER % 2 = 0",
    "<topic> IN ('plot', 'music')",
    "<topic> = 'acting'",
    "<name> <> 'Ada'",
    "<name> LIKE '%a'",
    "<name> ~ '^[AB]'",
    "<name> !~* 'd'",
    "<name>::VARCHAR > 'B'",
    "<pos> IS NOT NULL",
    "<pos> IS NOT TRUE",
    "<pos> = <joke>::BOOLEAN",
    "coalesce(<joke>, true)",
)
AGGREGATES = (
    "count(*) FILTER (<pos>)",
    "count(*) FILTER (<pos>) * 1.0 / count(*)",
    "count(*) FILTER (NOT <pos>) - count(*) FILTER (<joke>)",
    "count(<rating>)",
    "count(DISTINCT <name>)",
    "sum(<rating>)",
    "sum(<rating>) FILTER (<joke>)",
    "sum(CASE WHEN <joke> THEN 1 ELSE 0 END)",
    "avg(<rating>)",
    "median(<rating>)",
    "max(<rating>::INTEGER)",
    "min(<anger>::INTEGER)",
    "max(<name>::VARCHAR)",
    "bool_or(<joke>)",
    "string_agg(DISTINCT <topic>, ',' ORDER BY <topic>)",
)
NAMED = {  # of a sub-query whose items r and p are texts without a type
    "n": ("r + 1", "r * 2", "coalesce(r, 2)", "abs(r - 4)", "CASE WHEN p THEN r ELSE 0 END", "if(p, 1, 0)"),
    "b": ("r > 4", "r BETWEEN 3 AND 7", "r > stars", "r = 3", "r IS NULL", "NOT p", "(p AND r < 8)", "p IS NULL"),
    "aggregate": ("sum(r)", "avg(r)", "max(r) - min(r)", "sum(r) FILTER (p)", "count(r)", "count(*) FILTER (p)"),
}


class SemanticStatements(Statements):
    """A source of random statements in the notation of `labels`; the same seed makes the same ones."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.ordered = False  # is the order of the SELECT that is made certain, so that LIMIT may cut it?

    def _source(self, depth: int, tables: dict[str, dict[str, str]]) -> tuple[str, dict[str, str]]:
        if tables is not plain_statements.COLUMNS:
            return super()._source(depth, tables)
        if depth < 2 and self._maybe(0.15):
            inner, given = self._select(depth + 1)
            if given:
                return f"({inner}) AS q", given
        if self._maybe(0.15):
            return "(SELECT *, <rating> AS r, <pos> AS p FROM reviews) AS q", {**REVIEWS, "r": "named", "p": "named"}
        if self._maybe(0.12):
            kind = self.rng.choice(JOINS)
            more = {} if kind in ("SEMI JOIN", "ANTI JOIN") else {"letters": "n"}
            return f"reviews {kind} films USING (film)", {**REVIEWS, **more}
        (name,) = self.rng.choices(list(COLUMNS), [WEIGHTS.get(name, 1) for name in COLUMNS])
        return name, COLUMNS[name]

    def _asks(self, columns: dict[str, str], share: float) -> bool:
        return "asked" in columns.values() and self._maybe(share)

    def _names(self, columns: dict[str, str]) -> bool:
        return "named" in columns.values() and self._maybe(0.5)

    def _expr(self, kind: str, columns: dict[str, str], depth: int) -> str:
        if kind in NAMED and self._names(columns):
            return self.rng.choice(NAMED[kind])
        if self._asks(columns, 0.35):
            return self.rng.choice(VALUES[kind])
        return (
            super()
            ._expr(kind, _plain(columns), depth)
            .replace("max(id)", "max(letters)")
            .replace("FROM u", "FROM films")
        )

    def _condition(self, columns: dict[str, str], depth: int, items: list[str] | None = None) -> str:
        plain = super()._condition(_plain(columns), depth, items)
        plain = plain.replace("SELECT id FROM u WHERE u.a > 0", "SELECT id FROM good WHERE <plot>")
        plain = plain.replace("FROM u WHERE", "FROM films AS u WHERE").replace("u.id", "u.letters")
        if self._names(columns):
            return f"{self.rng.choice(('p', *NAMED['b']))} {self.rng.choice(('AND', 'OR'))} ({plain})"
        return self._formula(plain, 0) if self._asks(columns, 0.75) else plain

    def _formula(self, plain: str, depth: int) -> str:
        chance = self.rng.random()
        if depth == 2 or chance < 0.4:
            return self.rng.choice((*LEAVES, *SUB_QUERIES, plain, plain, plain, plain))
        if chance < 0.55:
            return f"NOT ({self._formula(plain, depth + 1)})"
        op = self.rng.choice(("AND", "OR"))
        return f"({self._formula(plain, depth + 1)} {op} {self._formula(plain, depth + 1)})"

    def _aggregate(self, columns: dict[str, str]) -> str:
        if self._names(columns):
            return self.rng.choice(NAMED["aggregate"])
        return self.rng.choice(AGGREGATES) if self._asks(columns, 0.5) else super()._aggregate(_plain(columns))

    def _window(self, columns: dict[str, str]) -> str:
        plain = _plain(columns)
        if not self._asks(columns, 0.5):
            return super()._window(plain)
        order = ", ".join(plain)
        return self.rng.choice(
            (
                f"row_number() OVER (PARTITION BY <pos>::BOOLEAN ORDER BY {order})",
                "rank() OVER (ORDER BY <rating>::INTEGER DESC)",
                f"count(*) FILTER (<joke>) OVER (ORDER BY {order})",
                f"sum(<rating>::INTEGER) OVER (PARTITION BY film ORDER BY {order})",
                f"max(<anger>::INTEGER) OVER (ORDER BY {order} ROWS BETWEEN 2 PRECEDING AND 1 FOLLOWING EXCLUDE CURRENT ROW)",
                "count(*) FILTER (<pos>) OVER (ORDER BY id RANGE BETWEEN 3 PRECEDING AND CURRENT ROW EXCLUDE TIES)",
                "min(<rating>::INTEGER) OVER (PARTITION BY <pos>::BOOLEAN ORDER BY id GROUPS 1 PRECEDING)",
            )
        )

    def _of_sets(self, keys: list[str]) -> list[str]:
        """Without places: of a key that stands twice, once by its place, DuckDB shows the value of the later one."""
        return [key for key in keys if not key.isdigit()] or keys[:1]

    def _sort_name(self, items: list[str], columns: dict[str, str]) -> str:
        return super()._sort_name(items, _plain(columns))

    def _order(self, items: list[str], columns: dict[str, str], depth: int) -> str:
        found = super()._order(items, _plain(columns), depth)
        self.ordered = bool(found)
        if found and "ALL" not in found:  # every item settles ties
            found += "".join(f", {place + 1}" for place in range(len(items)))
        return found

    def _cut(self) -> str:
        return super()._cut() if self.ordered else ""

    def _union(self, depth: int) -> str:
        kinds = [self.rng.choice("ns") for _ in range(self.rng.randint(1, 3))]
        sides = []
        for _ in range(2):
            items = [f"{self._expr(kind, REVIEWS, 1)} AS {self.rng.choice(plain_statements.NAMES)}" for kind in kinds]
            where = f" WHERE {self._condition(REVIEWS, 1)}" if self._maybe(0.6) else ""
            sides.append(f"SELECT {', '.join(items)} FROM reviews{where}")
        op = self.rng.choice(("UNION", "UNION ALL", "INTERSECT", "EXCEPT", "EXCEPT ALL", "UNION ALL BY NAME"))
        self.ordered = True
        return f"{sides[0]} {op} {sides[1]} ORDER BY ALL{self._cut()}"


def _plain(columns: dict[str, str]) -> dict[str, str]:
    """The columns that are not made of texts, nor texts to ask about."""
    return {name: kind for name, kind in columns.items() if kind not in ("asked", "named")}
