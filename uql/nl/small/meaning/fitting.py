"""Which tables a query may read: the joins that hold most of what the question names, and no table that nothing in it means."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from uql.base.schema import Field, Modality
from uql.nl.schema.join_paths import MOST_PATHS, NUMBERS, Path, is_dated, is_key_name, is_plain, joined, joins, path_of
from uql.nl.schema.scope import Link, Scope
from uql.nl.small.meaning.elsewhere import may_ask
from uql.nl.small.meaning.naming import covered, people
from uql.nl.small.meaning.narrow import Narrow
from uql.nl.small.meaning.reckoned import with_reckoned

Join = tuple[tuple[str, ...], tuple[Link, ...]]


def fitting(scope: Scope, narrow: Narrow) -> list[Path]:
    """The joins of a question with their columns; the fewest tables first, at most 24."""
    plain = _with(scope, lambda f: f.modality is Modality.STRUCTURED)
    read = _with(scope, lambda f: f.is_unstructured) if narrow.ask != "may" else frozenset()
    found = [join for join in joins(scope) if not plain.isdisjoint(join[0])]
    if narrow.ask != "may":
        found = [join for join in found if not read.isdisjoint(join[0])]
    found = [join for join in found if narrow.lacking.isdisjoint(join[0])] or found
    found = [join for join in found if may_ask(join[0], narrow.elsewhere, scope)] or found
    wanted = _wanted(scope, narrow)
    if narrow.tables:
        meant = {*narrow.tables, *read, *(table for tables in wanted for table in tables)}
        found = [join for join in found if not _superfluous(join[0], meant, scope)] or found
    kept = _most(found, wanted)
    if narrow.ask != "may":  # a table that is named may be what the texts speak of
        beside = {
            t
            for link in scope.links
            for t in (link.left.table, link.right.table)
            if {link.left.table, link.right.table} & read
        }
        sure = (*narrow.named.held, *(tables for tables in narrow.named.needed if tables <= read | beside))
        enough = _most(found, sure)
        fewest = min((len(tables) for tables, _ in enough), default=0)
        more = [join for join in enough if len(join[0]) == fewest]
        kept = [join for join in found if join in kept or join in more]
    made = (with_reckoned(path_of(scope, *join), narrow.reckoned) for join in kept[:MOST_PATHS])
    return [path for path in made if any(map(is_plain, path.columns))]


def _wanted(scope: Scope, narrow: Narrow) -> list[frozenset[str]]:
    """Sets of tables, of each of which a query should read one."""
    wanted = list(narrow.named.needed)
    if narrow.measured and narrow.best:
        wanted.append(frozenset(table for table, _ in narrow.measured))
    wanted += [frozenset(table for table, _ in each.places) for each in narrow.required]
    if narrow.rival is not None:
        wanted += [frozenset((narrow.rival.place[0],)), frozenset(table for table, _ in narrow.rival.by)]
    for each in (narrow.reckoned, narrow.against):
        wanted += [frozenset((table,)) for table in {made.left[0] for made in each} | {made.right[0] for made in each}]
    for places in (narrow.set_flags, narrow.amounts, people(scope) if narrow.who else frozenset()):
        if places:
            wanted.append(frozenset(table for table, _ in places))
    numbers = _with(scope, lambda f: f.type.startswith(NUMBERS) and not is_key_name(f.name))
    if (
        narrow.adding
        and not narrow.reckoned
        and not any(table in numbers for table, _ in narrow.compound.named)
        and not narrow.timed
    ):
        wanted.append(numbers)  # how much do we owe
    if narrow.parts:
        alone = {name: path_of(scope, (name,), ()).columns for name in scope.sources}
        wanted.append(frozenset(name for name, columns in alone.items() if any(map(is_dated, columns))))
    return [tables for tables in wanted if tables]


def _most(found: Sequence[Join], wanted: Sequence[frozenset[str]]) -> list[Join]:
    """Those that meet most of the sets."""
    most = max((covered(tables, wanted) for tables, _ in found), default=0)
    return [join for join in found if covered(join[0], wanted) == most]


def _with(scope: Scope, is_such: Callable[[Field], bool]) -> frozenset[str]:
    """The tables with such a column."""
    return frozenset(name for name, source in scope.sources.items() if any(map(is_such, source.shown)))


def _superfluous(tables: Sequence[str], meant: Collection[str], scope: Scope) -> bool:
    """Does a join hold a table that nothing in the question means, and that links none of the others?"""
    others = {table: [t for t in tables if t != table] for table in tables if table not in meant}
    return any(not rest or joined(rest, scope.links) is not None for rest in others.values())
