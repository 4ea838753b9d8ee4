"""One query in lines: the words that ask for it, and examples over made-up databases. None is of a benchmark."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from uql.nl.prompts import Wording, rules_text

VERSION = "queries-4"
SYSTEM = (
    "You write one query in lines: FROM, WHERE, GROUP BY, SELECT, ORDER BY, LIMIT. GROUP BY is for each, per and by. "
    "ORDER BY with LIMIT 1 is for the most, the first, the largest. "
    "A plain column beside max or min is that of the row which has it. year(d) and century(d) are of a date. "
    "ask('…') has a model read the text or look at the image of a row: in WHERE a condition, in SELECT its words; "
    "ask_number('…') is a number. Use ask only for what no column holds."
)


@dataclass(frozen=True, slots=True)
class Example:
    """A question, the tables it is asked of, and its query; some stand in every prompt, where a model evaluates them once."""

    tables: str
    question: str
    query: str
    always: bool = False


_BOOKS = "books(title VARCHAR, author VARCHAR, printed DATE, pages BIGINT, language VARCHAR, in_stock BOOLEAN)"
_STAFF = "staff(name VARCHAR, dept_id BIGINT, salary DOUBLE, hired DATE); depts(id BIGINT, title VARCHAR)"
_RACES = "drivers(name VARCHAR, born DATE, team VARCHAR); starts(name VARCHAR, race_id BIGINT); stories(race_id BIGINT, story TEXT)"
_MOTHS = "moths(id BIGINT, name VARCHAR, habitat VARCHAR, wingspan DOUBLE); photos(moth_id BIGINT, photo IMAGE)"
_SHOP = "customers(id BIGINT, name VARCHAR, city VARCHAR); letters(customer_id BIGINT, letter TEXT)"
_STAFF_JOIN = "staff JOIN depts ON staff.dept_id = depts.id"
_RACES_JOIN = "starts JOIN stories ON starts.race_id = stories.race_id"
_DRIVERS_JOIN = "drivers JOIN starts ON starts.name = drivers.name JOIN stories ON starts.race_id = stories.race_id"
_MOTHS_JOIN = "moths JOIN photos ON photos.moth_id = moths.id"
_SHOP_JOIN = "customers JOIN letters ON letters.customer_id = customers.id"

EXAMPLES: tuple[Example, ...] = (
    Example(
        _BOOKS,
        "How many books came out after 1990?",
        "FROM books\nWHERE year(printed) > 1990\nSELECT count(*)",
        always=True,
    ),
    Example(
        _BOOKS,
        "Which book of Ada Holm has the most pages?",
        "FROM books\nWHERE author = 'Ada Holm'\nSELECT title\nORDER BY pages DESC\nLIMIT 1",
        always=True,
    ),
    Example(
        _BOOKS,
        "What is the language of the oldest (earliest date) book?",
        "FROM books\nSELECT language\nORDER BY printed ASC\nLIMIT 1",
    ),
    Example(
        _BOOKS, "Which Welsh books are in stock?", "FROM books\nWHERE language = 'Welsh' AND in_stock\nSELECT title"
    ),
    Example(
        _BOOKS,
        "Who wrote the newest (latest date) book in each language?",
        "FROM books\nGROUP BY language\nSELECT author, max(printed)",
        always=True,
    ),
    Example(
        _BOOKS,
        "Get the century of the oldest (earliest date) book per author.",
        "FROM books\nGROUP BY author\nSELECT century(printed), min(printed)",
    ),
    Example(_BOOKS, "Count the books of each decade.", "FROM books\nGROUP BY decade(printed)\nSELECT count(*)"),
    Example(
        _BOOKS,
        "Show a bar chart of the number of books of each author, sorted by the number in descending order.",
        "FROM books\nGROUP BY author\nSELECT count(*)\nORDER BY count(*) DESC\nPLOT bar",
        always=True,
    ),
    Example(
        _BOOKS,
        "Plot the pages of the oldest (earliest date) book per language.",
        "FROM books\nGROUP BY language\nSELECT pages, min(printed)\nPLOT bar",
    ),
    Example(
        _BOOKS,
        "Which books are in Welsh or in Irish?",
        "FROM books\nWHERE language IN ('Welsh', 'Irish')\nSELECT title",
    ),
    Example(
        _BOOKS, "Which books have more pages than the average?", "FROM books\nWHERE pages > avg(pages)\nSELECT title"
    ),
    Example(
        _BOOKS,
        "Which books have more pages than Grey Water?",
        "FROM books\nWHERE pages > that of title = 'Grey Water'\nSELECT title",
    ),
    Example(_BOOKS, "What percentage of the books is in stock?", "FROM books\nSELECT percent(in_stock)"),
    Example(
        _BOOKS,
        "How many books are in Welsh and how many in Irish?",
        "FROM books\nSELECT count(language = 'Welsh'), count(language = 'Irish')",
    ),
    Example(
        _BOOKS,
        "How many books were printed in March 1998?",
        "FROM books\nWHERE year(printed) = 1998 AND month(printed) = 3\nSELECT count(*)",
    ),
    Example(
        _STAFF,
        "Who are the two best paid people of each department by salary?",
        f"FROM {_STAFF_JOIN}\nGROUP BY title\nSELECT name, salary\nORDER BY salary DESC\nLIMIT 2",
    ),
    Example(_STAFF, "Which departments have no staff?", "FROM depts\nWHERE without staff\nSELECT title"),
    Example(
        _STAFF,
        "What is the total salary of the people in the department Sales?",
        f"FROM {_STAFF_JOIN}\nWHERE title = 'Sales'\nSELECT sum(salary)",
        always=True,
    ),
    Example(
        _STAFF,
        "Which departments have more than 5 people?",
        f"FROM {_STAFF_JOIN}\nGROUP BY title\nSELECT count(*)\nHAVING count(*) > 5",
    ),
    Example(
        _STAFF,
        "Draw the average salary against the department as a line, the titles from a to z.",
        f"FROM {_STAFF_JOIN}\nGROUP BY title\nSELECT avg(salary)\nORDER BY title ASC\nPLOT line",
    ),
    Example(
        _STAFF, "Scatter plot of the salary and the date of hiring.", "FROM staff\nSELECT salary, hired\nPLOT point"
    ),
    Example(
        _STAFF,
        "How many more people work in Sales than in Legal?",
        f"FROM {_STAFF_JOIN}\nSELECT difference(count(title = 'Sales'), count(title = 'Legal'))",
    ),
    Example(
        _STAFF,
        "What is the difference between the highest and the lowest salary?",
        "FROM staff\nSELECT difference(max(salary), min(salary))",
    ),
    Example(
        _BOOKS,
        "How many times as many pages do the Welsh books have as the Irish ones?",
        "FROM books\nSELECT times(sum(pages, language = 'Welsh'), sum(pages, language = 'Irish'))",
    ),
    Example(
        _STAFF,
        "What is the average number of people per department?",
        f"FROM {_STAFF_JOIN}\nGROUP BY title\nSELECT avg(count(*))",
    ),
    Example(
        _STAFF,
        "What is the highest total salary of any department?",
        f"FROM {_STAFF_JOIN}\nGROUP BY title\nSELECT max(sum(salary))",
    ),
    Example(
        _BOOKS,
        "What share of the books does each language have?",
        "FROM books\nGROUP BY language\nSELECT share(count(*))",
    ),
    Example(
        _STAFF,
        "What percentage of all salaries is paid in Sales?",
        f"FROM {_STAFF_JOIN}\nSELECT percent(sum(salary), title = 'Sales')",
    ),
    Example(
        _STAFF,
        "Who earns more than the average salary of their department?",
        f"FROM {_STAFF_JOIN}\nWHERE salary > avg(salary) of title\nSELECT name",
    ),
    Example(
        _RACES,
        "Who is the youngest (latest date) driver of the team Falcon?",
        "FROM drivers\nWHERE team = 'Falcon'\nSELECT name\nORDER BY born DESC\nLIMIT 1",
    ),
    Example(
        _RACES,
        "Who had the highest number of pit stops in a race?",
        f"FROM {_RACES_JOIN}\nSELECT name, ask_number('the number of pit stops of {{name}}') AS answer\nORDER BY answer DESC\nLIMIT 1",
        always=True,
    ),
    Example(
        _RACES,
        "For each driver, what is the lowest number of laps they led in a race?",
        f"FROM {_RACES_JOIN}\nGROUP BY name\nSELECT min(ask_number('the number of laps {{name}} led'))",
    ),
    Example(
        _RACES,
        "Plot the highest number of pit stops made by drivers from each team.",
        f"FROM {_DRIVERS_JOIN}\nGROUP BY team\nSELECT max(ask_number('the number of pit stops of {{drivers.name}}'))\nPLOT bar",
        always=True,
    ),
    Example(
        _RACES,
        "How many races did each team win?",
        f"FROM {_DRIVERS_JOIN}\nWHERE ask('{{drivers.name}} win')\nGROUP BY team\nSELECT count(*)",
    ),
    Example(
        _RACES,
        "In which year was the winner of race 7 born, as the story tells?",
        "FROM stories\nWHERE race_id = 7\nSELECT ask_number('the year the winner was born') AS answer",
    ),
    Example(
        _MOTHS,
        "Which moths of the forest have spots on their wings in the photo?",
        f"FROM {_MOTHS_JOIN}\nWHERE habitat = 'forest' AND ask('have spots on their wings')\nSELECT name",
        always=True,
    ),
    Example(
        _MOTHS,
        "What share of the moths of the forest show an eye?",
        f"FROM {_MOTHS_JOIN}\nWHERE habitat = 'forest'\nSELECT percent(ask('show an eye'))",
    ),
    Example(
        _MOTHS,
        "Of the moths that show a striped body, which one has the largest wingspan?",
        f"FROM {_MOTHS_JOIN}\nWHERE ask('show a striped body')\nSELECT name\nORDER BY wingspan DESC\nLIMIT 1",
    ),
    Example(
        _MOTHS,
        "What is the habitat of the moth that shows the highest number of dots?",
        f"FROM {_MOTHS_JOIN}\nSELECT habitat, ask_number('the number of dots') AS answer\nORDER BY answer DESC\nLIMIT 1",
    ),
    Example(
        _MOTHS,
        "Plot the number of moths that show an eye for each habitat.",
        f"FROM {_MOTHS_JOIN}\nWHERE ask('show an eye')\nGROUP BY habitat\nSELECT count(*)\nPLOT bar",
    ),
    Example(
        _MOTHS,
        "Get the lowest number of dots shown by moths of each habitat.",
        f"FROM {_MOTHS_JOIN}\nGROUP BY habitat\nSELECT min(ask_number('the number of dots'))",
    ),
    Example(
        _SHOP,
        "How many letters from Leeds are thankful?",
        f"FROM {_SHOP_JOIN}\nWHERE city = 'Leeds' AND ask('the letter is thankful')\nSELECT count(*)",
    ),
    Example(
        _SHOP,
        "Which city writes the angriest letters?",
        f"FROM {_SHOP_JOIN}\nGROUP BY city\nSELECT percent(ask('the letter is angry'))\nORDER BY percent DESC\nLIMIT 1",
    ),
    Example(
        _SHOP,
        "What do the customers of Leeds complain about?",
        f"FROM {_SHOP_JOIN}\nWHERE city = 'Leeds'\nSELECT summary('What do the customers of Leeds complain about?')",
    ),
    Example(
        _SHOP,
        "According to their letters, which customers moved in 1987?",
        f"FROM {_SHOP_JOIN}\nWHERE ask('{{name}} moved in 1987')\nSELECT name",
    ),
)


def wording(
    question: str,
    schema: str,
    examples: Sequence[Example],
    grammar: str,
    rules: Sequence[str] = (),
    *,
    faults: str = "",
    max_tokens: int = 220,
) -> Wording:
    """The request for one query; the reply is held by the grammar."""
    always = [e for e in EXAMPLES if e.always]
    more = f"{faults}\n\n" if faults else ""
    return Wording(
        "planner",
        VERSION,
        f"{SYSTEM}\n\n{_shown(always)}",
        f"The database of this question:\n{schema}\n\n{rules_text(rules)}More examples over other databases:\n\n{_shown(examples)}\n\n"
        f"{more}Now over the database of this question.\nQuestion: {question}",
        None,
        max_tokens,
        grammar,
    )


def _shown(examples: Sequence[Example]) -> str:
    """Examples as a prompt has them, the tables of several that follow each other once."""
    lines: list[str] = []
    for n, example in enumerate(examples):
        if n == 0 or examples[n - 1].tables != example.tables:
            lines.append(f"Database: {example.tables}")
        lines.append(f"Question: {example.question}\n{example.query}\n")
    return "\n".join(lines).strip()


def repaired(query: str, problems: str) -> str:
    """What goes back with a query that is not right."""
    return f"Your last query:\n{query}\nWhat is wrong with it:\n{problems}\nWrite it again, right."


_EARLY = re.compile(r"\b(oldest|earliest|eldest)\b", re.IGNORECASE)
_LATE = re.compile(r"\b(youngest|newest|latest|most recent)\b", re.IGNORECASE)


def hinted(question: str, *, aged: bool) -> str:
    """The question with what oldest and youngest mean: the least and greatest date, or age where the tables have one.

    >>> hinted("Who is the oldest?", aged=False)
    'Who is the oldest (earliest date)?'
    """
    early, late = ("highest age", "lowest age") if aged else ("earliest date", "latest date")
    return _LATE.sub(rf"\1 ({late})", _EARLY.sub(rf"\1 ({early})", question))
