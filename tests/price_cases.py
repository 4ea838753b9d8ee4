"""Random queries over small tables, whose calls EXPLAIN has to tell: those of the optimizer's generator, and shapes that ask in other ways."""

from __future__ import annotations

from collections.abc import Callable

import uql
from uql.benchmarks.optimizer.random_texts import Case, Draw, case, correlated as correlated_with_films

MORE_TABLES = (
    """CREATE TABLE notes AS SELECT i AS id, ['Alien', 'Brazil', 'Dune', NULL][1 + i % 4] AS film, 1 + i % 3 AS stars,
    CASE WHEN i % 3 = 0 THEN 'Note ' || (i // 6) || ', written down some time after the film' END AS text,
    'In line ' || (i % 20) || ' one reads of what was seen there' AS remark, CAST(NULL AS VARCHAR) AS blank FROM range(60) t(i)""",
)
TERMS = (
    '"it is rare" USING ({a}text)', '"it is common" USING ({a}remark)', '"it is even" USING ({a}text)',
    '"it is loud" USING ({a}remark)', '"it is empty" USING ({a}blank)', '"the number" USING ({a}remark) > 4',
)  # fmt: skip
PAIRS = ('"they fit {a.text} {b.text}"', '"they fit {a.remark} {b.text}"', '"they fit {a.remark} {b.remark}"')


def term(d: Draw, alias: str = "") -> str:
    found = d.one(*TERMS).format(a=alias)
    return d.one(found, found, f"NOT ({found})", f"({found} OR {alias}stars = 1)", f"{found} AND {alias}stars < 3")


def filled(form: str, **parts: Callable[[], str]) -> str:
    """A form with its holes filled; what stands in a hole that it does not have is not drawn."""
    return form.format(**{name: part() for name, part in parts.items() if f"{{{name}}}" in form})


def asked_join(d: Draw) -> str:
    kind = d.one("JOIN", "LEFT JOIN", "RIGHT JOIN", "RIGHT JOIN", "FULL JOIN", "SEMI JOIN", "ANTI JOIN")
    on = " AND ".join([d.one("a.film = b.film", "a.id = b.id + 1", "a.id < b.id AND b.id < 9"), d.one(*PAIRS)])
    item = "a.id" if kind in ("SEMI JOIN", "ANTI JOIN") else "a.id, b.id AS other"
    where = d.one("", " WHERE a.id < 30", f" WHERE {term(d, 'b.' if kind.startswith(('RIGHT', 'FULL')) else 'a.')}")
    left = "notes" if "a.blank" in where else d.one("notes", "reviews")
    return f"SELECT {item} FROM {left} a {kind} notes b ON {on}{where} ORDER BY ALL"


def correlated_rows(d: Draw) -> str:
    on = d.one("b.film = a.film", "b.id = a.id + 3", "b.stars = a.stars AND b.id < 12")
    asked = d.one(term(d, "b."), d.one(*PAIRS), f"{d.one(*PAIRS)} AND {term(d, 'b.')}")
    inner = f"FROM notes b WHERE {on} AND {asked}"
    chosen = d.one(
        "SELECT a.id FROM notes a WHERE {negated}EXISTS (SELECT 1 {inner}) ORDER BY a.id",
        "SELECT a.id, (SELECT COUNT(*) {inner}) AS n FROM notes a WHERE a.id < 40 ORDER BY a.id",
        "SELECT a.id FROM notes a WHERE a.stars {negation} (SELECT b.stars {inner}) AND {outside} ORDER BY a.id",
        "SELECT a.id, (SELECT MIN(b.remark) {inner}) AS first FROM notes a WHERE {outside} ORDER BY a.id",
    )
    return filled(
        chosen,
        inner=lambda: inner,
        negated=lambda: d.one("", "NOT "),
        negation=lambda: d.one("IN", "NOT IN"),
        outside=lambda: term(d, "a."),
    )


def asked_in_two_places(d: Draw) -> str:
    text = term(d)
    chosen = d.one(
        "SELECT (SELECT COUNT(*) {rows}) AS n, (SELECT MAX(id) {rows} AND stars > 1) AS m",
        "SELECT id {rows} UNION ALL SELECT id {rows} AND {more} ORDER BY id",
        "SELECT id FROM notes WHERE id IN (SELECT id {rows}) AND film NOT IN (SELECT film {rows} AND film = 'Dune') ORDER BY id",
        "SELECT a.id FROM (SELECT id {rows}) a JOIN (SELECT id {rows} AND {more}) b ON a.id = b.id ORDER BY a.id",
    )
    return filled(chosen, rows=lambda: f"FROM notes WHERE {text}", more=lambda: term(d))


def groups(d: Draw) -> str:
    shown = d.one("text", "remark", "blank")
    where = d.one("", f" WHERE {term(d)}", " WHERE film = 'Alien'")
    chosen = d.one(
        'SELECT g, COUNT(*) AS n {rows} GROUP BY "the topic" {using} AS g ORDER BY g',
        "SELECT k, COUNT(*) AS n {rows} GROUP BY \"the kind\" {using}::ENUM('a', 'b') AS k ORDER BY k",
        'SELECT film, "what is said" {using} AS said {rows} GROUP BY film ORDER BY film',
        'SELECT film, AVG("the number" {using}) AS m {rows} GROUP BY film ORDER BY film',
    )
    return filled(chosen, rows=lambda: f"FROM notes{where}", using=lambda: f"USING ({shown})")


def values(d: Draw) -> str:
    items = ['"the name" USING (remark) AS v', '"the number" USING (text)::INTEGER AS w', '"the mood" USING (blank) AS b',
             'CASE WHEN stars > 2 THEN "the cast" USING (remark) END AS c']  # fmt: skip
    some = ", ".join(["id", *d.rng.permutation(items).tolist()[: d.number(1, 3)]])
    where = d.one("", f" WHERE {term(d)}", f" WHERE {term(d)} AND {term(d)}")
    return f"SELECT {some} FROM notes{where} ORDER BY id{d.one('', '', ' LIMIT 20')}"


def in_derived(d: Draw) -> str:
    inner = f"SELECT id, film, text, remark, blank, stars FROM notes WHERE {term(d)}"
    outside = d.one(f" WHERE {term(d, 'd.')}", f" WHERE d.stars > 1 AND {term(d, 'd.')}", "")
    item = d.one("d.id", 'd.id, "the name" USING (d.remark) AS v', "d.id, d.film")
    many = d.one("", "", " LIMIT 12")
    return f"SELECT {item} FROM ({inner} ORDER BY id{many}) d{outside} ORDER BY 1"


SHAPES: tuple[Callable[[Draw], str], ...] = (
    asked_join, correlated_rows, correlated_with_films, asked_in_two_places, groups, values, in_derived,
)  # fmt: skip


def drawn(seed: int) -> Case:
    """The case of a seed: every other one of the optimizer's generator."""
    if seed % 2:
        return case(seed)
    d = Draw(seed)
    return Case(SHAPES[d.number(0, len(SHAPES) - 1)](d))


def opened(found: Case, **settings: object) -> uql.Connection:
    """A connection over the tables, with a model that answers by a hash of question and row."""
    from uql.benchmarks.optimizer.random_queries import connected

    con = connected(found, **{**found.settings, **settings})
    for statement in MORE_TABLES:
        con.session.duck.execute(statement)
    return con
