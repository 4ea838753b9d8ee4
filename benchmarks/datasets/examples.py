"""Small data sets for the notebooks of docs/examples, made from a seed: reviews, news, pictures, reports, with their labels.

The texts are put together from phrases, so the labels are known and nothing has to be fetched; they show how UQL is used, and measure
nothing.
"""

from __future__ import annotations

import datetime as dt
import random
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

BANKING77 = Path(__file__).parent / "banking77"


@dataclass(frozen=True, slots=True)
class Example:
    """A table and the labels behind it.

    Attributes:
        table: its name.
        select: DuckDB SQL of the table, over `data`.
        data: Parquet file of the rows, with the key.
        labels: Parquet file of the labels, by the same key.
        comments: by column, as COMMENT ON COLUMN has them.
        answers: text of a query → SQL over the labels.
    """

    table: str
    select: str
    data: Path
    labels: Path
    comments: Mapping[str, str] = field(default_factory=dict)
    answers: Mapping[str, str] = field(default_factory=dict)


def banking77(folder: Path) -> Example:
    """13,083 questions that customers asked a bank (PolyAI, CC BY 4.0)."""
    answers = {
        "the customer lost their card": "intent = 'lost_or_stolen_card'",
        "the customer wants to close their account": "intent = 'terminate_account'",
        "a transfer has failed": "intent IN ('failed_transfer', 'declined_transfer')",
        "it is about Apple Pay or Google Pay": "intent = 'apple_pay_or_google_pay'",
        "what the question is about": "CASE WHEN intent LIKE '%transfer%' THEN 'transfers' WHEN intent LIKE '%top%up%' THEN 'top-ups' "
        "WHEN intent LIKE '%card%' THEN 'cards' WHEN intent LIKE '%cash%' THEN 'cash' ELSE 'other' END",
        "the customer was charged twice": "intent = 'transaction_charged_twice'",
        "the team that should answer": "CASE WHEN intent LIKE '%card%' THEN 'cards' WHEN intent LIKE '%transfer%' THEN 'payments' "
        "WHEN intent LIKE '%exchange%' OR intent LIKE '%currenc%' THEN 'exchange' ELSE 'accounts' END",
    }
    return Example(
        "questions",
        "SELECT * FROM data ORDER BY id",
        BANKING77 / "data.parquet",
        BANKING77 / "labels.parquet",
        {"text": "a question that a customer asked a bank"},
        answers,
    )


# ------------------------------------------------------------------------------------------------------------ reviews
PRODUCTS = ("kettle", "desk lamp", "backpack", "headset", "blender")
SAID = {  # by subject: what pleased customers say, and what others do
    "price": (
        ("For the money you cannot do better.", "It was on offer and worth every penny.", "A fair price for what it is."),
        ("Far too expensive for what it is.", "I found the same one elsewhere for half.", "Not worth what I paid."),
    ),
    "delivery": (
        ("It came a day early.", "Well packed and on time.", "Ordered on Monday, here on Tuesday."),
        ("It arrived two weeks late.", "The box was open and a part was missing.", "The courier left it in the rain."),
    ),
    "noise": (
        ("You hardly hear it.", "It is quiet enough to use at night."),
        ("It is so loud that the dog leaves the room.", "There is a constant hum.", "It rattles on the highest setting."),
    ),
    "quality": (
        ("It feels solid and has lasted a year.", "The finish is excellent.", "Everything about it feels well made."),
        ("The handle broke in the first week.", "It stopped working after a month.", "A seam came apart on day two.",
         "Cheap plastic that bends when you touch it."),
    ),
    "service": (
        ("Support answered within the hour.", "They replaced it without any questions."),
        ("Support never answered my messages.", "They refused to refund me.", "I was on hold for forty minutes."),
    ),
}  # fmt: skip
OPENINGS = (
    "Bought this {p} in {m}.", "My second {p} from this shop.", "A present for my {w}.", "We use the {p} every day.",
    "I wanted a {p} for the new flat.", "After reading the reviews I chose this {p}.", "My {w} recommended it.",
    "This {p} replaced one that I had for {n} years.",
)  # fmt: skip
ENDINGS = {
    True: ("I would buy it again.", "Recommended.", "Very happy with it.", "Five stars from my {w}.", "No regrets after {n} weeks."),
    False: ("I am sending it back.", "Avoid.", "Very disappointed.", "My {w} uses the old one again.", "I gave up after {n} days."),
}  # fmt: skip
MONTHS = ("January", "March", "April", "June", "August", "October", "December")
WHO = ("mother", "sister", "partner", "neighbour", "son", "colleague")


