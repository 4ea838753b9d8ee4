"""Which columns must be read from texts or images before SQL can answer a question. The examples are of no benchmark."""

from __future__ import annotations

from collections.abc import Sequence

from uql.nl.prompts import Wording, rules_text

TASK = "read_columns"
VERSION = "read-columns-1"
REPLY_TOKENS = 120
NOTHING = "nothing"
SYSTEM = """\
A database has plain columns, and columns of type TEXT or IMAGE, which SQL cannot compare: a model reads them, row by row. You say which
columns must be read before a question can be answered in SQL:
ALTER TABLE t ADD COLUMN name BOOLEAN AS read(column, 'a statement that is true or false of the row');
INTEGER or DOUBLE for a number that it tells, VARCHAR for words that it tells. {name} stands for the plain column of that row.
Write nothing where plain columns hold all that the question asks for."""
_LETTERS = "customers(id, name, city), letters(customer_id, sent DATE, letter TEXT)"
_MOTHS = "moths(id, name, habitat, wingspan, found DATE), photos(moth_id, photo IMAGE)"
_RACES = "drivers(name, team, born DATE), starts(name, race_id), stories(race_id, story TEXT)"
EXAMPLES: tuple[tuple[str, str, str], ...] = (
    (
        _LETTERS,
        "How many letters from Leeds are thankful?",
        "ALTER TABLE letters ADD COLUMN thankful BOOLEAN AS read(letter, 'the letter is thankful');",
    ),
    (_LETTERS, "How many customers live in Leeds?", NOTHING),
    (
        _LETTERS,
        "What share of the letters of each city complains about a late delivery?",
        "ALTER TABLE letters ADD COLUMN late BOOLEAN AS read(letter, 'the letter complains about a late delivery');",
    ),
    (
        _LETTERS,
        "Which topic do customers write about most often?",
        "ALTER TABLE letters ADD COLUMN topic VARCHAR AS read(letter, 'the topic of the letter');",
    ),
    (
        _MOTHS,
        "Which moths of the forest have spots on their wings?",
        "ALTER TABLE photos ADD COLUMN spots BOOLEAN AS read(photo, 'spots on the wings');",
    ),
    (_MOTHS, "What is the wingspan of the newest moth (latest date)?", NOTHING),
    (
        _MOTHS,
        "What is the habitat of the moth that shows the most dots?",
        "ALTER TABLE photos ADD COLUMN dots INTEGER AS read(photo, 'the number of dots');",
    ),
    (
        _MOTHS,
        "Plot the number of moths that show an eye and a green wing for each year.",
        "ALTER TABLE photos ADD COLUMN eye BOOLEAN AS read(photo, 'an eye');\n"
        "ALTER TABLE photos ADD COLUMN green_wing BOOLEAN AS read(photo, 'a green wing');",
    ),
    (
        _RACES,
        "What is the highest number of pit stops that a driver of each team made in a race?",
        "ALTER TABLE starts ADD COLUMN pit_stops INTEGER AS read(stories.story, 'the number of pit stops of {name}');",
    ),
    (
        _RACES,
        "How many races did each team win?",
        "ALTER TABLE starts ADD COLUMN won BOOLEAN AS read(stories.story, '{name} won the race');",
    ),
    (
        _RACES,
        "In which year was the track of race 7 built, according to the story?",
        "ALTER TABLE stories ADD COLUMN built INTEGER AS read(story, 'the year in which the track was built');",
    ),
    (_RACES, "Who is the youngest driver (latest date) of each team?", NOTHING),
)


def wording(
    question: str,
    schema: str,
    *,
    grammar: str = "",
    rules: Sequence[str] = (),
    failure: tuple[str, str] | None = None,
) -> Wording:
    """The request for the columns.

    Args:
        schema: of `uql.nl.prompts.statements.create_tables`.
        grammar: that a model in this process holds its reply to.
        rules: of the use case.
        failure: a reply and what is wrong with it: the request is for one that is right.
    """
    user = f"The database of this question:\n{schema}\n\n{rules_text(rules)}Question: {question}"
    if failure is not None:
        user += f"\n\nThis is wrong:\n{failure[0]}\n{failure[1]}\nWrite it again."
    return Wording(
        TASK,
        VERSION,
        f"{SYSTEM}\n\n{_examples()}",
        user,
        max_tokens=REPLY_TOKENS,
        grammar=grammar,
    )


def _examples() -> str:
    """The examples, the tables of several that follow each other once."""
    lines: list[str] = []
    for n, (tables, question, columns) in enumerate(EXAMPLES):
        if n == 0 or EXAMPLES[n - 1][0] != tables:
            lines.append(f"Database: {tables}")
        lines.append(f"Question: {question}\n{columns}\n")
    return "\n".join(lines).strip()
