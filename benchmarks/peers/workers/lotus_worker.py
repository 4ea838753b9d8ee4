"""LOTUS on the movie questions. Runs in LOTUS' own environment; one JSON line in, one out."""

from __future__ import annotations

import contextlib
import json
import sys
import time
from collections.abc import Callable
from typing import Any

import lotus
import pandas as pd
from lotus.models import LM

FILM = "ant_man_and_the_wasp_quantumania"
POSITIVE = "{text}: the review is positive"
RATING = (
    "{text}: how much the reviewer liked the movie, from 1 (not at all) to 5 (very much). Answer with the number only."
)
PAIR = "the reviews {{text:left}} and {{text:right}} express {how}"
SETTINGS = {"default": {}, "recommended": {"max_batch_size": 64, "temperature": 0.0}}
Rows = list[list[Any]]


def of(reviews: pd.DataFrame, movie: str) -> pd.DataFrame:
    return reviews[reviews.movie == movie].reset_index(drop=True)


def first_positive(reviews: pd.DataFrame) -> Rows:
    """LOTUS has no LIMIT that stops a filter: all rows are asked, the first five that pass are kept."""
    return [[i] for i in reviews.sem_filter(POSITIVE).id.head(5)]


def share(reviews: pd.DataFrame) -> Rows:
    film = of(reviews, "taken_3")
    return [[len(film.sem_filter(POSITIVE)) / len(film)]]


def pairs(reviews: pd.DataFrame, how: str, limit: int | None) -> Rows:
    film = of(reviews, FILM)[["id", "movie", "text"]]
    joined = film.sem_join(film, PAIR.format(how=how))
    joined = joined[joined["id:left"] != joined["id:right"]]
    if limit is not None:
        joined = joined.head(limit)
    return [[FILM, a, b] for a, b in zip(joined["id:left"], joined["id:right"], strict=True)]


def kinds(reviews: pd.DataFrame) -> Rows:
    film = of(reviews, "taken_3")
    said = film.sem_map("{text}: the sentiment of the review, positive or negative. Answer with one word.")._map
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


QUERIES: dict[str, Callable[[pd.DataFrame], Rows]] = {
    "q1": first_positive,
    "q2": lambda reviews: first_positive(of(reviews, "taken_3")),
    "q3": lambda reviews: [[len(of(reviews, "taken_3").sem_filter(POSITIVE))]],
    "q4": share,
    "q5": lambda reviews: pairs(reviews, "the same sentiment", 10),
    "q6": lambda reviews: pairs(reviews, "opposite sentiments", 10),
    "q7": lambda reviews: pairs(reviews, "opposite sentiments", None),
    "q8": kinds,
    "q9": rated,
    "q10": ranked,
}


def main() -> None:
    start = json.loads(sys.stdin.readline())
    reviews = pd.read_json(start["reviews"], lines=True)
    for line in sys.stdin:
        task = json.loads(line)
        model = LM(model="openai/oracle", api_base=start["url"], api_key="none", **SETTINGS[task["setting"]])
        lotus.settings.configure(lm=model)
        began = time.perf_counter()
        with contextlib.redirect_stdout(sys.stderr):
            rows = QUERIES[task["query"]](reviews)
        seconds = time.perf_counter() - began
        print(json.dumps({"rows": rows, "seconds": seconds}, default=int), flush=True)


if __name__ == "__main__":
    main()
