"""`python -m uql.benchmarks.datasets banking77 bank.duckdb`: a labelled data set as a database, and its labels as a model.

Beside the database it writes NAME.toml, which `--model oracle:NAME.toml` takes for a model that answers by the labels: what is tried with
it costs nothing, takes no time, and is the same everywhere.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from uql.base.sql_text import literal, quote
from uql.benchmarks.datasets.examples import EXAMPLES, Example

ORACLE = """# A model that answers by labels: {about}
# Left: a text of the query; right: SQL over the labels.
data = {data}
labels = {labels}
key = "id"

[answers]
{answers}
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Writes the database and the label file; says what it wrote."""
    import duckdb

    parser = argparse.ArgumentParser("python -m uql.benchmarks.datasets", description=__doc__)
    parser.add_argument("name", choices=list(EXAMPLES))
    parser.add_argument("database", type=Path, help="a new DuckDB file")
    given = parser.parse_args(argv)
    if given.database.exists():
        print(f"{given.database} is there already", file=sys.stderr)
        return 2
    make = EXAMPLES[given.name]
    made = make(given.database.resolve().parent)
    with duckdb.connect(str(given.database)) as con:
        con.execute(f"CREATE VIEW data AS FROM read_parquet({literal(str(made.data))})")
        con.execute(f"CREATE TABLE {quote(made.table)} AS {made.select}")
        con.execute("DROP VIEW data")
        for column, comment in made.comments.items():
            con.execute(f"COMMENT ON COLUMN {quote(made.table)}.{quote(column)} IS {literal(comment)}")
        (rows,) = con.execute(f"SELECT COUNT(*) FROM {quote(made.table)}").fetchone() or (0,)
    oracle = given.database.with_suffix(".toml")
    oracle.write_text(oracle_text(made, str(make.__doc__)), encoding="utf-8")
    print(f"{given.database}: {made.table}, {rows:,} rows")
    print(f"{oracle}: the labels as a model")
    return 0


def oracle_text(made: Example, about: str) -> str:
    """The file of a model that answers by the labels."""
    answers = "\n".join(f"{_toml(text)} = {_toml(sql)}" for text, sql in made.answers.items())
    return ORACLE.format(
        about=about, data=_toml(made.data.resolve()), labels=_toml(made.labels.resolve()), answers=answers
    )


def _toml(text: object) -> str:
    """A basic string of TOML."""
    return '"' + str(text).replace("\\", "\\\\").replace('"', '\\"') + '"'


if __name__ == "__main__":
    sys.exit(main())
