"""Random queries from seeds: every construct of the language that the optimizer can change, each with one right answer.

A case is a text, the settings under which it is optimized, and a statement that is run before it (which makes embeddings).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

ROWS, MANY_ROWS, MANY = 160, 640, "many"  # of reviews; of the larger table, and its name
SUBJECTS = ("goal match striker", "vote party minister", "chip software phone")
TABLES = (
    f"""CREATE TABLE reviews AS SELECT i AS id, ['Alien', 'Brazil', 'Casablanca'][1 + i % 3] AS film, 1 + i % 5 AS stars,
    CASE WHEN i % 17 <> 6 THEN 'Number ' || i || ': a film that I shall not forget so soon' END AS text,
    'Seen in row ' || i || ', with some noise from behind us' AS remark FROM range({ROWS}) t(i)""",
    """CREATE TABLE films AS SELECT * FROM (VALUES ('Alien', 1979, 'A crew meets a creature in deep space'),
    ('Brazil', 1985, 'A clerk dreams of flying from a state of files'),
    ('Dune', 1984, 'A desert, a prince and his enemies')) t(title, year, plot)""",
    f"""CREATE TABLE {MANY} AS SELECT i AS id, 1 + i % 5 AS stars, ['{"', '".join(SUBJECTS)}', ''][1 + (i * 37 % 101) % 4]
    || ' and more of story ' || (i * 53 % 97) || ' with line ' || i AS text,
    'Noted in row ' || i || ', some time after it was written' AS remark FROM range({MANY_ROWS}) t(i)""",
)
RATES = {"rare": 0.1, "common": 0.9}
CONCRETE = ("{a}stars > 2", "{a}stars = 1", "{a}film = 'Alien'", "{a}id < 100", "{a}text IS NOT NULL", "NULL", "1 = 1",
            "{a}film IN ('Alien', 'Brazil')")  # fmt: skip
SEMANTIC = (
    '"it is rare" USING ({a}text)', '"it is common" USING ({a}text)', '"it is even" USING ({a}text)',
    '"it is loud" USING ({a}remark)', '"it is rare and loud" USING ({a}remark)', '"the number" USING ({a}text) > 4',
    "\"the kind\" USING ({a}text) IN ('a', 'b')",
)  # fmt: skip
VALUES = (
    '"the name" USING ({a}text) AS v',
    '"the number" USING ({a}text)::INTEGER AS w',
    '("it is even" USING ({a}text))::BOOLEAN AS e',
    'CASE WHEN stars > 3 THEN "the name" USING ({a}text) END AS c',
)
ROWS_TOGETHER = 4


@dataclass(frozen=True, slots=True)
class Case:
    text: str
    settings: dict[str, Any] = field(default_factory=dict)  # of the optimized run, beside those of all
    first: str = ""  # run before
    cascade: bool = False  # a small and a large model, which agree


class Draw:
    """What a seed draws."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)

    def one(self, *options: str) -> str:
        return options[int(self.rng.integers(len(options)))]

    def number(self, low: int, high: int) -> int:
        """low … high."""
        return int(self.rng.integers(low, high + 1))

    def semantic(self, alias: str = "") -> str:
        return self.one(*SEMANTIC).format(a=alias)

    def condition(self, leaves: int, alias: str = "") -> str:
        """A WHERE of so many leaves."""
        if leaves == 1:
            found = self.one(*(CONCRETE if self.rng.random() < 0.3 else SEMANTIC)).format(a=alias)
            return f"NOT ({found})" if self.rng.random() < 0.15 else found
        cut = self.number(1, leaves - 1)
        return f"({self.condition(cut, alias)} {self.one('AND', 'OR')} {self.condition(leaves - cut, alias)})"

    def where(self, most: int = 5, alias: str = "") -> str:
        return self.condition(self.number(1, most), alias)

    def values(self, alias: str = "") -> str:
        """A SELECT list: the row's own columns, and up to three values that a model gives."""
        own = [f"{alias}{c}" for c in ("id", "film", "stars")]
        some = self.rng.choice(VALUES, self.number(0, 3), replace=False)
        return ", ".join([*own, *(str(v).format(a=alias) for v in some)])

    def limit(self) -> str:
        return self.one("", "", " LIMIT 4", " LIMIT 3 OFFSET 2")

    def base(self) -> str:
        return f"SELECT {self.values()} FROM reviews WHERE {self.where()}"


