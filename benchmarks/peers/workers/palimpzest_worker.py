"""Palimpzest on SemBench's movie and MMQA questions. Runs in Palimpzest's own environment; one JSON line in, one out.

Its list of models is fixed, so the oracle stands in for one of them: OPENAI_API_BASE leads there.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time
from collections.abc import Callable
from typing import Any

import palimpzest as pz
import pandas as pd
from sembench_names import FILM, GENRES, PLACES

POSITIVE = "the review is positive"
RATING = "how much the reviewer liked the movie, from 1 (not at all) to 5 (very much)"
PAIR = "the reviews {{left}} and {{right}} express {how}"
DIRECTOR = "the director of the film described in text"
CAST = "Lizzy Caplan plays in the film title, described in text"
MODEL = pz.Model.GPT_4o_MINI
SETTINGS: dict[str, dict[str, Any]] = {
    "default": {"policy": pz.MaxQuality()},
    "recommended": {
        "policy": pz.MaxQuality(),
        "execution_strategy": "parallel",
        "max_workers": 64,
        "allow_critic": False,
        "allow_mixtures": False,
    },
    "mincost": {"policy": pz.MinCost()},
}
Rows = list[list[Any]]


class Questions:
    """The questions over the tables, with one configuration."""

    def __init__(self, tables: dict[str, pd.DataFrame], setting: str) -> None:
        self.tables, self.reviews = tables, tables["reviews"]
        self.config = pz.QueryProcessorConfig(
            available_models=[MODEL], progress=False, verbose=False, **SETTINGS[setting]
        )

    def of(self, movie: str | None) -> pd.DataFrame:
        held = self.reviews if movie is None else self.reviews[self.reviews.movie == movie]
        return held.reset_index(drop=True)

    def run(self, plan: pz.Dataset) -> pd.DataFrame:
        found: pd.DataFrame = plan.run(self.config).to_df()
        return found

    def positive(self, movie: str | None, limit: int | None = None) -> pd.DataFrame:
        plan = pz.MemoryDataset(id="reviews", vals=self.of(movie)).sem_filter(POSITIVE, depends_on=["text"])
        return self.run(plan if limit is None else plan.limit(limit))

    def first(self, movie: str | None) -> Rows:
        return [[int(i)] for i in self.positive(movie, 5).id]

    def pairs(self, how: str, limit: int | None) -> Rows:
        film = self.of(FILM)[["id", "text"]]
        right = film.rename(columns={"id": "other", "text": "other_text"})
        plan = pz.MemoryDataset(id="left", vals=film).sem_join(
            pz.MemoryDataset(id="right", vals=right), PAIR.format(how=how), depends_on=["text", "other_text"]
        )
        joined = self.run(plan if limit is None else plan.limit(limit))
        return [[FILM, int(a), int(b)] for a, b in zip(joined.id, joined.other, strict=True) if a != b]

    def mapped(self, movie: str | None, name: str, kind: type, what: str) -> pd.DataFrame:
        column = {"name": name, "type": kind, "desc": what}
        plan = pz.MemoryDataset(id="reviews", vals=self.of(movie)).sem_add_columns([column], depends_on=["text"])
        return self.run(plan)

    def kinds(self) -> Rows:
        said = self.mapped("taken_3", "kind", str, "the sentiment of the review, positive or negative").kind
        return [[str(kind).strip().lower(), int(n)] for kind, n in said.value_counts().items()]

    def scores(self, movie: str | None) -> pd.DataFrame:
        found = self.mapped(movie, "score", float, RATING)
        return found.assign(score=pd.to_numeric(found.score, errors="coerce"))

    def director(self) -> Rows:
        (film,) = self.tables["ben_piazza"].query("Role == 'Bob Whitewood'").Title
        texts = self.tables["ben_piazza_texts"]
        held = texts[texts.title == film][["title", "text"]].reset_index(drop=True)
        column = {"name": "director", "type": str, "desc": DIRECTOR}
        plan = pz.MemoryDataset(id="texts", vals=held).sem_add_columns([column], depends_on=["text"])
        return [[str(name)] for name in self.run(plan).director]

    def of_genre(self, genre: str) -> Rows:
        held = self.tables["lizzy_caplan_texts"][["title", "text"]]
        cast = pz.MemoryDataset(id="films", vals=held).sem_filter(CAST, depends_on=["title", "text"])
        found = self.run(cast.sem_filter(f"the film described in text is {genre}", depends_on=["text"]))
        return [[title] for title in found.title.unique()] if len(found) else []

    def flying_to(self, place: str) -> Rows:
        table = self.tables["tampa_international_airport"]
        known = table[table.Airport.isna() & table.Destinations.notna()][["Airlines", "Destinations"]].reset_index(
            drop=True
        )
        plan = pz.MemoryDataset(id="airlines", vals=known)
        found = self.run(plan.sem_filter(f"one of these places is in {place}", depends_on=["Destinations"]))
        return [[airline] for airline in found.Airlines.unique()] if len(found) else []

    def answer(self, query: str) -> Rows:
        scenario, _, name = query.partition("_")
        if scenario == "movie":
            return self.movie(name)
        if name == "q1":
            return self.director()
        return self.of_genre(GENRES[name]) if name in GENRES else self.flying_to(PLACES[name])

    def movie(self, query: str) -> Rows:
        film = len(self.of("taken_3"))
        asked: dict[str, Callable[[], Rows]] = {
            "q1": lambda: self.first(None),
            "q2": lambda: self.first("taken_3"),
            "q3": lambda: [[len(self.positive("taken_3"))]],
            "q4": lambda: [[len(self.positive("taken_3")) / film]],
            "q5": lambda: self.pairs("the same sentiment", 10),
            "q6": lambda: self.pairs("opposite sentiments", 10),
            "q7": lambda: self.pairs("opposite sentiments", None),
            "q8": self.kinds,
            "q9": lambda: [[int(i), s] for i, s in zip(*self._columns(FILM), strict=True)],
            "q10": lambda: [[m, float(s)] for m, s in self.scores(None).groupby("movie").score.mean().items()],
        }
        return asked[query]()

    def _columns(self, movie: str) -> tuple[list[Any], list[Any]]:
        found = self.scores(movie)
        return list(found.id), [float(score) for score in found.score]


def main() -> None:
    start = json.loads(sys.stdin.readline())
    tables = {name: pd.read_json(path, lines=True) for name, path in start["tables"].items()}
    for line in sys.stdin:
        task = json.loads(line)
        os.environ["OPENAI_API_BASE"] = os.environ["OPENAI_BASE_URL"] = task["url"]
        began = time.perf_counter()
        with contextlib.redirect_stdout(sys.stderr):
            rows = Questions(tables, task["setting"]).answer(task["query"])
        print(json.dumps({"rows": rows, "seconds": time.perf_counter() - began}), flush=True)


if __name__ == "__main__":
    main()
