"""The tables of a suite, and a reader that answers what UQL asks of their texts and images from the labels of the row.

A reader is an oracle (`uql.llm.providers.oracle`): it knows a question by its words and a row by what is shown of it. Where the
labels say nothing of a row it says nothing.
"""

from __future__ import annotations

import hashlib
import struct
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb

from uql.benchmarks.sembench.scenarios import write_oracle

if TYPE_CHECKING:
    import pyarrow as pa

    from uql.api.connection import Connection


@dataclass(frozen=True, slots=True)
class World:
    """What a question of a suite may be asked of.

    Attributes:
        name: of the suite, or of the part of it.
        tables: by name.
        oracle: the file of the reader.
        comments: of tables, and of columns as "table.column".
    """

    name: str
    tables: Mapping[str, pa.Table]
    oracle: Path
    comments: Mapping[str, str]

    def fill(self, con: Connection) -> None:
        """Makes the tables in a connection's database, with their comments."""
        cursor = con.catalog.cursor
        for name, table in self.tables.items():
            cursor.register("__given", table)
            cursor.execute(f'CREATE OR REPLACE TABLE "{name}" AS SELECT * FROM __given')
            cursor.unregister("__given")
        for name, words in self.comments.items():
            table, _, column = name.partition(".")
            target = f'COLUMN "{table}"."{column}"' if column else f'TABLE "{table}"'
            cursor.execute(f"COMMENT ON {target} IS '{words.replace(chr(39), chr(39) * 2)}'")


def table_of(con: duckdb.DuckDBPyConnection, sql: str) -> pa.Table:
    """The rows of a statement."""
    relation = con.sql(sql)
    return relation.to_arrow_table() if hasattr(relation, "to_arrow_table") else relation.fetch_arrow_table()


# ------------------------------------------------------------------------------------------------------------ rotowire
PLAYER = {
    "the points that {name} scored": "points",
    "the assists of {name}": "assists",
    "the field goals that {name} made": "field_goals_made",
    "the three pointers that {name} made": "three_pointers_made",
    "the rebounds of {name}": "total_rebounds",
}
TEAM = {
    "the final score of the {name}": "total_points",
    "the points of the {name} in the first quarter": "points_q1",
    "the percentage of field goals of the {name}": "pct_field_goals",
}


def rotowire(shared: Path, work: Path, *, few: bool = False) -> World:
    """Players, teams, the reports of games, and who played in which.

    Args:
        shared: the folder that holds rotowire/.
        work: where labels and reader are written.
        few: the 100 games of M²EX only.
    """
    folder = shared / "rotowire"
    games = f"(SELECT game_id, report FROM '{folder}/valid_reports.parquet'{' WHERE in_m2ex_100' if few else ''})"
    with duckdb.connect() as con:
        tables = {
            "players": table_of(con, f"SELECT * FROM '{folder}/players.parquet'"),
            "teams": table_of(con, f"SELECT * FROM '{folder}/teams.parquet'"),
            "reports": table_of(con, f"SELECT * FROM {games}"),
        }
        links = {}
        for who in ("players", "teams"):
            linked = (
                f"SELECT l.name, l.game_id FROM '{folder}/valid_{who}_to_games.parquet' l JOIN {games} USING (game_id)"
            )
            tables[f"{who}_to_games"] = table_of(con, linked)
            links[who] = f"SELECT name, game_id, report FROM ({linked}) JOIN {games} USING (game_id)"
        shown = " UNION ALL ".join(f"SELECT '{who}' AS kind, * FROM ({sql})" for who, sql in links.items())
        con.sql(f"SELECT row_number() OVER () AS id, * FROM ({shown})").create("shown")
        con.sql("SELECT id, name, report FROM shown").write_parquet(str(work / "rotowire.parquet"))
        label = f"'{folder}/valid_labels_{{}}_game.parquet'"
        con.sql(
            f"SELECT s.id, p.* EXCLUDE (game_id, name), t.* EXCLUDE (game_id, name, assists, turnovers) FROM shown s "
            f"LEFT JOIN {label.format('player')} p ON s.kind = 'players' AND p.game_id = s.game_id AND p.name = s.name "
            f"LEFT JOIN {label.format('team')} t ON s.kind = 'teams' AND t.game_id = s.game_id AND t.name = s.name"
        ).write_parquet(str(work / "rotowire_labels.parquet"))
    answers = {f"{words} in the game, according to {{report}}": column for words, column in {**PLAYER, **TEAM}.items()}
    oracle = write_oracle(
        work / "rotowire.toml", work / "rotowire.parquet", work / "rotowire_labels.parquet", "id", answers, 0.0
    )
    comments = {
        "players": "basketball players of the NBA",
        "players.height": "in feet",
        "teams": "basketball teams of the NBA",
        "teams.founded": "year",
        "reports": "reports of basketball games",
        "reports.report": "what a newspaper wrote about the game",
        "players_to_games": "which player took part in which game",
        "teams_to_games": "which team took part in which game",
    }
    return World("rotowire-m2ex" if few else "rotowire", tables, oracle, comments)


