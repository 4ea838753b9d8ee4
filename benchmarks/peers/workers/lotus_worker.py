"""LOTUS on SemBench's movie and MMQA questions. Runs in LOTUS' own environment; one JSON line in, one out.

The setting `cascade` gives it what its documentation recommends for large tables: a cheaper model asked first, embeddings for joins.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

import lotus
import pandas as pd
from lotus.models import LM, LiteLLMRM
from lotus.types import CascadeArgs
from lotus.vector_store import FaissVS
from sembench_names import FILM, GENRES, PLACES

POSITIVE = "{text}: the review is positive"
RATING = (
    "{text}: how much the reviewer liked the movie, from 1 (not at all) to 5 (very much). Answer with the number only."
)
PAIR = "the reviews {{text:left}} and {{text:right}} express {how}"
DIRECTOR = "the director of the film described in {text}. Answer with the name only."
CAST = "Lizzy Caplan plays in the film {title}, described in {text}"
BATCHED = {"max_batch_size": 64, "temperature": 0.0}
SETTINGS: dict[str, dict[str, Any]] = {"default": {}, "recommended": BATCHED, "cascade": BATCHED}
TARGETS = {"recall_target": 0.9, "precision_target": 0.9}  # of cascades; all else as it comes
SENTIMENT = "{text}: the sentiment of the review, positive or negative. Answer with one word."
MATTER = "{text}: the matter of the question. Answer with its name only."
ABOUT = "the question {text:left} is about {text:right}"
JOINS = {  # the tables, the condition, and what a cascade is told to map the left rows to
    "reviews": ("left_reviews", "right_reviews", PAIR.format(how="the same sentiment"), SENTIMENT),
    "intents": ("questions", "matters", ABOUT, MATTER),
}
JOINS["count"] = JOINS["reviews"]
Rows = list[list[Any]]
Tables = dict[str, pd.DataFrame]
cascade: dict[
    str, CascadeArgs
] = {}  # what sem_filter and sem_join are given besides their text; empty but for one setting


def of(reviews: pd.DataFrame, movie: str) -> pd.DataFrame:
    return reviews[reviews.movie == movie].reset_index(drop=True)


def positive(reviews: pd.DataFrame) -> pd.DataFrame:
    found: pd.DataFrame = reviews.sem_filter(POSITIVE, **cascade)
    return found


def first_positive(reviews: pd.DataFrame) -> Rows:
    """LOTUS has no LIMIT that stops a filter: all rows are asked, the first five that pass are kept."""
    return [[i] for i in positive(reviews).id.head(5)]


def share(reviews: pd.DataFrame) -> Rows:
    film = of(reviews, "taken_3")
    return [[len(positive(film)) / len(film)]]


def pairs(reviews: pd.DataFrame, how: str, limit: int | None) -> Rows:
    film = of(reviews, FILM)[["id", "movie", "text"]]
    joined = film.sem_join(film, PAIR.format(how=how), **cascade)
    joined = joined[joined["id:left"] != joined["id:right"]]
    if limit is not None:
        joined = joined.head(limit)
    return [[FILM, a, b] for a, b in zip(joined["id:left"], joined["id:right"], strict=True)]


def kinds(reviews: pd.DataFrame) -> Rows:
    said = of(reviews, "taken_3").sem_map(SENTIMENT)._map
    counts = said.str.strip().str.lower().value_counts()
    return [[kind, int(n)] for kind, n in counts.items()]


def scores(reviews: pd.DataFrame) -> pd.DataFrame:
    said = reviews.sem_map(RATING)
    return said.assign(score=pd.to_numeric(said._map, errors="coerce"))


def rated(reviews: pd.DataFrame) -> Rows:
    found = scores(of(reviews, FILM))
    return [[i, s] for i, s in zip(found.id, found.score, strict=True)]


def ranked(reviews: pd.DataFrame) -> Rows:
    means = scores(reviews).groupby("movie").score.mean()
    return [[movie, score] for movie, score in means.items()]


def joined(tables: Tables, name: str) -> Rows:
    """The pairs of a join, or how many there are."""
    left, right, condition, _ = JOINS[name]
    found = tables[left].sem_join(tables[right], condition, **cascade)
    return (
        [[len(found)]]
        if name == "count"
        else [[a, b] for a, b in zip(found["id:left"], found["id:right"], strict=True)]
    )


def director(tables: Tables) -> Rows:
    (film,) = tables["ben_piazza"].query("Role == 'Bob Whitewood'").Title
    texts = tables["ben_piazza_texts"]
    said = texts[texts.title == film].reset_index(drop=True).sem_map(DIRECTOR)._map
    return [[name.strip()] for name in said]


def of_genre(tables: Tables, genre: str) -> Rows:
    cast = tables["lizzy_caplan_texts"].sem_filter(CAST, **cascade).reset_index(drop=True)
    found = cast.sem_filter(f"the film described in {{text}} is {genre}", **cascade) if len(cast) else cast
    return [[title] for title in found.title.unique()]


def flying_to(tables: Tables, place: str) -> Rows:
    table = tables["tampa_international_airport"]
    known = table[table.Airport.isna() & table.Destinations.notna()].reset_index(drop=True)
    found = known.sem_filter(f"one of these places is in {place}: {{Destinations}}", **cascade)
    return [[airline] for airline in found.Airlines.unique()]


MOVIE: dict[str, Callable[[pd.DataFrame], Rows]] = {
    "q1": first_positive,
    "q2": lambda reviews: first_positive(of(reviews, "taken_3")),
    "q3": lambda reviews: [[len(positive(of(reviews, "taken_3")))]],
    "q4": share,
    "q5": lambda reviews: pairs(reviews, "the same sentiment", 10),
    "q6": lambda reviews: pairs(reviews, "opposite sentiments", 10),
    "q7": lambda reviews: pairs(reviews, "opposite sentiments", None),
    "q8": kinds,
    "q9": rated,
    "q10": ranked,
}


def answer(tables: Tables, query: str) -> Rows:
    scenario, _, name = query.partition("_")
    if scenario == "joins":
        return joined(tables, name)
    if scenario == "movie":
        return MOVIE[name](tables["reviews"])
    if name == "q1":
        return director(tables)
    return of_genre(tables, GENRES[name]) if name in GENRES else flying_to(tables, PLACES[name])


def configure(task: dict[str, Any]) -> None:
    """The models of a task; with the setting `cascade` also a cheaper one and embeddings."""
    more = SETTINGS[task["setting"]]
    lotus.settings.configure(lm=LM(model="openai/oracle", api_base=task["url"], api_key="none", **more))
    cascade.clear()
    if task["setting"] == "cascade":
        os.environ["OPENAI_API_BASE"] = os.environ["OPENAI_BASE_URL"] = task[
            "url"
        ]  # where its embeddings are asked for
        helper = LM(model="openai/oracle", api_base=task["helper"], api_key="none", **more)
        lotus.settings.configure(helper_lm=helper, rm=LiteLLMRM(model="openai/oracle"), vs=FaissVS())
        join = {"map_instruction": instruction} if (instruction := mapping(task["query"])) else {}
        cascade["cascade_args"] = CascadeArgs(**TARGETS, **join, cascade_IS_random_seed=task["seed"])


def mapping(query: str) -> str:
    """What the left rows of a join are mapped to; empty for what is none."""
    scenario, _, name = query.partition("_")
    if scenario == "joins":
        return JOINS[name][3]
    return SENTIMENT if query in ("movie_q5", "movie_q6", "movie_q7") else ""


def main() -> None:
    start = json.loads(sys.stdin.readline())
    tables = {name: pd.read_json(path, lines=True) for name, path in start["tables"].items()}
    for line in sys.stdin:
        task = json.loads(line)
        configure(task)
        began = time.perf_counter()
        with contextlib.redirect_stdout(sys.stderr), tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            rows = answer(tables, task["query"])  # its indexes lie in the current folder
        seconds = time.perf_counter() - began
        print(json.dumps({"rows": rows, "seconds": seconds}, default=int), flush=True)


if __name__ == "__main__":
    main()