# ------------------------------------------------------------------------------------------------------ kinds of queries
def plain(d: Draw) -> str:
    return f"{d.base()} ORDER BY id{d.limit()}"


def sub_query(d: Draw) -> str:
    outside = d.one("d.stars > 2", "d.film = 'Alien' AND d.id < 90", "d.id % 2 = 0")
    return f"SELECT id FROM ({d.base()}) d WHERE {outside} ORDER BY id{d.limit()}"


def first_of_sub_query(d: Draw) -> str:
    return f"SELECT id FROM ({d.base()} ORDER BY id) d LIMIT 5"


def joined(d: Draw) -> str:
    kind = d.one("JOIN", "LEFT JOIN", "SEMI JOIN", "ANTI JOIN")
    year = ", f.year" if kind in ("JOIN", "LEFT JOIN") else ""
    outside = " WHERE f.year > 1980" if year and d.rng.random() < 0.6 else ""
    return f"SELECT d.id{year} FROM ({d.base()}) d {kind} films f ON d.film = f.title{outside} ORDER BY ALL{d.limit()}"


def joined_on_texts(d: Draw) -> str:
    """A join on several conditions: plain ones, some on one side, one on pairs."""
    pair = '"they fit {r.text} {f.plot}"'
    parts = [
        d.one("r.film = f.title", "r.stars > 3", "r.film <> f.title"),
        pair,
        d.semantic("r."),
        '"it is even" USING (f.plot)',
    ]
    on = " AND ".join(parts[: d.number(2, 4)])
    kind = d.one("JOIN", "JOIN", "LEFT JOIN", "RIGHT JOIN", "SEMI JOIN", "ANTI JOIN")
    item = "r.id" if kind in ("SEMI JOIN", "ANTI JOIN") else "r.id, f.title"
    outside = f"r.id < 60 AND {d.where(2, 'r.')}" if d.rng.random() < 0.5 else "r.id < 60"
    return f"SELECT {item} FROM reviews r {kind} films f ON {on} WHERE {outside} ORDER BY ALL{d.limit()}"


def set_operation(d: Draw) -> str:
    op = d.one("UNION", "UNION ALL", "INTERSECT", "INTERSECT ALL", "EXCEPT", "EXCEPT ALL")
    item = d.one("id", "film", "film, stars", "\"the kind\" USING (text)::ENUM('a', 'b') AS k")
    one, two = (f"SELECT {item} FROM reviews WHERE {d.where(3)}" for _ in range(2))
    return f"{one} {op} {two} ORDER BY ALL{d.limit()}"


def union_in_from(d: Draw) -> str:
    values = d.values()
    one, two = f"SELECT {values} FROM reviews WHERE {d.where()}", f"SELECT {values} FROM reviews WHERE {d.semantic()}"
    return f"SELECT id FROM ({one} UNION ALL {two}) d WHERE stars > 3 ORDER BY id"


def grouped(d: Draw) -> str:
    having = d.one("", " HAVING COUNT(*) > 3", " HAVING film > 'Alien' AND COUNT(*) > 1", " HAVING film = 'Brazil'")
    said = d.one("", ', "what is said" AS said')
    more = d.one("", f", COUNT(*) FILTER (WHERE {d.semantic()}) AS k")
    body = f"FROM reviews WHERE {d.where()} GROUP BY film{having} ORDER BY n DESC, film{d.limit()}"
    return f"SELECT film, COUNT(*) AS n, AVG(stars) AS m{more}{said} {body}"


def grouped_by_text(d: Draw) -> str:
    total = d.one("COUNT(*)", 'SUM("the number" USING (text))')
    where = d.one(d.where(), '"it is common" USING (text)', '"it is common" USING (text) AND stars > 1')
    return f'SELECT g, {total} AS n FROM reviews WHERE {where} GROUP BY "the topic" USING (text) AS g ORDER BY g'