def _filled(text: str, rng: random.Random, **given: str) -> str:
    return text.format_map({"m": rng.choice(MONTHS), "w": rng.choice(WHO), "n": rng.randint(2, 12), **given})


def reviews(folder: Path) -> Example:
    """3,000 reviews of five products: id, product, stars, text."""
    rng = random.Random(27)
    rows, labels = [], []
    for i in range(3000):
        product = rng.choice(PRODUCTS)
        positive = rng.random() < (0.45 if product == "blender" else 0.72)
        first = rng.choices(list(SAID), (2, 3, 6 if product == "blender" else 1, 3, 1))[0]
        second = rng.choice([subject for subject in SAID if subject != first])
        mixed = rng.random() < 0.25  # the first sentence says the other thing
        parts = [
            rng.choice(OPENINGS),
            rng.choice(SAID[first][positive == mixed]),
            rng.choice(SAID[second][not positive]),
        ]
        text = _filled(" ".join([*parts, rng.choice(ENDINGS[positive])]), rng, p=product)
        stars = (4 if positive else 2) if mixed else rng.choice((4, 5) if positive else (1, 2))
        complaint = first if positive == mixed else "none" if positive else second
        rows.append({"id": i, "product": product, "stars": stars, "text": text})
        labels.append({"id": i, "positive": positive, "complaint": complaint, "returns": "sending it back" in text})
    answers = {
        "the review is positive": "positive",
        "complains about the noise": "complaint = 'noise'",
        "the main complaint": "complaint",
        "the customer sends it back": "returns",
    }
    comments = {"text": "a review that a customer wrote"}
    return Example(
        "reviews", "SELECT * FROM data ORDER BY id", *_written(folder, "reviews", rows, labels), comments, answers
    )


# --------------------------------------------------------------------------------------------------------------- news
PLACES = ("Leeds", "Porto", "Ghent", "Turin", "Malmö", "Cork", "Lyon", "Basel", "Kraków", "Bergen")
NEWS = {  # section: weight, headlines
    "sport": (30, (
        "{a} beat {b} {n}–1 in the cup", "{a} sign striker from {b}", "Late goal sends {a} into the final",
        "Injury keeps captain of {a} out for {n} weeks", "{a} to host the marathon in {m}", "Coach of {a} resigns after {n} defeats")),
    "business": (26, (
        "Shares in {a} retailer fall {n} per cent", "{a} bank cuts {n}00 jobs", "Brewery of {a} buys rival from {b}",
        "Exports from {a} rise for {n} months", "Start-up of {a} raises {n} million", "Hotel prices in {a} up {n} per cent")),
    "politics": (22, (
        "{a} council votes on a new tax", "Mayor of {a} to stand again", "Minister visits {a} after the vote",
        "{a} and {b} sign an agreement on rail", "Opposition in {a} calls for an inquiry", "Budget of {a} passes by {n} votes")),
    "science": (14, (
        "Lab in {a} maps the genome of a moss", "Telescope near {a} sees a comet", "Vaccine trial in {a} enters phase {n}",
        "Fossil found near {a} is {n}0 million years old", "University of {a} opens a quantum laboratory")),
    "weather": (8, (
        "River floods the old town of {a}", "Snow closes the airport of {a} for {n} hours",
        "Heat record in {a}: 4{n} degrees", "Storm leaves {n}000 homes in {a} without power")),
}  # fmt: skip
STRIKES = (
    "Tram drivers in {a} walk out for {n} days", "Nurses of {a} strike over pay", "Teachers in {a} vote for a walkout",
    "Strike at the port of {a} ends after {n} weeks",
)  # fmt: skip
LEADS = (
    "Residents of {a} were told on {d}.", "It is the first time in {n} years.", "Officials confirmed the news on {d}.",
    "Details will follow in {m}.", "Local papers had reported it before.", "More than {n}00 people took part.",
    "Nobody in {b} wanted to comment.",
)  # fmt: skip
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday")


