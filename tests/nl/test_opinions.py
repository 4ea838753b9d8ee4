"""Questions that are asked of many texts together: what they say in all, and which of those that they are about is the friendliest."""

from __future__ import annotations

import duckdb
import pytest
from nl.meant import asked, holding, not_holding

from uql.features.embedder import Embedder
from uql.nl.schema.discover import discover
from uql.nl.small.lines.reading import nodes_of
from uql.sources.catalog import Catalog


def hotels() -> duckdb.DuckDBPyConnection:
    """Some hotels stand twice in their table; what they offer is a list in a text."""
    con = duckdb.connect()
    con.execute(
        "CREATE TABLE hotels AS SELECT 'h' || (i % 20) AS id, ['Bellevue', 'Seeblick', 'Astoria'][1 + i % 3] || ' ' || (i % 20) AS name, "
        "['Basel', 'Trier', 'Gent'][1 + i % 3] AS city, "
        "['sauna, pool', 'pool, garden, bar', 'bar', 'garden, sauna', 'pool, bar', 'sauna'][1 + i % 6] AS offers FROM range(23) t(i)"
    )
    con.execute(
        "CREATE TABLE reviews AS SELECT i AS review_id, 'h' || (i * 3 % 20) AS hotel_id, ['Expedio', 'Tripster'][1 + i % 2] AS portal, "
        "TIMESTAMP '2024-03-01 08:00:00' + INTERVAL (i * 7) HOUR AS written_at, "
        "['The people at the desk were kind to us and helped with our bags, but the bed was hard as a board.', "
        "'We could not sleep because of the street, and breakfast was over when we came down at nine.', "
        "'A quiet house with a view over the lake; our room was cleaned twice a day by a cheerful lady.'][1 + i % 3] || i AS review "
        "FROM range(90) t(i)"
    )
    return con


MEANT = """
hotels | Which portal has the harshest reviews? | reviews | GROUP BY portal; SELECT percent(ask('{portal} has harsh reviews')); ORDER BY percent DESC; LIMIT 1
hotels | Which hotel has the friendliest staff? | hotels reviews | GROUP BY name; SELECT percent(ask('{name} has friendly staff')); ORDER BY percent DESC; LIMIT 1
hotels | Which city has the least helpful staff? | hotels reviews | GROUP BY city; SELECT percent(ask('has helpful staff')); ORDER BY percent ASC; LIMIT 1
hotels | Summarize what guests dislike about Trier. | hotels reviews | WHERE city = 'Trier'; SELECT summary('Summarize what guests dislike about Trier.')
hotels | What are the main complaints about the breakfast? | reviews | SELECT summary('What are the main complaints about the breakfast?')
hotels | What do the guests say about the beds? | reviews | SELECT summary('What do the guests say about the beds?')
hotels | Are there more complaints about noise than about dirt? | reviews | SELECT difference(count(ask('complaints about noise')), count(ask('about dirt')))
hotels | Show five reviews that praise the breakfast. | reviews | WHERE ask('praise the breakfast'); SELECT review_id; LIMIT 5
hotels | How many reviews were written per day? | reviews | GROUP BY day(written_at); SELECT count(*)
hotels | Which hotels have a sauna? | hotels | WHERE offers LIKE '%sauna%'; SELECT name
hotels | Which dish is mentioned most often? | reviews | GROUP BY ask('the dish that is mentioned'); SELECT count(*); ORDER BY count(*) DESC; LIMIT 1
hotels | What are the three most common complaints about the rooms in Basel? | hotels reviews | WHERE city = 'Basel'; GROUP BY ask('the complaint about the rooms in basel'); SELECT count(*); ORDER BY count(*) DESC; LIMIT 3
hotels | Count the reviews by mood of the guest. | reviews | GROUP BY ask('the mood of the guest'); SELECT count(*); ORDER BY count(*) DESC
hotels | What do guests praise most often? | reviews | GROUP BY ask('what guests praise'); SELECT count(*); ORDER BY count(*) DESC
hotels | What kinds of problems do the guests have? | reviews | GROUP BY ask('the kind of problem'); SELECT count(*); ORDER BY count(*) DESC
hotels | What share of the reviews complains about noise? | reviews | SELECT percent(ask('complains about noise'))
hotels | How many reviews mention the breakfast but not the noise? | reviews | WHERE ask('mention the breakfast') AND NOT ask('mention the noise'); SELECT count(*)
hotels | Which reviews are neither about noise nor about dirt? | reviews | WHERE NOT ask('about noise') AND NOT ask('about dirt'); SELECT review_id
hotels | How many reviews praise the breakfast, and how many praise the staff? | reviews | SELECT count(ask('praise the breakfast')), count(ask('praise the staff'))
hotels | Which city has the highest share of angry reviews? | hotels reviews | GROUP BY city; SELECT percent(ask('angry reviews')); ORDER BY percent DESC; LIMIT 1
hotels | What are the most common reasons for complaints? | reviews | GROUP BY ask('the reason for complaints'); SELECT count(*); ORDER BY count(*) DESC
hotels | How many reviews are positive and how many negative? | reviews | SELECT count(ask('are positive')), count(ask('are negative'))
hotels | Group the reviews by the kind of problem and show the number of each. | reviews | GROUP BY ask('the kind of problem'); SELECT count(*); ORDER BY count(*) DESC
hotels | How many reviews were written by families? | reviews | WHERE ask('written by families'); SELECT count(*)
hotels | Compare the share of angry reviews of Basel and Gent. | hotels reviews | WHERE city IN ('Basel', 'Gent'); GROUP BY city; SELECT percent(ask('angry reviews'))
"""
NOT_MEANT = """
hotels | Which hotel has the friendliest staff? | hotels reviews | GROUP BY name; SELECT count(*); ORDER BY count(*) DESC; LIMIT 1
hotels | Summarize each review. | reviews | SELECT summary('Summarize each review.')
hotels | What are the main complaints about the breakfast? | reviews | SELECT review_id, ask('main complaints about the breakfast') AS answer
hotels | Which reviews are neither about noise nor about dirt? | reviews | WHERE ask('about noise'); SELECT review_id
hotels | Show five reviews that praise the breakfast. | reviews | WHERE ask('praise the breakfast'); SELECT review_id
"""


