"""What a query may be: what the words of a question leave open of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from uql.nl.small.meaning.compounds import Compound
from uql.nl.small.meaning.elsewhere import Elsewhere
from uql.nl.small.meaning.implied import Implied
from uql.nl.small.meaning.kinds import Kinds
from uql.nl.small.meaning.naming import PARTS, Named, Place
from uql.nl.small.meaning.opinions import Opinions
from uql.nl.small.meaning.periods import Periods
from uql.nl.small.meaning.reckoned import Against, Reckoned
from uql.nl.small.meaning.required import Required
from uql.nl.small.meaning.rivals import Rival


@dataclass(frozen=True, slots=True)
class Narrow:
    """What a query may be.

    Attributes:
        group: "must", "may", "count" (only to count, and then the first of them or those above a number), or "no".
        keys: of a group at most.
        high, low: the greatest, the least of numbers may be asked for.
        late, early: of dates.
        down, up: rows may be sorted so, where no superlative says it.
        parts: of dates that may be named.
        ask: "must", "number": a number is read; "may".
        plot: a plot ends it.
        best: the greatest or the least are; timed: by date or age.
        read: words of which one stands in what is read; none: nothing has to be read, since names and values say it all.
        values: "named": only values that the question names; "all".
        which: it asks for rows: who, which; who: for somebody.
        row: it asks which row has the greatest or least of what is read.
        numbers: it has some, that a condition may compare with; first: those of them that may say how many rows are wanted.
        average: it compares with the average; than: with another row; never: it asks for rows to which others have nothing.
        share: "must": it asks for a percentage; "may"; "no". several: it counts more than one thing.
        median: it asks for one.
        measured: the columns, as (table, column), of which it names the greatest or the least.
        named: the tables and columns that it names.
        denied: it denies something, so that a condition may be turned round.
        reads: conditions that a model reads, at most.
        noun: what is read is a number, percentage … of something.
        compound: figures of figures.
        behind: the numbers that stand behind a word, by its stem.
        tables: those that its words may mean; others are read only where they link two.
        absent: the nouns that it asks for, and that nothing of the database is about.
        unheard: the proper names in it that stand nowhere.
        vague: `best`, where nothing says by what; measures: what it may be by.
        counted: it asks how many rows of a table there are: a number, not one that stands in a row.
        tallied: it asks of what most texts say something: they are counted by it.
        implied: conditions that its phrases imply.
        amounts: columns that say how many of a thing a row is about: they are added up where it asks how many.
        required: values that it names, which its query has to hold; flags: columns of booleans that it may mean; set_flags: those that
            its query has to hold.
        versus: it asks whether one value has more than another: groups against each other.
        days: the days and years that it names. adding: the averages, sums or both that it asks for.
        denied_flags: columns of booleans that it names by their contrary: of who failed, passed.
        ordered: it says by what rows are sorted, `cheapest first`, and not how many are wanted.
        told: what texts tell is added up, `how many pallets were delivered`. lacking: the tables of which its rows have none.
        summed: it asks for an average or a total, and counts nothing. ends: for the first, the last or a range.
        names: the words of its names, and those of every question.
        elsewhere: what it asks of the rows of other tables.
        rival: the group that it compares others with.
        periods: that it sets beside each other, or of which it asks what changes.
        reckoned: numbers that it makes of two columns; against: columns that it sets against each other.
        opinions: what it asks of many texts together.
        kinds: groups that only the texts tell.
        some: any so many rows are wanted; 0: all, or the first.
    """

    group: str = "may"
    keys: int = 2
    high: bool = True
    low: bool = True
    late: bool = True
    early: bool = True
    down: bool = True
    up: bool = True
    parts: tuple[str, ...] = PARTS
    ask: str = "may"
    plot: bool = False
    best: bool = True
    timed: bool = False
    read: tuple[str, ...] = ()
    values: str = "all"
    which: bool = False
    row: bool = False
    numbers: bool = True
    first: tuple[int, ...] = ()
    average: bool = False
    than: bool = False
    never: bool = False
    share: str = "no"
    several: bool = False
    median: bool = False
    measured: frozenset[Place] = frozenset()
    named: Named = field(default_factory=Named)
    denied: bool = True
    reads: int = 3
    noun: str = ""
    compound: Compound = field(default_factory=Compound)
    behind: Mapping[str, Sequence[str]] = field(default_factory=dict)
    tables: frozenset[str] = frozenset()
    absent: tuple[str, ...] = ()
    who: bool = False
    unheard: tuple[str, ...] = ()
    vague: str = ""
    measures: tuple[str, ...] = ()
    counted: bool = False
    tallied: bool = False
    implied: tuple[Implied, ...] = ()
    amounts: frozenset[Place] = frozenset()
    required: tuple[Required, ...] = ()
    flags: frozenset[Place] = frozenset()
    set_flags: frozenset[Place] = frozenset()
    versus: bool = False
    days: tuple[str, ...] = ()
    adding: tuple[str, ...] = ("avg", "sum")
    denied_flags: frozenset[Place] = frozenset()
    ordered: bool = False
    told: tuple[str, ...] = ()
    lacking: frozenset[str] = frozenset()
    summed: bool = False
    ends: bool = True
    names: frozenset[str] = frozenset()
    elsewhere: tuple[Elsewhere, ...] = ()
    rival: Rival | None = None
    periods: Periods = field(default_factory=Periods)
    reckoned: tuple[Reckoned, ...] = ()
    against: tuple[Against, ...] = ()
    opinions: Opinions = field(default_factory=Opinions)
    kinds: Kinds | None = None
    some: int = 0

    def aggregates(self, *, dated: bool = False, aged: bool = False) -> tuple[str, ...]:
        """min, max or both, of a column of numbers or dates; of an age the oldest is the greatest."""
        high, low = (
            (self.late, self.early)
            if dated
            else (self.early and self.high, self.late and self.low)
            if aged
            else (self.high, self.low)
        )
        return tuple(name for name, may in (("min", low), ("max", high)) if may) or ("min", "max")