# ----------------------------------------------------------------------------------------------------- countries_flags
SHOWN = ("star", "crescent", "cross", "sun", "animal", "weapon", "writing")


def countries_flags(shared: Path, work: Path) -> World:
    """Countries, texts about them, and their flags as images. What a flag shows is known of 116 of the 194."""
    folder = shared / "countries_flags"
    with duckdb.connect() as con:
        tables = {
            name: table_of(con, f"SELECT * FROM '{folder}/{name}.parquet'")
            for name in ("countries", "profiles", "flags")
        }
        con.sql(
            f"SELECT f.code, f.image, p.name, p.background FROM '{folder}/flags.parquet' f "
            f"JOIN '{folder}/profiles.parquet' p USING (code)"
        ).write_parquet(str(work / "countries.parquet"))
    answers = {}
    for what in SHOWN:
        article = "" if what == "writing" else "an " if what == "animal" else "a "
        answers[f"the flag {{f.image}} shows {article}{what}"] = f"flag_{what} = 'yes'"
    answers["the year in which {name} became independent, according to {background}"] = (
        "CASE WHEN year_in_background THEN independence_year::INTEGER END"
    )
    labels = folder / "labels.parquet"
    oracle = write_oracle(work / "countries.toml", work / "countries.parquet", labels, "code", answers, 0.0)
    comments = {
        "countries": "countries of the world",
        "countries.area_km2": "area in square kilometres",
        "countries.borders": "three-letter codes of the neighbours",
        "profiles": "texts about the history, climate and economy of countries",
        "profiles.background": "history of the country, when it became independent",
        "flags": "pictures of the flags of countries",
        "flags.image": "picture of the flag",
    }
    return World("countries_flags", tables, oracle, comments)


# -------------------------------------------------------------------------------------------------------------- artwork
SEEN = {
    "the number of babies that {image} depicts": "babies",
    "the number of swords that {image} depicts": "swords",
    "{image} depicts war": "war",
    "{image} depicts animals": "animals",
    "{image} depicts fruit": "fruit",
    "{image} depicts a person": "person",
    "{image} depicts a sword": "sword",
    "1 where {image} depicts a person, else 0": "person::INTEGER",
    "1 where {image} depicts a sword, else 0": "sword::INTEGER",
}


