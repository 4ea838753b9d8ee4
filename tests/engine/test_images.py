"""Pictures: CLEVR-like scenes are made fast and the same for a seed; a query over them gives the truth of their scene files."""

from __future__ import annotations

import io
import json
import time

import duckdb
import pytest
from PIL import Image

import uql
from uql.benchmarks.datasets import clevr

ANSWERS = {
    "there are fewer than four objects": "obj_count < 4",
    "there are more than three spheres": "spheres > 3",
    "the number of cubes": "cubes",
    "the shape that is most frequent": "CASE WHEN cubes >= spheres AND cubes >= cylinders THEN 'cube' WHEN spheres >= cylinders THEN 'sphere' ELSE 'cylinder' END",
}
N = 60


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    found = tmp_path_factory.mktemp("clevr")
    clevr.write(found, N, seed=3, width=160, height=120)
    lines = ['data = "data.parquet"', 'labels = "labels.parquet"', 'key = "id"', "[answers]"]
    lines += [f"{json.dumps(text)} = {json.dumps(sql)}" for text, sql in ANSWERS.items()]
    (found / "oracle.toml").write_text("\n".join(lines))
    return found


@pytest.fixture
def con(folder):
    con = uql.connect(model=f"oracle:{folder}/oracle.toml", ledger=":memory:", budget="all")
    con.sql(f"SELECT * FROM '{folder}/data.parquet'").create("scenes")
    return con


def truth(folder, sql):
    return duckdb.sql(sql.replace("labels", f"'{folder}/labels.parquet'")).fetchall()


def test_scenes_are_pictures_with_their_objects_in_sight():
    for image, scene in clevr.scenes(5, seed=1):
        picture = Image.open(io.BytesIO(image))
        assert (picture.format, picture.size) == ("PNG", (320, 240))
        assert 3 <= len(scene["objects"]) <= 10
        _, seen = clevr.draw(scene)
        assert seen.min() >= clevr.VISIBLE
        for o in scene["objects"]:
            assert set(o) == {"shape", "size", "material", "color", "3d_coords", "rotation", "pixel_coords"}
            x, y, _ = o["pixel_coords"]
            assert 0 <= x < 320
            assert 0 <= y < 240
        n = len(scene["objects"])
        for i in range(n):
            for j in range(n):
                right, left = scene["relationships"]["right"][i], scene["relationships"]["left"][j]
                assert (j in right) == (i in left)


def test_a_seed_gives_the_same_scenes_and_another_others():
    one, again, other = (list(clevr.scenes(2, seed=s)) for s in (5, 5, 6))
    assert one == again
    assert one != other
    json.dumps(one[0][1])


def test_fifteen_scenes_are_drawn_in_a_second_of_the_processor():
    start = time.process_time()
    made = len(list(clevr.scenes(30, seed=2)))
    assert made / (time.process_time() - start) >= 15


def test_a_count_over_pictures_is_that_of_their_scenes(con, folder):
    result = con.uql('SELECT COUNT(*) AS n FROM scenes WHERE "there are more than three spheres"')
    assert result.fetchall() == truth(folder, "SELECT COUNT(*) FROM labels WHERE spheres > 3")
    assert result.exact
    assert result.cost.calls == N


def test_pictures_are_counted_labelled_and_grouped(con, folder):
    assert con.uql('SELECT SUM("the number of cubes"::INTEGER) AS n FROM scenes').fetchall() == truth(
        folder, "SELECT SUM(cubes) FROM labels"
    )
    grouped = con.uql(
        "SELECT shape, COUNT(*) AS n FROM scenes GROUP BY \"the shape that is most frequent\"::ENUM('cube', 'sphere', 'cylinder') AS shape ORDER BY shape"
    )
    assert grouped.fetchall() == truth(
        folder,
        f"SELECT {ANSWERS['the shape that is most frequent']}::ENUM('cube', 'sphere', 'cylinder') AS shape, COUNT(*) FROM labels "
        "GROUP BY 1 ORDER BY 1",
    )


def test_a_count_of_pictures_beyond_the_budget_has_an_interval(folder, con):
    result = con.uql('SELECT COUNT(*) AS n FROM scenes WHERE "there are fewer than four objects" WITH (budget = 40)')
    found = result.estimates["n"]
    ((right,),) = truth(folder, "SELECT COUNT(*) FROM labels WHERE obj_count < 4")
    assert found.low <= right <= found.high
    assert result.cost.calls <= 40
