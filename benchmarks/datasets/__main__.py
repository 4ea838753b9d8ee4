"""`python -m uql.benchmarks.datasets banking77 bank.duckdb`: a labelled data set as a database, and its labels as a model.

Beside the database it writes NAME.toml, which `--model oracle:NAME.toml` takes for a model that answers by the labels: what is tried with
it costs nothing, takes no time, and is the same everywhere.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

BANKING77 = Path(__file__).parent / "banking77"
ORACLE = """# A model that answers by the labels of banking77 (PolyAI, CC BY 4.0). Left: a text of the query; right: SQL over the labels.
data = "{data}"
labels = "{labels}"
key = "id"

[answers]
"the customer lost their card" = "intent = 'lost_or_stolen_card'"
"the customer wants to close their account" = "intent = 'terminate_account'"
"a transfer has failed" = "intent IN ('failed_transfer', 'declined_transfer')"
"it is about Apple Pay or Google Pay" = "intent = 'apple_pay_or_google_pay'"
"what the question is about" = "CASE WHEN intent LIKE '%transfer%' THEN 'transfers' WHEN intent LIKE '%top%up%' THEN 'top-ups' \\
WHEN intent LIKE '%card%' THEN 'cards' WHEN intent LIKE '%cash%' THEN 'cash' ELSE 'other' END"
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Writes the database and the label file; says what it wrote."""
    import duckdb

    parser = argparse.ArgumentParser("python -m uql.benchmarks.datasets", description=__doc__)
    parser.add_argument("name", choices=["banking77"])
    parser.add_argument("database", type=Path, help="a new DuckDB file")
    given = parser.parse_args(argv)
    if given.database.exists():
        print(f"{given.database} is there already", file=sys.stderr)
        return 2
    with duckdb.connect(str(given.database)) as con:
        con.execute(
            "CREATE TABLE questions AS SELECT * FROM read_parquet(?) ORDER BY id", [str(BANKING77 / "data.parquet")]
        )
        con.execute("COMMENT ON COLUMN questions.text IS 'a question that a customer asked a bank'")
        (rows,) = con.execute("SELECT COUNT(*) FROM questions").fetchone() or (0,)
    oracle = given.database.with_suffix(".toml")
    oracle.write_text(
        ORACLE.replace("\\\n", "").format(
            data=_quoted(BANKING77 / "data.parquet"), labels=_quoted(BANKING77 / "labels.parquet")
        ),
        encoding="utf-8",
    )
    print(f"{given.database}: questions, {rows:,} rows")
    print(f"{oracle}: the labels as a model")
    return 0


def _quoted(path: Path) -> str:
    """A path inside a basic string of TOML."""
    return str(path.resolve()).replace("\\", "\\\\").replace('"', '\\"')


if __name__ == "__main__":
    sys.exit(main())
