"""Input tokens of WHERE + SELECT + GROUP BY over one column, fused and apart.

    python -m uql.benchmarks.optimizer.fused_tokens [--rows 1000] [--chars 600]

The model answers in this process by a hash and counts the tokens of what it is shown. "Apart" has the fusions switched off; both
give the same rows.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass

import uql
from uql.benchmarks.optimizer.hashed import Hashed
from uql.compiler.fusions import NAMES

QUERY = (
    'SELECT topic, COUNT(*) AS n, AVG("the number of people named"::INTEGER) AS people FROM reports '
    'WHERE "it is {word}" GROUP BY "the main topic" AS topic ORDER BY topic'
)
SHARES = {"rare": 0.1, "even": 0.5, "common": 0.9}


@dataclass(frozen=True, slots=True)
class Measured:
    share: float  # of rows that pass
    fused: int  # input tokens
    apart: int
    calls: int
    calls_apart: int
    same: bool  # rows


def measured(word: str, rows: int, chars: int) -> Measured:
    """One query, both ways."""
    found = []
    for off in ("", ",".join(NAMES)):
        with uql.connect(model=Hashed(SHARES), ledger=":memory:", budget="all", disabled_rules=off) as con:
            con.sql(
                f"SELECT i AS id, 'Report ' || i || ': ' || repeat('something was said about it. ', {chars // 28}) AS text "
                f"FROM range({rows}) r(i)"
            ).create("reports")
            result = con.uql(QUERY.format(word=word))
            found.append((result.fetchall(), result.cost))
    (one, fused), (two, apart) = found
    return Measured(SHARES[word], fused.input_tokens, apart.input_tokens, fused.calls, apart.calls, one == two)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--chars", type=int, default=600, help="of a row")
    given = parser.parse_args()
    print("rows that pass  tokens fused  tokens apart   saved  calls fused  calls apart  same rows")
    for word in SHARES:
        m = measured(word, given.rows, given.chars)
        print(
            f"{m.share:14.0%} {m.fused:13,} {m.apart:13,} {1 - m.fused / m.apart:7.1%} {m.calls:12,} {m.calls_apart:12,}  "
            f"{'yes' if m.same else 'no':>9}"
        )


if __name__ == "__main__":
    main()