def grouped_by_many(d: Draw) -> str:
    key = d.one("", "film, ")
    return (
        f"SELECT {key}g, COUNT(*) AS n FROM reviews WHERE {d.where(3)} "
        f'GROUP BY {key}"the matters" USING (text) MANY AS g ORDER BY ALL'
    )


def grouping_sets(d: Draw) -> str:
    sets = d.one(
        "ROLLUP (film, stars)",
        "CUBE (film, stars)",
        "GROUPING SETS ((film, stars), (film), ())",
        "film, ROLLUP (stars)",
    )
    having = d.one("", " HAVING COUNT(*) > 2", " HAVING film = 'Alien'")
    total = d.one("COUNT(*)", 'SUM("the number" USING (text))', "SUM(stars)")
    return f"SELECT film, stars, {total} AS n FROM reviews WHERE {d.where(3)} GROUP BY {sets}{having} ORDER BY ALL"


def distinct(d: Draw) -> str:
    if d.rng.random() < 0.5:
        item = d.one("film", "film, stars", "\"the kind\" USING (text)::ENUM('a', 'b') AS k, film")
        return f"SELECT DISTINCT {item} FROM reviews WHERE {d.where(3)} ORDER BY ALL{d.limit()}"
    on = d.one("film", "film, stars", '"it is even" USING (text)')
    return f"SELECT DISTINCT ON ({on}) {d.values()} FROM reviews WHERE {d.where(3)} ORDER BY {on}, id{d.limit()}"


def windowed(d: Draw) -> str:
    over = d.one(
        "PARTITION BY film ORDER BY id",
        "ORDER BY id",
        "ORDER BY id ROWS 2 PRECEDING",
        "PARTITION BY stars ORDER BY id DESC",
    )
    what = d.one("row_number()", 'sum("the number" USING (text))', "count(*)", "max(stars)")
    where = f"FROM reviews WHERE {d.where(3)}"
    if d.rng.random() < 0.5:
        return f"SELECT id, {what} OVER ({over}) AS x {where} ORDER BY id{d.limit()}"
    rank = d.one("row_number()", "count(*)")
    return f"SELECT id, film {where} QUALIFY {rank} OVER (PARTITION BY film ORDER BY id) <= 3 ORDER BY id{d.limit()}"


def common_tables(d: Draw) -> str:
    one = f"p AS (SELECT {d.values()} FROM reviews WHERE {d.where(3)})"
    match d.number(0, 3):
        case 0:
            return f"WITH {one} SELECT a.id, b.id AS other FROM p a JOIN p b ON a.id + 1 = b.id ORDER BY ALL{d.limit()}"
        case 1:
            two = f"q AS (SELECT film, COUNT(*) AS n FROM reviews WHERE {d.where(2)} GROUP BY film)"
            return f"WITH {one}, {two} SELECT p.id, q.n FROM p JOIN q ON p.film = q.film WHERE q.n > 3 ORDER BY ALL{d.limit()}"
        case 2:
            return f"WITH p AS (SELECT * FROM reviews WHERE {d.where(2)}) SELECT id FROM p WHERE {d.where(3)} ORDER BY id{d.limit()}"
    return f"WITH {one} SELECT (SELECT COUNT(*) FROM p) AS n, (SELECT MAX(stars) FROM p WHERE film = 'Alien') AS m"


def in_query(d: Draw) -> str:
    inner = d.one(
        f"id {d.one('IN', 'NOT IN')} (SELECT id FROM reviews WHERE {d.where(2)})",
        f"film IN (SELECT film FROM reviews WHERE {d.where(2)} GROUP BY film HAVING COUNT(*) > 4)",
        f"id IN (SELECT id FROM reviews WHERE {d.where(2)} ORDER BY id LIMIT 9)",
        "\"the film meant\" USING (text) IN (SELECT title FROM films)",
        f"stars > (SELECT AVG(stars) FROM reviews WHERE {d.where(2)})",
    )  # fmt: skip
    return f"SELECT id FROM reviews WHERE {inner} {d.one('AND', 'AND', 'OR')} {d.where(3)} ORDER BY id{d.limit()}"