@pytest.fixture(scope="module")
def catalogs() -> dict[str, Catalog]:
    return {"hotels": Catalog(hotels())}


test_the_grammar_of_a_question_holds_what_it_means = holding({"hotels": hotels}, MEANT)


test_it_does_not_hold_what_the_question_excludes = not_holding({"hotels": hotels}, NOT_MEANT)


def test_a_summary_is_said_of_all_rows_with_how_many_they_are(catalogs: dict[str, Catalog], embedder: Embedder) -> None:
    question = 'Summarize what guests say about "quiet" rooms.'
    scope, _ = asked(question, catalogs["hotels"], embedder)
    made = nodes_of("FROM reviews\nSELECT summary('Summarize what guests say about ’quiet’ rooms.')", scope, question)
    assert made["nodes"][0]["uql"] == (
        'SELECT count(*) AS n, PROMPT "Summarize what guests say about ’quiet’ rooms." AS summary FROM reviews'
    )


def test_the_first_by_a_share_is_asked_once(catalogs: dict[str, Catalog], embedder: Embedder) -> None:
    scope, _ = asked("", catalogs["hotels"], embedder)
    text = "FROM reviews\nGROUP BY portal\nSELECT percent(ask('is harsh'))\nORDER BY percent DESC\nLIMIT 1"
    first, last = (node.get("uql") or node["body"] for node in nodes_of(text, scope)["nodes"])
    assert first.count("PROMPT") == 1
    assert "rank() OVER (ORDER BY percent_is_harsh DESC)" in last


def test_groups_that_only_texts_tell_are_found_by_group_by(catalogs: dict[str, Catalog], embedder: Embedder) -> None:
    scope, _ = asked("", catalogs["hotels"], embedder)
    text = "FROM reviews\nGROUP BY ask('the dish that is mentioned')\nSELECT count(*)\nORDER BY count(*) DESC\nLIMIT 1"
    first, last = (node.get("uql") or node["body"] for node in nodes_of(text, scope)["nodes"])
    assert first == 'SELECT dish, count(*) AS n FROM reviews GROUP BY PROMPT "the dish that is mentioned" AS dish'
    assert "dish <> 'none of these'" in last


def test_a_share_is_not_asked_of_the_rows_that_are_so_alone(catalogs: dict[str, Catalog], embedder: Embedder) -> None:
    scope, _ = asked("", catalogs["hotels"], embedder)
    text = "FROM reviews\nWHERE portal = 'Expedio' AND ask('is sarcastic')\nSELECT percent(ask('is sarcastic'))"
    (only,) = nodes_of(text, scope)["nodes"]
    assert only["uql"].endswith("FROM reviews WHERE portal = 'Expedio'")


def test_a_key_that_some_rows_share_is_pointed_to_by_a_column_called_like_its_table() -> None:
    scope = discover("", Catalog(hotels()), None)
    assert [str(link) for link in scope.links] == ["reviews.hotel_id = hotels.id"]


def test_a_value_named_in_full_is_not_taken_for_another_like_it() -> None:
    con = duckdb.connect()
    con.execute(
        "CREATE TABLE tweets AS SELECT i AS id, ['American', 'Virgin America', 'United'][1 + i % 3] AS airline FROM range(90) t(i)"
    )
    found = discover("How many tweets are about Virgin America?", Catalog(con), None)
    assert found.sources["tweets"].matches == (("airline", "Virgin America"),)


def test_a_word_within_a_name_is_no_part_of_it() -> None:
    con = duckdb.connect()
    con.execute("CREATE TABLE critics AS SELECT 'Kim Sayles ' || i AS critic, i AS n FROM range(3000) t(i)")
    found = discover("What do the critics say?", Catalog(con), None)
    assert found.sources["critics"].words["critic"] == ()
