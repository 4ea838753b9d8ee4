"""Which of the groups that the model names first, from some of the rows? Put in the words of a label."""

from __future__ import annotations

from uql.operators.label import LABEL
from uql.operators.record import Operator, Place

GROUP = Operator(
    name="group",
    places=(Place.GROUP_BY,),
    reply=LABEL.reply,
    words=LABEL.words,
    key=LABEL.key,
    question=LABEL.question,
    answer_tokens=LABEL.answer_tokens,
    shown_as="SemGroup",
    noun="group",
    kernel="sem_group",
    names_labels=True,
)
