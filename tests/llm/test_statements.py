"""A text that is a statement is asked as one, and not for a value that it would be the name of."""

from __future__ import annotations

from pathlib import Path

import pytest

from uql.llm.questions import Choice, Extract, Row
from uql.operators import label as choice
from uql.operators.statement_text import is_statement
from uql.operators.value import question_text

STATEMENTS = """the painting shows a horse
the review is positive
the customer is happy
it mentions a refund
they agree
the customer asked to cancel
the customer wants a refund
the author of the review praises the acting
the text contains a phone number
there is a dog in the picture
{a.text} and {b.text} agree with each other
this complaint was resolved
the agent did not help
nobody was hurt
the review {r.body} is about the film {f.plot}
the image has at least two people in it
the speaker thinks the price is too high
the tweet is a complaint
the tweet complains
this tweet is a complaint
this is spam
it's a complaint
is a complaint
complains about the price
no one was hurt
the customer asks for a refund
the review {r.text} fits the film {f.plot}
the agent booked a flight
the article quotes a politician
mentions a competitor""".splitlines()

VALUES = """the topic
the name of the painter
the reviewer's name
how angry the review is
the reason the customer is angry
the names of those who are ill
the main reasons the customer gives
the number of stars
what the customer wants
the day it was written
the price that is named
whether the customer is happy
the product that was bought
the customer's main needs
the city in which the customer lives
the sentiment
the amount paid
the field goals that {name} made in the game, according to {report}
the topic of the article, as a newspaper calls it
the date of the last order""".splitlines()


@pytest.mark.parametrize("text", STATEMENTS)
def test_a_statement_is_known_by_its_words(text):
    assert is_statement(text)
    assert question_text(Extract(text), Row()).startswith("Does it hold that")


def test_none_of_672_names_of_values_is_taken_for_a_statement():
    names = Path(__file__).with_name("names_of_values.txt").read_text().splitlines()
    assert [name for name in names if is_statement(name)] == []


@pytest.mark.parametrize("text", VALUES)
def test_the_name_of_a_value_is_none(text):
    assert not is_statement(text)


def test_a_statement_is_asked_as_a_statement_and_a_question_as_it_is():
    assert (
        question_text(Extract("the painting shows a horse."), Row()) == "Does it hold that the painting shows a horse?"
    )
    assert question_text(Extract("the topic"), Row()) == "What is the topic?"
    labels = ("yes", "no")
    assert (
        choice.question_text(Choice("the review is fair", labels=labels), Row())
        == "Does it hold that the review is fair?"
    )
    assert choice.question_text(Choice("tone", labels=labels), Row()) == "Which is the tone?"
    assert question_text(Extract("who painted it?"), Row()) == "who painted it?"
    assert (
        is_statement("is it a complaint?")
        and question_text(Extract("is it a complaint?"), Row()) == "is it a complaint?"
    )
