"""The labelled data sets that a real model is asked about: what is asked, which rows, and what others published."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import duckdb

JEV, KEYWORDS = 76.3, 29.3  # of banking77, as the makers of Jev published them
ROWS = 100  # that are drawn of a data set
CHARACTERS = 250  # that the model is shown of a long text


@dataclass(frozen=True, slots=True)
class DataSet:
    """A question about the texts of a data set, whose right answers are a column of its labels.

    Attributes:
        name: of the line in the table.
        data: folder under $UQL_DATA.
        question: the quoted text of the statement.
        label: SQL of the label, over the labels `l`.
        words: label → what the model chooses from; without them every label, with spaces for its underscores.
        where: SQL of the rows that have a label.
        text: SQL of the text that the model is shown, over the data `d`.
        public: what others published on the data set, and who.
    """

    name: str
    data: str
    question: str
    label: str
    words: Mapping[str, str] = field(default_factory=dict)
    where: str = "true"
    text: str = "d.text"
    public: str = ""


POSITIVE = {"positive": "positive", "negative": "negative"}
FIRST = f"d.text[:{CHARACTERS}]"
DATA_SETS = (
    DataSet("banking77", "banking77", "the intent of the customer", "l.intent", public=f"Jev {JEV} %, a keyword rule {KEYWORDS} %"),
    DataSet(
        "rt_polarity", "rt_polarity", "the sentiment of the review", "l.sentiment", POSITIVE,
        public="81.5 % (Kim 2014, trained on 90 % of the rows)",
    ),
    DataSet("movie_reviews", "movie_reviews", "the sentiment of the review", "l.sentiment", POSITIVE),
    DataSet(
        "airline_tweets", "airline_tweets", "the sentiment of the tweet", "l.sentiment", {**POSITIVE, "neutral": "neutral"}
    ),
    DataSet(
        "airline_tweets, reasons", "airline_tweets", "the main reason of the complaint", "l.reason",
        {
            "Customer Service Issue": "customer service issue", "Late Flight": "late flight",
            "Cancelled Flight": "cancelled flight", "Lost Luggage": "lost luggage", "Bad Flight": "bad flight",
            "Flight Booking Problems": "flight booking problems", "Flight Attendant Complaints": "flight attendant complaints",
            "longlines": "long lines", "Damaged Luggage": "damaged luggage",
        },
        where="l.reason <> 'Can''t Tell'",
    ),
    DataSet("abcd", "abcd", "the kind of problem that the customer has", "l.flow_silver"),
    DataSet(
        "imdb", "imdb", "the sentiment of the review", "l.sentiment", POSITIVE, text=FIRST,
        public="88.9 % (Maas et al. 2011, whole texts, trained on half of the rows)",
    ),
    DataSet("bbc_news", "bbc_news", "the topic of the article", "l.topic", text=FIRST),
    DataSet(
        "airdialogue", "airdialogue", "the outcome of the dialogue", "l.status",
        {
            "book": "a flight was booked", "no_flight": "no flight was available", "cancel": "a reservation was cancelled",
            "no_reservation": "no reservation was found",
        },
    ),
    DataSet("sgd", "sgd", "what the customer wants first", "l.first_intent", text=FIRST),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Sample:
    """The rows of a data set that are asked.

    Attributes:
        texts: by the id of the row.
        truth: the words of the label, by the id of the row.
        words: the labels that the model chooses from, in the order of the alphabet.
        commonest: the share of the rows that have the label that most of them have.
    """

    texts: dict[int, str]
    truth: dict[int, str]
    words: tuple[str, ...]
    commonest: float


def sample(data_set: DataSet, folder: Path, seed: int, rows: int = ROWS) -> Sample:
    """Random rows of a data set, the same ones for a seed.

    Args:
        folder: of all data sets.
        rows: how many, at most.
    """
    data, labels = (folder / data_set.data / f"{name}.parquet" for name in ("data", "labels"))
    joined = f"FROM '{data}' d JOIN '{labels}' l USING (id) WHERE {data_set.label} IS NOT NULL AND {data_set.where}"
    with duckdb.connect() as con:
        kinds = [str(label) for (label,) in con.execute(f"SELECT DISTINCT {data_set.label} {joined}").fetchall()]
        lines = con.execute(
            f"SELECT id, {data_set.text}, {data_set.label} {joined} ORDER BY hash(id::VARCHAR || '/{seed}'), id LIMIT {rows}"
        ).fetchall()
    words = {kind: data_set.words.get(kind) or plain(kind) for kind in kinds}
    truth = {row: words[str(label)] for row, _, label in lines}
    answers = list(truth.values())
    commonest = max(map(answers.count, set(answers))) / len(answers)
    return Sample({row: text for row, text, _ in lines}, truth, tuple(sorted(words.values())), commonest)


def plain(label: str) -> str:
    """The words of a label's name.

    >>> plain("lost_or_stolen_card"), plain("FindBus"), plain("Refund_not_showing_up")
    ('lost or stolen card', 'find bus', 'refund not showing up')
    """
    spaced = "".join(f" {c}" if c.isupper() and n and label[n - 1].islower() else c for n, c in enumerate(label))
    return " ".join(spaced.replace("_", " ").replace("/", " or ").split()).lower()
