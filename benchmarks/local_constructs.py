"""Every construct of the language on a real model, over labelled rows: what was asked, how often it was right, what it cost.

    python -m uql.benchmarks.local_model --constructs [--rows 40] [construct …]

Rows are drawn by a seed from banking77 (four intents), bbc_news (the first 220 characters of articles of five topics) and
airline_tweets (negative and positive; waits are those whose text says a number of hours). The model sees the text alone; labels are
in tables of their own, for the judge.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from uql.api.connection import Connection

INTENTS = {
    "lost_or_stolen_card": "a lost or stolen card",
    "exchange_rate": "the exchange rate",
    "apple_pay_or_google_pay": "Apple Pay or Google Pay",
    "top_up_failed": "a failed top-up",
}
LABELS = ", ".join(f"'{label}'" for label in INTENTS.values())
OTHERS = ", ".join(f"'{label}'" for label in list(INTENTS.values())[1:])
AIRLINES = (
    "United",
    "US Airways",
    "Southwest",
    "Delta",
    "Virgin America",
    "American",
    "AmericanAir",
    "JetBlue",
    "usair",
)
HOURS = r"(?i)\b([2-9]|1[0-9]) ?(?:hours|hrs)\b"

TOPICS = ("business", "entertainment", "politics", "sport", "tech")
TOPIC_LABELS = ", ".join(f"'{label}'" for label in TOPICS)
TOPIC_WORDS = {  # of which a free text on the topic holds one
    "business": r"business|econom|financ|compan|market|trade|bank|industr",
    "entertainment": r"entertain|film|movie|music|art|tv|television|award|culture|celebrit",
    "politics": r"politic|election|government|parliament|law",
    "sport": r"sport|football|rugby|tennis|athletic|cricket|soccer|olympic",
    "tech": r"tech|software|internet|comput|gadget|gam(?:e|ing)|digital",
}
MATTER_WORDS = {  # of which what is said of customers with this intent holds one
    "lost_or_stolen_card": r"\b(?:lost|stolen|missing|lose)\b",
    "exchange_rate": r"exchange|rates?\b|currenc",
    "apple_pay_or_google_pay": r"apple|google",
    "top_up_failed": r"top[- ]?up|topping",
}

Rows = Sequence[tuple[Any, ...]]
Truth = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Construct:
    """One construct: a query over the tables of `fill`, and a judge of its rows that gives a share of what is right."""

    name: str
    query: str
    measure: str
    judge: Callable[[Rows, Truth], float]
    least: float  # to be reached; 0: it runs


def fill(con: Connection, folder: Path, rows: int, seed: int) -> Truth:
    """Makes questions, tweets, waits and kinds(name); gives the labels by table and id."""
    shuffled = f"ORDER BY hash(CAST(id AS VARCHAR) || '{seed}')"
    listed = ", ".join(f"'{intent}'" for intent in INTENTS)
    each = -(-rows // len(INTENTS))
    bank, air, bbc = folder / "banking77", folder / "airline_tweets", folder / "bbc_news"
    con.sql(
        f"CREATE TABLE q AS SELECT d.id, d.text, l.intent FROM '{bank}/data.parquet' d JOIN '{bank}/labels.parquet' l USING (id) "
        f"WHERE l.intent IN ({listed}) QUALIFY row_number() OVER (PARTITION BY l.intent {shuffled}) <= {each}"
    )
    con.sql(
        f"CREATE TABLE a AS SELECT d.id, d.text, l.sentiment, l.airline FROM '{air}/data.parquet' d JOIN '{air}/labels.parquet' l "
        f"USING (id) WHERE l.sentiment IN ('negative', 'positive') "
        f"QUALIFY row_number() OVER (PARTITION BY l.sentiment {shuffled}) <= {-(-rows // 2)}"
    )
    con.sql(
        f"CREATE TABLE h AS SELECT id, text, regexp_extract(text, '{HOURS}', 1)::INTEGER AS hours FROM '{air}/data.parquet' "
        f"WHERE len(regexp_extract_all(text, '[0-9]+')) = 1 AND regexp_matches(text, '{HOURS}') {shuffled} LIMIT {rows}"
    )
    con.sql(
        f"CREATE TABLE n AS SELECT d.id, d.text[:220] AS text, l.topic FROM '{bbc}/data.parquet' d JOIN '{bbc}/labels.parquet' l "
        f"USING (id) QUALIFY row_number() OVER (PARTITION BY l.topic {shuffled}) <= {-(-rows // len(TOPICS))}"
    )
    for name, source in (("questions", "q"), ("tweets", "a"), ("waits", "h"), ("articles", "n")):
        con.sql(f"CREATE TABLE {name} AS SELECT id, text FROM {source} ORDER BY id")
    con.sql(f"CREATE TABLE kinds AS SELECT unnest([{LABELS}]) AS name")
    con.sql(f"CREATE TABLE topics AS SELECT unnest([{TOPIC_LABELS}]) AS name")
    con.sql("CREATE TABLE groups AS SELECT id, intent FROM q")
    return {
        "intent": dict(con.sql("SELECT id, intent FROM q").fetchall()),
        "negative": dict(con.sql("SELECT id, sentiment = 'negative' FROM a").fetchall()),
        "airline": dict(con.sql("SELECT id, airline FROM a").fetchall()),
        "hours": dict(con.sql("SELECT id, hours FROM h").fetchall()),
        "topic": dict(con.sql("SELECT id, topic FROM n").fetchall()),
    }


# --------------------------------------------------------------------------------------------------------------- judges
def _f1(found: set[Any], true: set[Any]) -> float:
    return 2 * len(found & true) / max(1, len(found) + len(true))


def _lost(rows: Rows, truth: Truth) -> float:
    said = {row[0] for row in rows}
    return _agree(
        {i: i in said for i in truth["intent"]}, {i: v == "lost_or_stolen_card" for i, v in truth["intent"].items()}
    )


def _not_lost(rows: Rows, truth: Truth) -> float:
    return 1 - _lost(rows, truth)


def _agree(said: dict[Any, Any], true: dict[Any, Any]) -> float:
    return float(sum(said.get(i) == value for i, value in true.items())) / max(1, len(true))


def _label(rows: Rows, truth: Truth) -> float:
    return _agree(dict(rows), {i: INTENTS[v] for i, v in truth["intent"].items()})


def _airline(rows: Rows, truth: Truth) -> float:
    def bare(name: Any) -> str:
        return re.sub(r"[^a-z]|air(?:lines|ways|line)?$", "", str(name or "").lower())

    right = [bool(bare(said)) and (bare(said)[:5] in bare(truth["airline"][i]) or bare(truth["airline"][i])[:5] in bare(said))
             for i, said in rows]  # fmt: skip
    return float(np.mean(right))


def _hours(rows: Rows, truth: Truth) -> float:
    return _agree(dict(rows), truth["hours"])


def _tried(rows: Rows, truth: Truth) -> float:
    return _agree({i: said["value"] for i, said in rows if said["error"] is None}, truth["hours"])


def _near(said: Any, true: float) -> float:
    return 1 / (1 + abs(float(said or 0) - true) / true)


def _mean_hours(rows: Rows, truth: Truth) -> float:
    return _near(rows[0][0], float(np.mean(list(truth["hours"].values()))))


def _sum_hours(rows: Rows, truth: Truth) -> float:
    return _near(rows[0][0], float(sum(truth["hours"].values())))


def _most_hours(rows: Rows, truth: Truth) -> float:
    return _near(rows[0][0], float(max(truth["hours"].values())))


def _long_waits(rows: Rows, truth: Truth) -> float:
    said = {row[0] for row in rows}
    return _agree({i: i in said for i in truth["hours"]}, {i: hours > 3 for i, hours in truth["hours"].items()})


def _count_lost(rows: Rows, truth: Truth) -> float:
    return _near(rows[0][0], float(sum(v == "lost_or_stolen_card" for v in truth["intent"].values())))


def _count_apple(rows: Rows, truth: Truth) -> float:
    return _near(rows[0][0], float(sum(v == "apple_pay_or_google_pay" for v in truth["intent"].values())))


def _order(rows: Rows, truth: Truth) -> float:
    """AUC of the places: a negative tweet before a positive one."""
    places = {i: n for n, (i,) in enumerate(rows)}
    yes = [places[i] for i, negative in truth["negative"].items() if negative and i in places]
    no = [places[i] for i, negative in truth["negative"].items() if not negative and i in places]
    return float(np.mean([[a < b for b in no] for a in yes]))


def _top(rows: Rows, truth: Truth) -> float:
    return float(np.mean([truth["negative"][i] for (i,) in rows])) if rows else 0.0


def _topic(rows: Rows, truth: Truth) -> float:
    return _agree(dict(rows), truth["topic"])


def _said_topic(rows: Rows, truth: Truth) -> float:
    return float(
        np.mean([bool(re.search(TOPIC_WORDS[truth["topic"][i]], str(said or "").lower())) for i, said in rows])
    )


def _purity(label: str) -> Callable[[Rows, Truth], float]:
    """Share of the rows that are in a group most of which has their label: high too where there are many groups."""

    def judge(rows: Rows, truth: Truth) -> float:
        held: dict[Any, Counter[str]] = {}
        for i, group in rows:
            held.setdefault(group, Counter())[truth[label][i]] += 1
        return sum(max(c.values()) for c in held.values()) / max(1, sum(sum(c.values()) for c in held.values()))

    return judge


def _covered(label: str) -> Callable[[Rows, Truth], float]:
    """The mean over labels of F1 of the group that fits its rows best: low where a label is split, or shares its group."""

    def judge(rows: Rows, truth: Truth) -> float:
        groups: dict[Any, set[Any]] = {}
        for i, group in rows:
            groups.setdefault(group, set()).add(i)
        own = [{i for i, v in truth[label].items() if v == one} for one in sorted(set(truth[label].values()))]
        return float(
            np.mean([max((_f1(group, rows_of_one) for group in groups.values()), default=0.0) for rows_of_one in own])
        )

    return judge


def _same_pairs(label: str, truth: Truth) -> dict[tuple[Any, Any], bool]:
    """The pairs of `_paired`, and whether both rows have the same label."""
    ids = sorted(truth[label])
    every = {*zip(ids[::2], ids[1::2], strict=False), *zip(ids, ids[3:], strict=False)}
    return {(a, b): bool(truth[label][a] == truth[label][b]) for a, b in every}


def _pairs(label: str) -> Callable[[Rows, Truth], float]:
    """Mean of the shares of matching and of other pairs that are right: neither yes nor no to all gives more than a half."""

    def judge(rows: Rows, truth: Truth) -> float:
        found = {tuple(row) for row in rows}
        right: dict[bool, list[bool]] = {True: [], False: []}
        for pair, same in _same_pairs(label, truth).items():
            right[same].append((pair in found) == same)
        return float(np.mean([np.mean(held) for held in right.values() if held]))

    return judge


def _count_pairs(label: str) -> Callable[[Rows, Truth], float]:
    return lambda rows, truth: _near(rows[0][0], float(sum(_same_pairs(label, truth).values())))


def _precision_of_pairs(label: str) -> Callable[[Rows, Truth], float]:
    """The share of the pairs returned that match; none is returned: 0."""

    def judge(rows: Rows, truth: Truth) -> float:
        same = _same_pairs(label, truth)
        return float(np.mean([same[tuple(row)] for row in rows])) if rows else 0.0

    return judge


def _has_partner(label: str) -> Callable[[Rows, Truth], float]:
    """The share of the rows of which it is right that a pair matches."""

    def judge(rows: Rows, truth: Truth) -> float:
        same = _same_pairs(label, truth)
        found = {row[0] for row in rows}
        return _agree(
            {a: a in found for a, _ in same}, {a: any(v for (x, _), v in same.items() if x == a) for a, _ in same}
        )

    return judge


def _named(rows: Rows, truth: Truth) -> float:
    """Share of the groups of which the words that are said of them name the matter."""
    return (
        float(np.mean([bool(re.search(MATTER_WORDS[intent], str(said).lower())) for intent, said in rows]))
        if rows
        else 0.0
    )


def _having(rows: Rows, truth: Truth) -> float:
    return _f1({row[0] for row in rows}, {"lost_or_stolen_card"})


def _paired(table: str) -> str:
    numbered = f"(SELECT *, row_number() OVER (ORDER BY id) AS n FROM {table})"
    return (
        f"(SELECT a.id AS a, b.id AS b, a.text AS one, b.text AS two FROM {numbered} a JOIN {numbered} b "
        "ON (a.n % 2 = 1 AND b.n = a.n + 1) OR b.n = a.n + 3)"
    )


def _grouped(table: str, text: str) -> str:
    return f"SELECT id, g FROM (SELECT unnest(list(id)) AS id, g FROM {table} GROUP BY {text} AS g)"


def _same(table: str, condition: str, what: str = "a, b", end: str = "") -> str:
    return f'SELECT {what} FROM {_paired(table)} AS p WHERE "{condition}"{end}'


MATTER = '"what the question is about"'
TOPIC = '"the topic of the article"'
WAIT = '"the number of hours of waiting or delay"::INTEGER'
SAME_TOPIC = "the articles {p.one} and {p.two} have the same topic"
APPLE = '"the question is about Apple Pay or Google Pay"'  # which no construct before it has asked
LOST = '"the customer\'s card was lost or stolen"'
ABOUT = '"{q.text} is about {k.name}"'
LOST_KIND = "k.name = 'a lost or stolen card'"
CONSTRUCTS = (
    Construct("WHERE", f"SELECT id FROM questions WHERE {LOST}", "accuracy", _lost, 0.7),
    Construct("WHERE NOT … OR", f"SELECT id FROM questions WHERE NOT (NOT {LOST} OR id < 0)", "accuracy", _lost, 0.7),
    Construct("COUNT", f"SELECT COUNT(*) FROM questions WHERE {LOST}", "1/(1+rel. error)", _count_lost, 0.7),
    Construct("COUNT, half the calls", f"SELECT COUNT(*) FROM questions WHERE {APPLE} WITH (budget = $half)",
              "1/(1+rel. error)", _count_apple, 0.5),
    Construct("CASE WHEN", f"SELECT id FROM (SELECT id, CASE WHEN {LOST} THEN 1 ELSE 0 END AS x FROM questions) WHERE x = 1",
              "accuracy", _lost, 0.7),
    Construct("::BOOLEAN", f"SELECT id FROM (SELECT id, {LOST}::BOOLEAN AS x FROM questions) WHERE x", "accuracy", _lost, 0.7),
    Construct("COUNT FILTER", f"SELECT COUNT(*) FILTER (WHERE {LOST}) FROM questions", "1/(1+rel. error)", _count_lost, 0.7),
    Construct("IN (SELECT … WHERE)", f"SELECT id FROM questions WHERE id IN (SELECT id FROM questions WHERE {LOST})",
              "accuracy", _lost, 0.7),
    Construct("WITH … UNION ALL", f"WITH lost AS (SELECT id FROM questions WHERE {LOST}) SELECT id FROM lost UNION ALL "
              "SELECT id FROM lost WHERE id < 0", "accuracy", _lost, 0.7),
    Construct("::ENUM", f'SELECT id, "what the question is about"::ENUM({LABELS}) FROM questions', "accuracy", _label, 0.7),
    Construct("IN (…)", f"SELECT id FROM questions WHERE \"what the question is about\" IN ('{INTENTS['lost_or_stolen_card']}')"
              f" AND \"what the question is about\" NOT IN ({OTHERS})", "accuracy", _lost, 0.7),
    Construct("IN (SELECT …)", 'SELECT id, "what the question is about" IN (SELECT name FROM kinds) FROM questions',
              "accuracy", _label, 0.7),
    Construct("::ENUM, articles", f'SELECT id, "the topic of the article"::ENUM({TOPIC_LABELS}) FROM articles', "accuracy", _topic, 0.7),
    Construct("IN (SELECT …), articles", 'SELECT id, "the topic of the article" IN (SELECT name FROM topics) FROM articles',
              "accuracy", _topic, 0.7),
    Construct("SELECT text", 'SELECT id, "the name of the airline" FROM tweets', "accuracy", _airline, 0.7),
    Construct("SELECT text, articles", 'SELECT id, "the topic of the article, as a newspaper calls it" FROM articles',
              "names the topic", _said_topic, 0.7),
    Construct("SELECT ::INTEGER", f"SELECT id, {WAIT} FROM waits", "accuracy", _hours, 0.7),
    Construct("TRY", f"SELECT id, TRY {WAIT} FROM waits", "accuracy", _tried, 0.7),
    Construct("AVG", f"SELECT AVG({WAIT}) FROM waits", "1/(1+rel. error)", _mean_hours, 0.7),
    Construct("SUM", f"SELECT SUM({WAIT}) FROM waits", "1/(1+rel. error)", _sum_hours, 0.7),
    Construct("MAX", f"SELECT MAX({WAIT}) FROM waits", "1/(1+rel. error)", _most_hours, 0.7),
    Construct("a number > 3", f"SELECT id FROM waits WHERE {WAIT} > 3", "accuracy", _long_waits, 0.7),
    Construct("ORDER BY", 'SELECT id FROM tweets ORDER BY "how angry or disappointed the tweet is" DESC', "AUC of places", _order, 0.8),
    Construct("ORDER BY … LIMIT", 'SELECT id FROM tweets ORDER BY "how angry or disappointed the tweet is" DESC LIMIT 5',
              "negative", _top, 0.8),
    Construct("WHERE … LIMIT", 'SELECT id FROM tweets WHERE "the tweet is negative about the airline" LIMIT 5', "negative", _top, 0.7),
    Construct("GROUP BY", _grouped("questions", MATTER), "purity", _purity("intent"), 0.7),
    Construct("GROUP BY, articles", _grouped("articles", TOPIC), "purity", _purity("topic"), 0.7),
    Construct("GROUP BY INTO 4", _grouped("questions", f"{MATTER} INTO 4"), "F1 of groups", _covered("intent"), 0.7),
    Construct("GROUP BY INTO 5, articles", _grouped("articles", f"{TOPIC} INTO 5"), "F1 of groups", _covered("topic"), 0.7),
    Construct("GROUP BY MANY", _grouped("questions", '"the subjects of the question" MANY'), "F1 of groups", _covered("intent"), 0.6),
    Construct("GROUP BY MANY, articles", _grouped("articles", '"the subjects of the article" MANY'), "F1 of groups",
              _covered("topic"), 0.6),
    Construct("the same matter", _same("questions", "{p.one} and {p.two} ask about the same matter"), "balanced accuracy",
              _pairs("intent"), 0.7),
    Construct("the same sentiment", _same("tweets", "the tweets {p.one} and {p.two} have the same sentiment"), "balanced accuracy",
              _pairs("negative"), 0.7),
    Construct("the same topic", _same("articles", SAME_TOPIC), "balanced accuracy",
              _pairs("topic"), 0.7),
    Construct("the same airline", _same("tweets", "the tweets {p.one} and {p.two} are about the same airline"), "balanced accuracy",
              _pairs("airline"), 0.7),
    Construct("COUNT of pairs", _same("articles", SAME_TOPIC, "COUNT(*)"), "1/(1+rel. error)", _count_pairs("topic"), 0.6),
    Construct("LIMIT of pairs", _same("articles", SAME_TOPIC, end=" LIMIT 5"), "precision", _precision_of_pairs("topic"), 0.6),
    Construct("pairs, exact", _same("articles", SAME_TOPIC, end=" WITH (exact)"), "balanced accuracy", _pairs("topic"), 0.7),
    Construct("EXISTS, of pairs", f"SELECT DISTINCT o.a FROM {_paired('articles')} AS o WHERE EXISTS (SELECT 1 FROM articles n "
              'WHERE n.id = o.b AND "the articles {o.one} and {n.text} have the same topic")', "accuracy", _has_partner("topic"), 0.7),
    Construct("JOIN … ON", f"SELECT q.id FROM questions q JOIN kinds k ON {ABOUT} AND {LOST_KIND}", "accuracy", _lost, 0.7),
    Construct("LEFT JOIN", f"SELECT q.id FROM questions q LEFT JOIN kinds k ON {LOST_KIND} AND {ABOUT} WHERE k.name IS NOT NULL",
              "accuracy", _lost, 0.7),
    Construct("NOT EXISTS", f"SELECT q.id FROM questions q WHERE NOT EXISTS (SELECT 1 FROM kinds k WHERE {LOST_KIND} AND {ABOUT})",
              "accuracy", _not_lost, 0.7),
    Construct("EXISTS", f"SELECT q.id FROM questions q WHERE EXISTS (SELECT 1 FROM kinds k WHERE {LOST_KIND} AND {ABOUT})",
              "accuracy", _lost, 0.7),
    Construct("said of a group", 'SELECT g.intent, "what the customers want" USING (text) AS said FROM questions JOIN groups g USING (id) '
              "GROUP BY g.intent", "names the matter", _named, 1.0),
    Construct("HAVING", 'SELECT g.intent FROM questions JOIN groups g USING (id) GROUP BY g.intent HAVING "the customers have lost a card, '
              'or it was stolen" USING (text)', "F1", _having, 0.6),
)  # fmt: skip


def measure(names: Sequence[str], folder: Path, *, model: str, rows: int, seed: int) -> bool:
    """Prints a line for each construct; True where all reach what they should."""
    import uql

    print(
        f"{'construct':25} {'measure':18} {'reached':>8} {'wanted':>7} {'calls':>6} {'known':>6} {'errors':>7} {'seconds':>8}"
    )
    good = True
    with (
        TemporaryDirectory() as kept,  # what one construct asked, another need not ask again
        uql.connect(model=model, ledger=f"{kept}/ledger.sqlite", budget="all", seed=seed, progress=False) as con,
    ):
        truth = fill(con, folder, rows, seed)
        for construct in CONSTRUCTS:
            if names and construct.name not in names:
                continue
            began = time.monotonic()
            half = {"half": max(8, rows // 2)} if "$half" in construct.query else {}
            query = construct.query.replace("$half", str(half.get("half", "")))
            result = con.uql(query)
            reached = construct.judge(result.fetchall(), truth)
            good = good and reached >= construct.least
            cost, seconds = result.cost, time.monotonic() - began
            print(
                f"{construct.name:25} {construct.measure:18} {reached:8.2f} {construct.least:7.2f} {cost.calls:6} "
                f"{cost.cached:6} {len(result.errors):7} {seconds:8.1f}",
                flush=True,
            )
    return good
