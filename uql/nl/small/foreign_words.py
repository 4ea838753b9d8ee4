"""The words of a question that no plain column is about: they speak for reading a text or an image first."""

from __future__ import annotations

import re

from uql.base.schema import Modality
from uql.nl.schema.discover import words_of
from uql.nl.schema.name_words import Near, spaced
from uql.nl.schema.scope import Scope

NEAR = 0.3  # similarity from which a word is one for a name
# Words of asking, which name no column and no value; stems, as `words_of` makes them.
_ASKING = """
many much most least more less fewer than number count total sum average mean median minimum maximum highest lowest largest
smallest oldest newest youngest earliest latest first last longest shortest best worst top bottom plot chart graph draw bar
line pie scatter histogram percentage percent share proportion ratio difference distribution per each every all any both only
also not no none never without between above below over under before after during since until at list show give find get tell
name names return display sort order ascending descending database table data question which who whom whose what when where
why how there one two three four five six seven eight nine ten have has had been being was were did done make made some same
different distinct unique kind type year month day week century decade date age time according text profile report picture
image photo shown depict contain become can could would should please year's long old new high low exist belong term use
combine include yet live recently zero item fewest greatest nobody somebody anybody everybody them they their tie use used
monday tuesday wednesday thursday friday saturday sunday january february march april june july august september october
november december
"""
# The closed classes of English: prepositions, conjunctions, pronouns, adverbs of degree and place. They name nothing either.
_FUNCTION_WORDS = """
aboard about across against along alongside although amid among amongst another anyone anything anywhere apart around atop
because behind beneath beside besides beyond but concerning considering despite down either enough everyone everything
everywhere except excluding few following hers herself himself inside instead into itself just like minus myself near neither
nor nothing nowhere off onto opposite ours out outside past plus rather regarding respectively round several someone something
somewhere such themselves though through throughout till together toward towards underneath unless unlike unto upon various
versus very via whereas whether while within yours yourself already almost always approximately exactly here nearly now often
quite sometimes still then today tomorrow too twice usually yesterday
"""


def foreign_words(question: str, scope: Scope, near: Near) -> list[str]:
    """The words of a question that are near to no table, plain column, comment or value, in lower case.

    Args:
        near: similarities of a word and names.
    """
    names: set[str] = set()
    heard: set[str] = set()
    for name, source in scope.sources.items():
        fields = [f for f in source.visible_fields if f.modality is Modality.STRUCTURED]
        for text in (name, *(f.name for f in fields)):
            names |= {word.lower() for word in re.findall(r"[A-Za-z]{3,}", spaced(text))}
        heard |= words_of(" ".join([source.description, *(f.description for f in fields)]))
        heard |= words_of(" ".join(value for _, value in source.matches))
        heard |= {stem for f in fields for word in source.words.get(f.name, ()) for stem in words_of(word)}
    heard |= words_of(" ".join(names))

    def is_near(word: str) -> bool:
        return bool(words_of(word) & heard or (names and max(near(word, sorted(names))) >= NEAR))

    return [word for word in _telling(question) if not is_near(word)]


def _telling(question: str) -> list[str]:
    """The words of a question without question words, in lower case."""
    asking = words_of(_ASKING) | {*_ASKING.split()}
    words = dict.fromkeys(word.lower() for word in re.findall(r"[A-Za-z]{3,}", question))
    telling = (word for word in words if word not in asking | {*_FUNCTION_WORDS.split()})
    return [word for word in telling if (stems := words_of(word)) and not stems & asking]