def artwork(shared: Path, work: Path) -> World:
    """The 101 paintings that M²EX asks about, with stand-ins for their images, and a reader that replays recorded answers.

    The images of the paintings are not to be had: in their place stands for each a small picture made from its name. What BLIP
    and Qwen3-VL answered when they were shown the true ones is recorded, and the reader repeats it: the seven attributes under the
    words of `SEEN`, every other recorded question under its own words with `{image}` before them.
    """
    folder = shared / "artwork"
    with duckdb.connect() as con:
        paintings = table_of(con, f"SELECT * FROM '{folder}/paintings_101.parquet'")
        import pyarrow as pa

        names = paintings.column("img_path").to_pylist()
        paintings = paintings.append_column("image", pa.array([stand_in(name) for name in names], pa.binary()))
        con.register("paintings", paintings)
        con.sql("SELECT img_path, image FROM paintings").write_parquet(str(work / "artwork.parquet"))
        recorded = f"'{folder}/recorded_image_answers.parquet'"
        said = con.execute(
            "SELECT asked, bool_and(regexp_matches(lower(answer), '^(yes|no)\\b')), bool_and(regexp_full_match(answer, '\\d+')) "
            f"FROM {recorded} GROUP BY asked HAVING count(DISTINCT img_path) = {len(names)} ORDER BY asked"
        ).fetchall()
        columns = {asked: f"said_{i}" for i, (asked, _, _) in enumerate(said)}
        spread = ", ".join(
            f"min(answer) FILTER (asked = '{asked.replace(chr(39), chr(39) * 2)}' AND model = first_model) AS {column}"
            for asked, column in columns.items()
        )
        con.sql(
            f"WITH r AS (SELECT *, min(model) OVER (PARTITION BY asked) AS first_model FROM {recorded}), "
            f"s AS (SELECT img_path, {spread} FROM r GROUP BY img_path) "
            f"SELECT a.*, s.* EXCLUDE (img_path) FROM '{folder}/recorded_image_attributes.parquet' a LEFT JOIN s USING (img_path)"
        ).write_parquet(str(work / "artwork_labels.parquet"))
    answers = dict(SEEN)
    for asked, yes_no, counts in said:
        column = columns[asked]
        answers[f"{{image}} {asked}"] = (
            f"starts_with(lower({column}), 'yes')" if yes_no else f"{column}::INTEGER" if counts else column
        )
    oracle = write_oracle(
        work / "artwork.toml", work / "artwork.parquet", work / "artwork_labels.parquet", "img_path", answers, 0.0
    )
    comments = {
        "paintings": "paintings with their date, movement and genre",
        "paintings.inception": "date on which the painting was made, as text YYYY-MM-DD",
        "paintings.image": "picture of the painting",
    }
    return World("artwork", {"paintings": paintings}, oracle, comments)


def artwork_full(shared: Path, work: Path) -> World:
    """All 7,912 paintings without their images, for questions over their dates, movements and genres."""
    seen = artwork(shared, work)
    with duckdb.connect() as con:
        paintings = table_of(con, f"SELECT * FROM '{shared}/artwork/paintings_full.parquet'")
    comments = {name: words for name, words in seen.comments.items() if name != "paintings.image"}
    return World("artwork-full", {"paintings": paintings}, seen.oracle, comments)


def stand_in(name: str) -> bytes:
    """A PNG of 8 × 8 pixels whose colours are a hash of a name: one for each name, the same on every machine."""
    colours = hashlib.shake_256(name.encode()).digest(8 * 8 * 3)
    lines = b"".join(b"\0" + colours[at : at + 24] for at in range(0, len(colours), 24))
    head = struct.pack(">IIBBBBB", 8, 8, 8, 2, 0, 0, 0)
    parts = ((b"IHDR", head), (b"IDAT", zlib.compress(lines)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in parts
    )


WORLDS: dict[str, Callable[[Path, Path], World]] = {
    "rotowire": rotowire,
    "countries_flags": countries_flags,
    "artwork": artwork,
}


def place_of(suite: str, question: str) -> str:
    """Which tables of a suite a question is asked of: "all", "few" (the games of M²EX) or "full" (all paintings)."""
    if suite == "rotowire" and "m2ex" in question:
        return "few"
    return "full" if question.startswith("artfull-") else "all"


def world(suite: str, place: str, shared: Path, work: Path) -> World:
    """The tables of a place of a suite."""
    if place == "few":
        return rotowire(shared, work, few=True)
    return artwork_full(shared, work) if place == "full" else WORLDS[suite](shared, work)
