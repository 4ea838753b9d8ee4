"""What the judged questions are asked of: databases of nvBench, and six collections whose texts and images are read by labels.

`plain/judged_plain.toml` names databases of nvBench, `plain/judged_reading.toml` the collections below. A reference is SQL over the same
tables; in a collection the table that holds the text or image has the labels as further columns (`Place.truths`), which the question's
tables do not have. The rows of a collection are those that have a label, so that "no label" is never confused with "no".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb

from uql.benchmarks.nl import worlds
from uql.benchmarks.nl.reader import ABOUT, About, Reader
from uql.benchmarks.nl.worlds import World, table_of
from uql.benchmarks.sembench.scenarios import write_oracle
from uql.llm.providers.base import Answer
from uql.llm.questions import Choice, Extract, Predicate, Question, Row, Score, Write

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class Place:
    """A collection.

    Attributes:
        world: the tables of the question, with comments, and the file of the reader.
        truths: the tables of the reference SQL: those of the world, some with labels as further columns.
        about, named: what the reader understands.
    """

    world: World
    truths: Mapping[str, pa.Table]
    about: Sequence[About] = ()
    named: Sequence[Attribute] = ()

    def reader(self) -> LabelReader:
        """A new reader of the labels."""
        return LabelReader(self.world.oracle, self.about, self.named)


@dataclass(frozen=True, slots=True, eq=False)
class Attribute:
    """A label with a few values, as texts may name it.

    Attributes:
        text: of the oracle's file, whose answer is the value.
        asks: a pattern of what asks for the value.
        values: value → patterns that all stand in a text that names it.
    """

    text: str
    asks: str
    values: Mapping[str, Sequence[str]]

    def named_in(self, text: str) -> list[str]:
        """The values that a text names; not one whose patterns are all among those of another (a card payment, a declined card payment)."""
        found = [value for value, parts in self.values.items() if all(re.search(part, text) for part in parts)]
        return [
            value
            for value in found
            if not any(set(self.values[value]) < set(self.values[other]) for other in found if other != value)
        ]


class LabelReader(Reader):
    """A reader of labels for texts in any words; what a text does not say of a row it answers with no."""

    def __init__(self, path: Path, about: Sequence[About], named: Sequence[Attribute]) -> None:
        super().__init__(path, about)
        self.named = tuple(named)

    def _said(self, question: Question, row: Row) -> Answer:
        if isinstance(question, Write) or question.text in self.answers:
            return self._answer(question, row)
        text = re.sub(r"\{[^}]*\}", " ", question.text.lower())
        named = {one: values for one in self.named if (values := one.named_in(text))}
        match question:
            case Predicate() | Score() if named:
                holds = all(self._first(About((), (one.text,)), row) in values for one, values in named.items())
                holds = holds != _is_negated(text)
                return (
                    Answer(holds, float(holds))
                    if isinstance(question, Predicate)
                    else Answer(float(holds) * (question.levels - 1))
                )
            case Extract() if found := self._asked(text, named):
                if question.type == "BOOLEAN" and named:
                    return Answer(self._first(About((), (found.text,)), row) in named.get(found, ()), 1.0)
                return Answer(self._first(About((), (found.text,)), row), 1.0)
            case Choice() if found := self._by_labels(question.labels) or self._asked(text, named):
                return self._chosen(question, found, named, row)
            case Predicate():
                return self._holds_all(question, row)
            case Score() if held := self._held(question.text, row):
                much = float(held[0] or 0)
                return Answer(much / (much + 50.0) * (question.levels - 1))  # any scale that grows with it
        return super()._said(question, row)

    def _holds_all(self, question: Predicate, row: Row) -> Answer:
        """Whether every condition of a text holds; where the labels have the attribute and say nothing of the row: no."""
        texts = _conditions(question.text)
        said = [super(LabelReader, self)._said(replace(question, text=text), row) for text in texts]
        wrong = next((one for one in said if one.problem is not None), None)
        if wrong is not None:
            return Answer(False, 0.0) if self._held(texts[0], row) else wrong
        holds = all(one.value for one in said)
        return Answer(holds, float(holds))

    def _asked(self, text: str, named: Mapping[Attribute, list[str]]) -> Attribute | None:
        """The attribute whose value a text asks for: the one that it mentions first, else the one of which it names values."""
        places = [(found.start(), i) for i, one in enumerate(self.named) if (found := re.search(one.asks, text))]
        return self.named[min(places)[1]] if places else next(iter(named), None)

    def _by_labels(self, labels: Sequence[str]) -> Attribute | None:
        """The attribute whose values most of the labels name; None where fewer than two do."""
        known = [sum(bool(one.named_in(_plain(label))) for label in labels) for one in self.named]
        return self.named[known.index(max(known))] if known and max(known) > 1 else None

    def _chosen(self, question: Choice, one: Attribute, named: Mapping[Attribute, list[str]], row: Row) -> Answer:
        truth = self._first(About((), (one.text,)), row)
        labels = {label: one.named_in(_plain(label)) for label in question.labels}
        said: Any = next((label for label, values in labels.items() if truth in values), None)
        if said is None and one in named and {label.lower() for label in labels} & {"yes", "no", "true", "false"}:
            said = truth in named[one]
        return self._choice(question.text, question.reply(row), said, row, False)


_NUMBERS = ("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_COMPARED = (
    (r"\b(\d{3})0s\b", r"between \g<1>0 and \g<1>9"),
    (r"\b(\d+)((?: \w+){0,3}?) or (?:more|higher|later|above|over)\b", r"at least \1\2"),
    (r"\b(\d+)((?: \w+){0,3}?) or (?:fewer|less|lower|earlier|under)\b", r"at most \1\2"),
    (r"\b(?:before|earlier than) (?=\d)", "below "),
    (r"\b(?:after|later than) (?=\d)", "over "),
    (r"\bsince (?=\d)", "at least "),
)


def _conditions(text: str) -> list[str]:
    """A condition in the words that `reader` knows: one with a number, or two where it names a range."""
    text = text.lower()
    for number, word in enumerate(_NUMBERS, 2):
        text = re.sub(rf"\b{word}\b", str(number), text)
    text = text.replace("3 pointer", "three pointer").replace("3-pointer", "three pointer")
    for pattern, plain in _COMPARED:
        text = re.sub(pattern, plain, text)
    between = re.compile(r"\b(?:between|from) (\d+) (?:and|to|through) (\d+)")
    if not between.search(text):
        return [text]
    return [between.sub(rf"{how} \{group}", text) for how, group in (("at least", 1), ("at most", 2))]


def _plain(label: str) -> str:
    return re.sub(r"[_\W]+", " ", label.lower())


def _is_negated(text: str) -> bool:
    """Whether a text says no; a thing that does not work or show is no negation."""
    left = re.sub(r"\b(not|doesn't|isn't) (work|show|recogni|receiv|allow|updat)\w*", " ", text)
    return re.search(r"\b(not|no|without|neither)\b|n't\b", left) is not None


# ------------------------------------------------------------------------------------- reviews, tweets, messages: one text
_GOOD = r"\b(positiv\w*|favou?rabl\w*|prais\w*|likes?\b|liked|lov(e|es|ed|ing)\b|good|enjoy\w*|recommend\w*|happy|satisf\w*|great)"
_BAD = (
    r"\b(negativ\w*|unfavou?rabl\w*|critici[sz]\w*|dislik\w*|hat(e|es|ed)\b|bad|poor\w*|complain\w*|unhappy|dissatisf\w*|angry|"
    r"disappoint\w*)"
)
_ASKS_SENTIMENT = r"\b(sentiment|tone|opinion|attitude|feeling|mood)"


def movie_reviews(shared: Path, work: Path) -> Place:
    """Reviews and the movies they are of; each text once."""
    folder = shared / "movie_reviews"
    with duckdb.connect() as con:
        reviews = table_of(
            con,
            "SELECT id, movie, critic, publication, CAST(created AS DATE) AS created, text "
            f"FROM '{folder}/data.parquet' QUALIFY row_number() OVER (PARTITION BY text ORDER BY id) = 1 ORDER BY id",
        )
        movies = table_of(
            con,
            "SELECT DISTINCT ON (id) id, title, rating, genre, originalLanguage, director, CAST(releaseDateTheaters AS DATE) AS "
            "releaseDateTheaters, CAST(CAST(runtimeMinutes AS DOUBLE) AS INTEGER) AS runtimeMinutes "
            f"FROM '{folder}/movies.parquet' ORDER BY id",
        )
        answers = {"the sentiment of the review": "sentiment", "the review is positive": "sentiment = 'positive'"}
        made = _of_texts(
            con, "movie_reviews", "reviews", reviews, folder, ("sentiment",), answers, work, {"movies": movies}
        )
    comments = {
        "reviews": "reviews of movies by critics",
        "reviews.text": "what the critic wrote",
        "reviews.created": "day on which the review was written",
        "reviews.movie": "id of the movie",
        "movies.rating": "for which age: PG-13, R …",
    }
    named = (Attribute("the sentiment of the review", _ASKS_SENTIMENT, {"positive": (_GOOD,), "negative": (_BAD,)}),)
    return Place(World("movie_reviews", made.world.tables, made.world.oracle, comments), made.truths, (), named)


_LUGGAGE = r"\b(luggage|bag|baggage|suitcase)"
REASONS: Mapping[str, Sequence[str]] = {
    "Customer Service Issue": (r"\bcustomer (service|support|care)",),
    "Late Flight": (r"\b(late\b|delay)",),
    "Can't Tell": (r"\bcan('| no)?t tell",),
    "Lost Luggage": (r"\b(lost|lose|losing|missing)\b", _LUGGAGE),
    "Cancelled Flight": (r"\bcancel",),
    "Bad Flight": (r"\bbad flight",),
    "Flight Attendant Complaints": (r"\b(attendant|crew)",),
    "Flight Booking Problems": (r"\bbook",),
    "longlines": (r"\b(long ?lines?|lines|queue)",),
    "Damaged Luggage": (r"\bdamag", _LUGGAGE),
}
AIRLINES: Mapping[str, Sequence[str]] = {
    "American": (r"(?<!virgin )\bamerican?\b",),
    "Delta": (r"\bdelta\b",),
    "Southwest": (r"\bsouthwest\b",),
    "US Airways": (r"\bus ?airways\b",),
    "United": (r"\bunited\b",),
    "Virgin America": (r"\bvirgin\b",),
}


def airline_tweets(shared: Path, work: Path) -> Place:
    """The first thousand tweets by id (their order is by chance)."""
    folder = shared / "airline_tweets"
    with duckdb.connect() as con:
        tweets = table_of(
            con,
            f"SELECT id, strptime(created, '%-m/%-d/%Y %-H:%M') AS created, text FROM '{folder}/data.parquet' WHERE id < 1000 ORDER BY id",
        )
        answers = {
            "the sentiment of the tweet": "sentiment",
            "the airline of the tweet": "airline",
            "the reason of the complaint": "reason",
        }
        made = _of_texts(
            con, "airline_tweets", "tweets", tweets, folder, ("sentiment", "reason", "airline"), answers, work, {}
        )
    comments = {
        "tweets": "tweets to US airlines",
        "tweets.text": "what was written to or about an airline",
        "tweets.created": "when it was posted",
    }
    values = {"positive": (_GOOD,), "negative": (_BAD,), "neutral": (r"\bneutral",)}
    named = (
        Attribute("the reason of the complaint", r"\b(reason|why|complains? about|problem|topic|issue)", REASONS),
        Attribute("the airline of the tweet", r"\b(airline|carrier|company)", AIRLINES),
        Attribute("the sentiment of the tweet", _ASKS_SENTIMENT, values),
    )
    return Place(World("airline_tweets", made.world.tables, made.world.oracle, comments), made.truths, (), named)


INTENTS: Mapping[str, Sequence[str]] = {
    "activate_my_card": (r"\bactivat", r"\bcard"),
    "age_limit": (r"\bage\b",),
    "apple_pay_or_google_pay": (r"\b(apple pay|google pay)",),
    "compromised_card": (r"\bcompromis", r"\bcard"),
    "contactless_not_working": (r"\bcontactless",),
    "lost_or_stolen_card": (r"\b(lost|lose|stolen|missing)\b", r"\bcard"),
    "lost_or_stolen_phone": (r"\b(lost|lose|stolen|missing)\b", r"\bphone"),
    "passcode_forgotten": (r"\b(passcode|password)", r"\bforg"),
    "request_refund": (r"\brefund", r"\b(request|want|ask)"),
    "terminate_account": (r"\b(terminat|clos)", r"\baccount"),
}
_SMALL = {"my", "by", "or", "into", "on", "of", "for", "via", "after", "to", "not", "up", "is", "get", "getting", "a"}


def banking77(shared: Path, work: Path) -> Place:
    """Every tenth message by id."""
    folder = shared / "banking77"
    with duckdb.connect() as con:
        messages = table_of(con, f"SELECT id, text FROM '{folder}/data.parquet' WHERE id % 10 = 0 ORDER BY id")
        answers = {"the intent of the message": "intent"}
        made = _of_texts(con, "banking77", "messages", messages, folder, ("intent",), answers, work, {})
    values = dict.fromkeys(sorted(made.truths["messages"].column("intent").to_pylist()), ())
    patterns = {name: INTENTS.get(name) or _patterns(name) for name in values}
    comments = {"messages": "messages of customers to their bank", "messages.text": "what the customer asked"}
    asks = r"\b(intent|topic|about|categor|purpose|issue|problem|kind)"
    named = (Attribute("the intent of the message", asks, patterns),)
    return Place(World("banking77", made.world.tables, made.world.oracle, comments), made.truths, (), named)


def _patterns(label: str) -> tuple[str, ...]:
    """The beginnings of the words of a label."""
    words = [word for word in re.findall("[a-z]+", label.lower()) if word not in _SMALL]
    return tuple(rf"\b{word[: max(4, len(word) - 2)]}" for word in words)


def _of_texts(
    con: duckdb.DuckDBPyConnection,
    name: str,
    table: str,
    rows: pa.Table,
    folder: Path,
    labels: Sequence[str],
    answers: dict[str, str],
    work: Path,
    others: Mapping[str, pa.Table],
) -> Place:
    """A place of one table with a column `text`, whose labels are in `folder`/labels.parquet by `id`."""
    con.register("given", rows)
    chosen = ", ".join(labels)
    truth = f"SELECT given.*, {chosen} FROM given JOIN '{folder}/labels.parquet' USING (id) ORDER BY id"
    con.sql("SELECT id, text FROM given").write_parquet(str(work / f"{name}.parquet"))
    con.sql(f"SELECT id, {chosen} FROM ({truth})").write_parquet(str(work / f"{name}_labels.parquet"))
    oracle = write_oracle(
        work / f"{name}.toml", work / f"{name}.parquet", work / f"{name}_labels.parquet", "id", answers, 0.0
    )
    tables = {table: rows, **others}
    return Place(World(name, tables, oracle, {}), {**tables, table: table_of(con, truth)})


# ------------------------------------------------------------------------------------------------ the worlds of the suites
def rotowire(shared: Path, work: Path) -> Place:
    """The 100 games of M²EX, and of who took part those of whom the report has figures."""
    folder = shared / "rotowire"
    world = worlds.rotowire(shared, work, few=True)
    figures = {
        "players": ("player", ", ".join(worlds.PLAYER.values())),
        "teams": ("team", ", ".join(worlds.TEAM.values())),
    }
    tables, truths = dict(world.tables), dict(world.tables)
    with duckdb.connect() as con:
        for who, (one, columns) in figures.items():
            con.register(f"given_{who}", world.tables[f"{who}_to_games"])
            rows = f"given_{who} JOIN '{folder}/valid_labels_{one}_game.parquet' USING (name, game_id) ORDER BY game_id, name"
            tables[f"{who}_to_games"] = table_of(con, f"SELECT name, game_id FROM {rows}")
            truths[f"{who}_to_games"] = table_of(con, f"SELECT name, game_id, {columns} FROM {rows}")
    return Place(World("rotowire", tables, world.oracle, world.comments), truths, ABOUT["rotowire"])


def countries_flags(shared: Path, work: Path) -> Place:
    """The 116 countries that have labels; what is unclear in a flag it does not show, and a year that the text lacks is NULL."""
    labels = f"'{shared}/countries_flags/labels.parquet'"
    world = worlds.countries_flags(shared, work)
    shown = ", ".join(f"flag_{what}" for what in worlds.SHOWN)
    tables = {}
    with duckdb.connect() as con:
        for name, table in world.tables.items():
            con.register(name, table)
            tables[name] = table_of(
                con, f"SELECT * FROM {name} WHERE code IN (SELECT code FROM {labels}) ORDER BY code"
            )
        flags = table_of(con, f"SELECT flags.*, {shown} FROM flags JOIN {labels} USING (code) ORDER BY code")
        year = "CASE WHEN year_in_background THEN CAST(independence_year AS INTEGER) END AS independence_year"
        profiles = table_of(con, f"SELECT profiles.*, {year} FROM profiles JOIN {labels} USING (code) ORDER BY code")
    truths = {**tables, "flags": flags, "profiles": profiles}
    return Place(World("countries_flags", tables, world.oracle, world.comments), truths, ABOUT["countries_flags"])


def artwork(shared: Path, work: Path) -> Place:
    """The 101 paintings, with what was recorded of their images."""
    world = worlds.artwork(shared, work)
    labels = f"'{shared}/artwork/recorded_image_attributes.parquet'"
    with duckdb.connect() as con:
        con.register("paintings", world.tables["paintings"])
        paintings = table_of(con, f"SELECT * FROM paintings JOIN {labels} USING (img_path) ORDER BY img_path")
    people = About(("people",), ("{image} depicts a person",))
    return Place(world, {"paintings": paintings}, (*ABOUT["artwork"], people))


PLACES: Mapping[str, Callable[[Path, Path], Place]] = {
    "movie_reviews": movie_reviews,
    "airline_tweets": airline_tweets,
    "banking77": banking77,
    "rotowire": rotowire,
    "countries_flags": countries_flags,
    "artwork": artwork,
}
