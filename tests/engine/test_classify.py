"""Labels from a list, from a table, and from tables too long to be shown at once."""

from __future__ import annotations

import uql
from uql.llm.providers.base import Answer, Capabilities, Limits, Price, Reply
from uql.llm.questions import NONE, Choice, Extract

COUNTRIES = [
    "Argentina",
    "Australia",
    "Austria",
    "Belgium",
    "Bolivia",
    "Brazil",
    "Bulgaria",
    "Cameroon",
    "Canada",
    "Chile",
    "China",
    "Colombia",
    "Croatia",
    "Cuba",
    "Denmark",
    "Ecuador",
    "Egypt",
    "Estonia",
    "Ethiopia",
    "Finland",
    "France",
    "Germany",
    "Ghana",
    "Greece",
    "Hungary",
    "Iceland",
    "India",
    "Indonesia",
    "Iran",
    "Iraq",
    "Ireland",
    "Israel",
    "Italy",
    "Jamaica",
    "Japan",
    "Kenya",
    "Latvia",
    "Lebanon",
    "Malaysia",
    "Mexico",
    "Morocco",
    "Nepal",
    "Netherlands",
    "Nigeria",
    "Norway",
    "Pakistan",
    "Panama",
    "Peru",
    "Poland",
    "Portugal",
    "Romania",
    "Russia",
    "Senegal",
    "Serbia",
    "Spain",
    "Sweden",
    "Switzerland",
    "Thailand",
    "Turkey",
    "Ukraine",
]
T = "CASE WHEN text IS NULL THEN NULL ELSE about END"


class Geographer:
    """Finds the label that stands in the text among those shown; keeps what it was shown."""

    name, is_local = "geographer", True
    limits, price = Limits(concurrency=4), Price(0, 0)

    def __init__(self, capabilities=None):
        self.capabilities = capabilities or Capabilities()
        self.shown, self.calls = [], 0

    def version(self, question):
        return "1"

    def tokens_at_most(self, request):
        return 10, 10

    async def aclose(self):
        return None

    async def answer(self, request):
        self.calls += 1
        return Reply(tuple(self._one(q, request.row.cells[0].value) for q in request.questions), 1, 1)

    def _one(self, question, text):
        if isinstance(question, Extract):
            return Answer(len(text))
        assert isinstance(question, Choice)
        self.shown.append(question.labels)
        return Answer(next((label for label in question.labels if label in text), NONE))


def travels(model, **settings):
    con = uql.connect(model=model, ledger=":memory:", budget="all", **settings)
    con.sql(f"SELECT unnest({COUNTRIES}) AS name").create("countries")
    con.sql(
        "SELECT row_number() OVER () AS id, 'A traveller wrote of a journey to ' || name AS text FROM countries"
    ).create("notes")
    return con


def test_labels_may_come_from_a_table(con, world):
    con.sql("SELECT DISTINCT about AS name FROM labels WHERE about <> 'music'").create("topics")
    found = con.uql('SELECT id FROM reviews WHERE "the topic" IN (SELECT name FROM topics) ORDER BY id')
    assert found.fetchall() == world.truth(f"SELECT id FROM r WHERE {T} IN ('plot', 'acting') ORDER BY id")
    con.sql("DELETE FROM topics")
    assert con.uql('SELECT id FROM reviews WHERE "the topic" IN (SELECT name FROM topics)').fetchall() == []


def test_rows_that_fit_no_label_are_not_in_the_list(con, world):
    found = con.uql("SELECT COUNT(*) FROM reviews WHERE NOT \"the topic\" IN ('plot', 'sport')")
    assert found.fetchall() == world.truth(f"SELECT COUNT(*) FROM r WHERE NOT {T} IN ('plot', 'sport')")


def test_fifty_labels_or_fewer_are_shown_whole():
    model = Geographer()
    con = travels(model)
    con.uql('SELECT id FROM notes WHERE "the country" IN (SELECT name FROM countries LIMIT 50)').fetchall()
    assert {len(labels) for labels in model.shown} == {50}


def test_a_longer_list_is_narrowed_for_each_row_by_meaning():
    model = Geographer()
    result = travels(model).uql('SELECT id FROM notes WHERE "the country" IN (SELECT name FROM countries) ORDER BY id')
    found = result.fetchall()
    assert {len(labels) for labels in model.shown} == {30}
    assert len(found) >= 0.95 * len(COUNTRIES)
    assert model.calls == len(COUNTRIES)
    assert any("each row was shown the 30 nearest" in note for note in result.notes)


def test_a_longer_list_is_shown_whole_to_a_model_that_evaluates_what_prompts_share_once_where_it_fits_half_the_context():
    for context, shown in ((4096, 60), (512, 30)):
        model = Geographer(Capabilities(shares_prefix=True, context=context))
        result = travels(model).uql('SELECT id FROM notes WHERE "the country" IN (SELECT name FROM countries)')
        found = result.fetchall()
        assert {len(labels) for labels in model.shown} == {shown}
        assert len(found) >= 0.95 * len(COUNTRIES)
        assert any("nearest" in note for note in result.notes) == (shown == 30)


def test_a_longer_list_is_narrowed_where_another_text_rides_along_so_that_it_stands_behind_the_row():
    model = Geographer(Capabilities(shares_prefix=True, context=4096))
    enum = ", ".join(f"'{name}'" for name in COUNTRIES)
    travels(model).uql(f'SELECT "the country"::ENUM({enum}) AS c, "the length"::INTEGER AS n FROM notes').fetchall()
    assert {len(labels) for labels in model.shown} == {30}


def test_a_narrowed_list_still_rides_in_one_request_with_other_texts():
    model = Geographer()
    enum = ", ".join(f"'{name}'" for name in COUNTRIES)
    result = travels(model).uql(
        f'SELECT "the country"::ENUM({enum}) AS c, "the length"::INTEGER AS n FROM notes ORDER BY id'
    )
    rows = result.fetchall()
    assert sum(c == name for (c, _), name in zip(rows, COUNTRIES, strict=True)) >= 0.95 * len(COUNTRIES)
    assert all(n > 30 for _, n in rows)
    assert model.calls == len(COUNTRIES)
    assert result.cost.calls == len(COUNTRIES)
