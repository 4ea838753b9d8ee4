"""One query with typed slots: the form, and examples over made-up databases. None is of a benchmark."""

from __future__ import annotations

from collections.abc import Sequence

from uql.nl.prompts import Wording, rules_text

TASK = "slots"
VERSION = "slots-1"
REPLY_TOKENS = 160
FORM = """\
A database holds plain columns, and columns of type TEXT or IMAGE, whose content a model must read. You write which TEXT or IMAGE column a
question needs, what is asked of it, and what is made of the answers:
READ table.column yes_no: a statement that is true or false of one row, or number: a number that it tells, or text: words that it tells
WHERE conditions on plain columns and on answer
GROUP BY for each, per and by
SELECT what is asked for
ORDER BY, LIMIT for the most and the least
ALSO table.column yes_no: adds a second statement that must be true. {table.column} stands for the name in that row. Write READ nothing
where plain columns hold all that the question asks for."""
_LETTERS = "customers(id, name, city), letters(customer_id, sent DATE, letter TEXT)"
_MOTHS = "moths(id, name, habitat, wingspan, found DATE), photos(moth_id, photo IMAGE)"
_RACES = "drivers(name, team, born DATE), starts(name, race_id), stories(race_id, story TEXT)"
EXAMPLES: tuple[tuple[str, str, str], ...] = (
    (
        _LETTERS,
        "How many letters from Leeds are thankful?",
        "READ letters.letter yes_no: the letter is thankful\nWHERE answer AND customers.city = 'Leeds'\nSELECT count(*)",
    ),
    (_LETTERS, "How many customers live in Leeds?", "READ nothing"),
    (
        _LETTERS,
        "What share of the letters of each city complain about a late delivery?",
        "READ letters.letter yes_no: the letter complains about a late delivery\nGROUP BY customers.city\nSELECT percent(answer)",
    ),
    (
        _LETTERS,
        "Which topic do customers write about most often?",
        "READ letters.letter text: the topic of the letter\nGROUP BY answer\nSELECT count(*)\nORDER BY count(*) DESC\nLIMIT 1",
    ),
    (
        _MOTHS,
        "Which moths of the forest have spots on their wings?",
        "READ photos.photo yes_no: spots on the wings\nWHERE answer AND moths.habitat = 'forest'\nSELECT moths.name",
    ),
    (
        _MOTHS,
        "Of the moths that show a striped body, which one has the largest wingspan?",
        "READ photos.photo yes_no: a striped body\nWHERE answer\nSELECT moths.name\nORDER BY moths.wingspan DESC\nLIMIT 1",
    ),
    (_MOTHS, "What is the wingspan of the newest moth (latest date)?", "READ nothing"),
    (
        _MOTHS,
        "What is the habitat of the moth that shows the highest number of dots?",
        "READ photos.photo number: the number of dots\nSELECT moths.habitat, answer\nORDER BY answer DESC\nLIMIT 1",
    ),
    (
        _MOTHS,
        "Plot the number of moths that show an eye and a green wing for each year.",
        "READ photos.photo yes_no: an eye\nALSO photos.photo yes_no: a green wing\nWHERE answer\n"
        "GROUP BY year(moths.found)\nSELECT count(*)",
    ),
    (
        _RACES,
        "Plot the highest number of pit stops made by drivers from each team.",
        "READ stories.story number: the number of pit stops of {drivers.name}\nGROUP BY drivers.team\nSELECT max(answer)",
    ),
    (
        _RACES,
        "Who had the lowest number of pit stops in a race?",
        "READ stories.story number: the number of pit stops of {drivers.name}\nSELECT drivers.name, answer\nORDER BY answer ASC\nLIMIT 1",
    ),
    (
        _RACES,
        "How many races did each team win?",
        "READ stories.story yes_no: {drivers.team} won the race\nWHERE answer\nGROUP BY drivers.team\nSELECT count(*)",
    ),
    (
        _RACES,
        "According to the story, in which year was the track of race 7 built?",
        "READ stories.story number: the year in which the track was built\nWHERE stories.race_id = 7\nSELECT answer",
    ),
    (_RACES, "Who is the youngest driver (latest date) of each team?", "READ nothing"),
)


def wording(
    question: str,
    schema: str,
    grammar: str,
    *,
    rules: Sequence[str] = (),
    why: str = "",
    temperature: float = 0.0,
    seed: int = 0,
    failure: tuple[str, str] | None = None,
) -> Wording:
    """The request for one candidate.

    Args:
        schema: of `uql.nl.prompts.statements.create_tables`.
        grammar: that a model in this process holds its reply to.
        why: what went wrong before; "" at first.
        temperature, seed: of the model's sampling; 0: the most probable query.
        failure: a query and what is wrong with it: the request is for one that is right.
    """
    user = f"The database of this question:\n{schema}\n\n{rules_text(rules)}Question: {question}"
    user += f"\n\n{why}" if why else ""
    if failure is not None:
        query, error = failure
        user += f"\n\nThis query is wrong:\n{query}\n{error}\nWrite it again."
    return Wording(
        TASK,
        VERSION,
        f"{FORM}\n\n{_examples()}",
        user,
        max_tokens=REPLY_TOKENS,
        grammar=grammar,
        temperature=temperature,
        seed=seed,
    )


def _examples() -> str:
    """The examples, the tables of several that follow each other once."""
    lines: list[str] = []
    for n, (tables, question, query) in enumerate(EXAMPLES):
        if n == 0 or EXAMPLES[n - 1][0] != tables:
            lines.append(f"Database: {tables}")
        lines.append(f"Question: {question}\n{query}\n")
    return "\n".join(lines).strip()