def correlated(d: Draw) -> str:
    own = f"b.film = f.title AND {d.where(2, 'b.')}"
    match d.number(0, 3):
        case 0:
            return f"SELECT title FROM films f WHERE {d.one('', 'NOT ')}EXISTS (SELECT 1 FROM reviews b WHERE {own}) ORDER BY title"
        case 1:
            return f"SELECT title, (SELECT COUNT(*) FROM reviews b WHERE {own}) AS n FROM films f ORDER BY title"
        case 2:
            exists = "EXISTS (SELECT 1 FROM reviews b WHERE b.id = a.id + 1 AND " + d.semantic("b.") + ")"
            return f"SELECT a.id FROM reviews a WHERE {exists} AND {d.where(2, 'a.')} ORDER BY 1{d.limit()}"
    return f'SELECT title, (SELECT MAX("the number" USING (b.text)) FROM reviews b WHERE {own}) AS n FROM films f ORDER BY title'


def by_score(d: Draw) -> str:
    how = d.one("", " DESC")
    return f'SELECT id FROM reviews WHERE {d.where(2)} ORDER BY "how loud it is" USING (remark){how}, id LIMIT {d.number(2, 6)}'


def asked_twice(d: Draw) -> str:
    """The same text in several places."""
    text = '"the number" USING (text)'
    return f"SELECT id, {text} AS a, {text} + 1 AS b FROM reviews WHERE {text} > {d.number(1, 6)} AND {d.where(2)} ORDER BY id{d.limit()}"


KINDS: tuple[tuple[Callable[[Draw], str], int], ...] = (
    (plain, 5), (sub_query, 2), (first_of_sub_query, 2), (joined, 3), (joined_on_texts, 2), (set_operation, 2), (union_in_from, 2),
    (grouped, 3), (grouped_by_text, 3), (grouped_by_many, 1), (grouping_sets, 2), (distinct, 2), (windowed, 2), (common_tables, 2),
    (in_query, 2), (correlated, 2), (by_score, 1), (asked_twice, 1),
)  # fmt: skip
DRAWN = tuple(kind for kind, weight in KINDS for _ in range(weight))


def over_many(d: Draw) -> Case:
    """Filters over a table that is large enough for a cascade, for orders learned while running, and for embeddings."""
    limit = d.one("", "", " LIMIT 20")
    if d.rng.random() < 0.4:
        where = d.one(
            '"it is rare" USING (text)', '"it is even" USING (text) AND stars > 1', '"it is common" USING (remark)'
        )
        return Case(f"SELECT id FROM {MANY} WHERE {where} ORDER BY id{limit}", cascade=True)
    words = [f'"it mentions {subject.split()[0]}" USING (text)' for subject in d.rng.permutation(SUBJECTS).tolist()]
    others = ['"it is loud" USING (remark)', '"it is rare" USING (text)', '"it is common" USING (remark)']
    terms = [*words[: d.number(1, 3)], *d.rng.permutation(others).tolist()[: d.number(0, 1)]]
    where = f" {d.one('OR', 'OR', 'AND')} ".join(terms)
    first = f'SELECT COUNT(*) FROM {MANY} WHERE "it is a first look" USING (text) WITH (budget = 40)'
    return Case(
        f"SELECT id FROM {MANY} WHERE {where} ORDER BY id{limit}", {"disabled_rules": "predicates_together"}, first
    )


def case(seed: int) -> Case:
    """The case of a seed. One in twenty is over the larger table; three in ten may put rows together in requests."""
    d = Draw(seed)
    if seed % 20 == 7:
        return over_many(d)
    text = DRAWN[d.number(0, len(DRAWN) - 1)](d)
    together: dict[int, str | int] = {0: ROWS_TOGETHER, 1: "auto", 5: ROWS_TOGETHER}
    return Case(text, {"rows_per_request": together[seed % 10]} if seed % 10 in together else {})