def news(folder: Path) -> Example:
    """4,000 news items of a year: id, day, text."""
    rng = random.Random(28)
    rows: list[dict[str, Any]] = []
    labels: list[dict[str, Any]] = []
    seen = set()
    while len(rows) < 4000:
        day = dt.date(2025, 1, 1) + dt.timedelta(days=rng.randrange(365))
        strike = rng.random() < (0.06 if day.month in (10, 11) else 0.012)
        section = "politics" if strike else rng.choices(list(NEWS), [share for share, _ in NEWS.values()])[0]
        a, b = rng.sample(PLACES, 2)
        text = ". ".join([rng.choice(STRIKES if strike else NEWS[section][1]), *rng.sample(LEADS, 2)]).replace(
            "..", "."
        )
        text = text.format(a=a, b=b, n=rng.randint(2, 9), m=rng.choice(MONTHS), d=rng.choice(DAYS))
        if text in seen:  # one label a text
            continue
        seen.add(text)
        rows.append({"id": len(rows), "day": day, "text": text})
        labels.append({"id": len(labels), "section": section, "strike": strike, "place": a})
    answers = {"it reports a strike": "strike", "the section": "section", "the town where it happens": "place"}
    comments = {"text": "headline and first sentences of a news item"}
    return Example(
        "news", "SELECT * FROM data ORDER BY day, id", *_written(folder, "news", rows, labels), comments, answers
    )


# --------------------------------------------------------------------------------------------------- pictures, reports
def pictures(folder: Path) -> Example:
    """150 drawn scenes of solids, as PNG: id, image."""
    from uql.benchmarks.datasets.clevr import counts, scenes

    rows, labels = [], []
    for i, (image, scene) in enumerate(scenes(150, seed=9, width=160, height=120)):
        looks = [(o["color"], o["shape"]) for o in scene["objects"]]
        rows.append({"id": i, "image": image})
        labels.append(
            {
                "id": i,
                **counts(scene),
                "red_cube": ("red", "cube") in looks,
                "metal": sum(o["material"] == "metal" for o in scene["objects"]),
            }
        )
    answers = {
        "a red cube is in the picture": "red_cube",
        "more balls than cubes": "spheres > cubes",
        "the number of objects": "obj_count",
    }
    return Example(
        "pictures", "SELECT * FROM data ORDER BY id", *_written(folder, "pictures", rows, labels), {}, answers
    )


def reports(folder: Path) -> Example:
    """60 reports of five pages, as PDF files in the folder reports/: doc."""
    from uql.benchmarks.datasets.media import documents

    (folder / "reports").mkdir(exist_ok=True)
    pages = documents(folder / "reports", n=60, seed=5)
    rows = [{"id": i, "text": page["text"].replace(". ", ".\n")} for i, page in enumerate(pages)]
    numbers = [int(re.findall(r"\d+", page["text"])[2]) for page in pages]  # after those of the report and of the page
    labels = [
        {"id": i, "topic": page["topic"], "number": n} for i, (page, n) in enumerate(zip(pages, numbers, strict=True))
    ]
    answers = {
        "the page is about a flood": "topic = 'flood'",
        "the subject of the page": "topic",
        "the number of houses under water": "CASE WHEN topic = 'flood' THEN number END",
    }
    names = ", ".join(f"('reports/{name}')" for name in dict.fromkeys(page["doc"] for page in pages))
    return Example(
        "reports",
        f"SELECT * FROM (VALUES {names}) t(doc)",
        *_written(folder, "reports", rows, labels),
        {"doc": "document"},
        answers,
    )


def _written(folder: Path, name: str, rows: list[dict[str, Any]], labels: list[dict[str, Any]]) -> tuple[Path, Path]:
    """The files of rows and labels, named by the data set, since a folder may hold several."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    found = folder / f"{name}.data.parquet", folder / f"{name}.labels.parquet"
    for path, held in zip(found, (rows, labels), strict=True):
        pq.write_table(pa.Table.from_pylist(held), path)
    return found


EXAMPLES: Mapping[str, Callable[[Path], Example]] = {
    "banking77": banking77, "reviews": reviews, "news": news, "pictures": pictures, "reports": reports,
}  # fmt: skip
