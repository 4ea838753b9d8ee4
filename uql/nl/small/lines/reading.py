"""A query in lines, as `uql.nl.small.lines.grammar` has it, read into the nodes of a plan.

What the lines leave to convention: a plain column beside max or min is that of the row which has it; LIMIT 1 keeps all rows that share the
first place; rows whose group or figure is not known are left out of groups; PLOT draws the first column against the last.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from uql.base.errors import QuestionError
from uql.llm.questions import NONE
from uql.nl.schema.join_paths import RESERVED, Column, is_called, is_dated, named
from uql.nl.schema.scope import Scope
from uql.nl.small.lines.grammar import AGGREGATES
from uql.nl.small.lines.parts import READ, Lines, cleared, pruned, read, split, whole_names
from uql.nl.small.lines.sharing import naming_rows
from uql.nl.small.meaning import compounds, elsewhere
from uql.nl.small.meaning.naming import PARTS
from uql.nl.small.meaning.opinions import SUMMARY
from uql.nl.small.meaning.periods import CHANGE, RUNNING
from uql.nl.small.meaning.reckoned import sql_of

_NOUN = re.compile(r"ask\('the (\w+)")
_CALL = re.compile(r"([a-z_]+)\((.*)\)\Z", re.DOTALL)
_NAME = r'(?:"[^"]*"|\w+)(?:\.(?:"[^"]*"|\w+))*'
_MADE = rf"(?:100 \* )?{_NAME}(?: [-+*/] {_NAME})?"
_COMPARED = re.compile(rf"(.*?\)|{_MADE}) (=|<>|<=|>=|<|>|LIKE|NOT IN|IN) (.*)\Z", re.DOTALL)
_OWN = re.compile(rf"({_NAME}) ([<>]) avg\(({_NAME})\) of ({_NAME})")
_THAT_OF = re.compile(rf"that of ({_NAME}) = ('[^']*')\Z")
_OF_DAYS = {
    "quarter": "quarter({})",
    "weekday": "dayname({})",
    "weekend": "CASE WHEN isodow({}) > 5 THEN 'weekend' ELSE 'weekday' END",
    "week": "CAST(date_trunc('week', {}) AS DATE)",
    "day": "CAST({} AS DATE)",
    "hour": "hour({})",
}
_EACH = re.compile(r"\b(?:per|each|every)\b")
_RIVAL = re.compile(rf"(\w+\(.*\)) ([<>]) that of ({_NAME}) = ('[^']*')", re.DOTALL)
_WHO = re.compile(r"\b(who|which|what (is|are) the \w+est)\b")
_SAYS_NAME = re.compile(r"\b(?:first|last|family|given|fore|sur)[ _-]?names?\b")


def nodes_of(text: str, scope: Scope, title: str = "", taken: Collection[str] = ()) -> dict[str, Any]:
    """The plan of a query in lines, as a reply of a planner: {"cannot", "nodes"}.

    Args:
        title: the question: that of a plot, and it says whether a row is asked for.
        taken: names that no node may have.
    Raises: QuestionError (UQL631) on other text.
    """
    lines = read(text, scope)
    lines.who = _WHO.search(title.lower()) is not None
    lines.of_each = _EACH.search(title.lower()) is not None
    lines.unsigned = compounds.wants_distance(title)
    pruned(lines, scope)
    cleared(lines, title)
    if not _SAYS_NAME.search(title.lower()):
        lines.group, lines.items = (whole_names(part, lines.path) for part in (lines.group, lines.items))
    shown = [*lines.group, *lines.items]
    lines.items, lines.where, (lines.order, lines.having) = (
        naming_rows(part, shown, lines.path, scope) for part in (lines.items, lines.where, (lines.order, lines.having))
    )
    made = _Reading(lines, scope).nodes()
    made[:0] = lines.before
    if lines.mark:
        columns = [name for name in made[-1].pop("columns") if name != lines.sorted_by]
        made.append(_plot(lines.mark, columns, made[-1]["name"], title))
    for node in made:
        node.pop("columns", None)
    return {"cannot": "", "nodes": _renamed(made, taken)}


def _renamed(nodes: Sequence[dict[str, Any]], taken: Collection[str]) -> list[dict[str, Any]]:
    """The nodes with other names where theirs are taken, in the statements of those behind them too."""
    low = {name.lower() for name in taken}
    names: dict[str, str] = {}
    made = []
    for node in nodes:
        node = {key: names.get(value, value) if key == "input" else value for key, value in node.items()}
        for key in ("uql", "body"):
            for old, new in names.items():
                if isinstance(node.get(key), str):
                    node[key] = re.sub(rf"(?<![\w.]){re.escape(old)}(?=[\s.);]|\Z)", new, node[key])
        n, name = 2, node["name"]
        while name.lower() in low:
            name, n = f"{node['name']}_{n}", n + 1
        low.add(name.lower())
        if name != node["name"]:
            names[node["name"]] = name
        made.append({**node, "name": name})
    return made


@dataclass(slots=True)
class _Reading:
    """The statements of one query."""

    lines: Lines
    scope: Scope
    names: list[str] = field(default_factory=list)

    def nodes(self) -> list[dict[str, Any]]:
        lines = self.lines
        lines.where = [self._own_group(part) for part in lines.where]
        call = next((found for item in lines.items if (found := _CALL.match(item))), None)
        if call is not None and call[1] in compounds.COMPARING:
            return self._of_two(call[1], call[2])
        if call is not None and call[1] in (CHANGE, RUNNING):
            return self._of_periods(call[1], call[2])
        if call is not None and call[1] == compounds.SHARE:
            return self._shares(call[2])
        if call is not None and lines.group and _agg(call[2]) and len(split(call[2], ", ")) == 1:
            return self._over_groups(call[1], call[2])
        if lines.group or any(_agg(item) for item in lines.items):
            return self._grouped()
        return self._rows()

    # -------------------------------------------------------------------------------------------------------- rows
    def _rows(self) -> list[dict[str, Any]]:
        lines = self.lines
        pairs = [(item, self._name(item)) for item in dict.fromkeys(lines.items)]
        items = [f"{self._value(item)} AS {name}" for item, name in pairs]
        asks = [part for part in lines.where if part.startswith(("ask(", "ask_number("))]
        reads = any("ask(" in item or "ask_number(" in item for item, _ in pairs)
        distinct = lines.distinct or (len(lines.path.tables) > 1 and not reads)
        head = "SELECT DISTINCT" if distinct else "SELECT"
        if lines.order and lines.limit == 1 and set(lines.items) <= {lines.order}:  # which row it is, else nothing says
            called = self._called(lines.order)
            if called and called not in dict(pairs):
                pairs.append((called, self._name(called)))
                items.append(f"{called} AS {pairs[-1][1]}")
        if lines.order and lines.limit == 1 and not (asks and not reads):
            shown = dict(pairs)
            if lines.order not in shown and not (lines.order == READ and READ in self.names):
                shown[lines.order] = self._name(lines.order)
                items.append(f"{self._value(lines.order)} AS {shown[lines.order]}")
            key = READ if lines.order == READ else shown[lines.order]
            first = _node("uql", "step1", f"SELECT {', '.join(items)} {self._from()}", list(shown.values()))
            return [first, self._first("step1", list(shown.values()), key, [])]
        tail = ""
        if lines.order:
            tail = f" ORDER BY {self._sorted(pairs)}{' DESC' if lines.down else ''}"
            if distinct and self._sorted(pairs) not in self.names:
                head = "SELECT"
        if lines.limit:
            tail += f" LIMIT {lines.limit}"
        return [_node("uql", "step1", f"{head} {', '.join(items)} {self._from()}{tail}", [n for _, n in pairs])]

    # ------------------------------------------------------------------------------------------------------- groups
    def _grouped(self) -> list[dict[str, Any]]:
        lines = self.lines
        figures = [item for item in dict.fromkeys(lines.items) if _agg(item)]
        if figures and all(_agg(item) == SUMMARY for item in figures):
            figures.insert(0, "count(*)")  # of how many texts it is said
        lines.order = figures[0] if lines.order == "percent" else lines.order
        bare = [item for item in dict.fromkeys(lines.items) if not _agg(item) and item not in lines.group]
        keys = list(dict.fromkeys(lines.group))
        if (
            lines.who
            and not bare
            and len(figures) == 1
            and _agg(figures[0]) in ("min", "max")
            and "(ask" not in figures[0]
        ):
            called = self._called(_inside(figures[0]))
            bare = [called] if called and called not in keys else []
        if bare and len(figures) == 1 and _agg(figures[0]) in ("min", "max"):
            lines.down = _agg(figures[0]) == "max"
            return self._of_the_best(keys, bare, _inside(figures[0]))
        if keys and not figures and lines.order and lines.limit and not _agg(lines.order):
            return self._of_the_best(keys, bare, lines.order, lines.limit)
        keys += bare
        if lines.order and not _agg(lines.order) and lines.order not in keys:
            lines.order = keys[0] if keys else ""  # groups are sorted by what they have
        pairs = [(item, self._name(item)) for item in [*keys, *figures]]
        if lines.order and lines.order not in dict(pairs):
            pairs.append((lines.order, self._name(lines.order)))
        shown = dict(pairs)
        known = self._known(keys)
        kinds = {
            item: name for item, name in pairs if item in keys and item.startswith("ask(")
        }  # said once, behind GROUP BY
        items = ", ".join(kinds.get(item) or f"{self._value(item)} AS {name}" for item, name in pairs)
        named_keys = (f"{self._value(key)} AS {kinds[key]}" if key in kinds else self._value(key) for key in keys)
        by = f" GROUP BY {', '.join(named_keys)}" if keys else ""
        rival = _RIVAL.fullmatch(lines.having)
        having = f" HAVING {self._condition(lines.having)}" if lines.having and rival is None else ""
        text = f"SELECT {items} {self._from(known)}{by}{having}"
        columns = [name for _, name in pairs]
        if rival is not None:
            return [_node("uql", "step1", text, columns), self._against(rival, shown, columns)]
        open_ = [name for item, name in pairs if _agg(item) in ("min", "max", "avg", "sum")]
        if lines.order and lines.limit == 1 and not (lines.of_each and len(keys) == 2):
            return [
                _node("uql", "step1", text, columns),
                self._first("step1", columns, shown[lines.order], [], named_kinds=tuple(kinds.values())),
            ]
        if lines.of_each and lines.order and lines.limit and len(keys) == 2 and figures:  # the top three of each kind
            first = _node("uql", "step1", text, columns)
            return [first, self._first("step1", columns, shown[lines.order], [shown[keys[0]]], lines.limit)]
        tail = ""
        if lines.order:
            tail = f" ORDER BY {shown[lines.order]}{' DESC' if lines.down else ''}"
        if lines.limit:
            tail += f" LIMIT {lines.limit}"
        if keys and open_:  # a group in which the figure is not known has none
            kept = " AND ".join(f"{name} IS NOT NULL" for name in open_)
            second = f"SELECT {', '.join(columns)} FROM step1 WHERE {kept}{tail}"
            return [_node("uql", "step1", text, columns), _node("sql", "step2", second, columns)]
        return [_node("uql", "step1", text + tail, columns)]

    def _against(self, rival: re.Match[str], shown: Mapping[str, str], columns: Sequence[str]) -> dict[str, Any]:
        """The groups whose figure is above, or below, that of one of them; of a group without rows a count is none."""
        figure, sign, key, value = rival.groups()
        if figure not in shown or key not in shown:
            raise QuestionError(
                f"HAVING compares {figure} of {key}, which SELECT and GROUP BY do not have", code="UQL631"
            )
        than = f"(SELECT max({shown[figure]}) FROM step1 WHERE {shown[key]} = {value})"
        than = f"coalesce({than}, 0)" if _agg(figure) in ("count", "sum") else than
        text = f"SELECT {', '.join(columns)} FROM step1 WHERE {shown[figure]} {sign} {than}"
        return _node("sql", "step2", text, columns)

    def _of_the_best(
        self, keys: Sequence[str], bare: Sequence[str], inner: str, places: int = 1
    ) -> list[dict[str, Any]]:
        """The rows that have the greatest or least value, or are in the first places by it, of each group."""
        pairs = [(item, self._name(item)) for item in [*keys, *bare]]
        key = next((name for item, name in pairs if item == inner), "")
        if not key:
            key = self._name(inner)
            pairs.append((inner, key))
            last = self._column(bare[-1]) if bare else None
            self.lines.sorted_by = key if last is not None and last.is_number else ""
        items = ", ".join(f"{self._value(item)} AS {name}" for item, name in pairs)
        known = self._known(keys)
        columns = [name for _, name in pairs]
        groups = [name for item, name in pairs if item in keys]
        first = _node("uql", "step1", f"SELECT {items} {self._from(known)}", columns)
        return [first, self._first("step1", columns, key, groups, places)]

    def _first(
        self,
        table: str,
        columns: Sequence[str],
        key: str,
        groups: Sequence[str],
        places: int = 1,
        *,
        named_kinds: Sequence[str] = (),
    ) -> dict[str, Any]:
        """The rows in the first place, or places, of each group where there are groups.

        Args:
            named_kinds: columns of groups that a model found: the rows that are in none of them have no place.
        """
        parts = f"PARTITION BY {', '.join(groups)} " if groups else ""
        way = "DESC" if self.lines.down else "ASC"
        known = [f"{key} IS NOT NULL", *(f"{name} <> '{NONE}'" for name in named_kinds)]
        text = (
            f"SELECT DISTINCT {', '.join(columns)} FROM (SELECT {', '.join(columns)}, rank() OVER ({parts}ORDER BY {key} {way}) AS place "
            f"FROM {table} WHERE {' AND '.join(known)}) AS ranked WHERE place {'= 1' if places == 1 else f'<= {places}'}"
        )
        if places > 1:
            text += f" ORDER BY {', '.join([*groups, f'{key} {way}'])}"
        return _node("sql", "step2", text, columns)

    # ------------------------------------------------------------------------------------------------ figures of figures
    def _figures_of(self, figures: Sequence[str]) -> tuple[dict[str, Any], list[str], list[str]]:
        """A first step with some figures of each group, the names of the groups' keys, and those of the figures."""
        keys = [(key, self._name(key)) for key in dict.fromkeys(self.lines.group)]
        named_ = [(figure, self._name(figure)) for figure in figures]
        items = ", ".join(f"{self._value(item)} AS {name}" for item, name in [*keys, *named_])
        by = f" GROUP BY {', '.join(self._value(key) for key, _ in keys)}" if keys else ""
        names = [name for _, name in keys], [name for _, name in named_]
        text = f"SELECT {items} {self._from(self._known([key for key, _ in keys]))}{by}"
        return _node("uql", "step1", text, [*names[0], *names[1]]), *names

    def _of_two(self, kind: str, inner: str) -> list[dict[str, Any]]:
        """Two figures, and their difference or how many times the second the first is."""
        parts = split(inner, ", ")
        if len(parts) != 2:
            raise QuestionError(f"{kind}() is of two figures, not {len(parts)}", code="UQL631")
        first, keys, (a, b) = self._figures_of(parts)
        made = compounds.of_two(kind, a, b, unsigned=self.lines.unsigned)
        columns = [*keys, a, b, kind]
        text = f"SELECT {', '.join([*keys, a, b])}, {made} AS {kind} FROM step1"
        return [first, _node("sql", "step2", text, columns)]

    def _shares(self, figure: str) -> list[dict[str, Any]]:
        """A figure of each group, and what it has of them all in percent."""
        first, keys, (name,) = self._figures_of([figure])
        columns = [*keys, name, "percent"]
        text = (
            f"SELECT {', '.join([*keys, name])}, 100.0 * {name} / nullif(sum({name}) OVER (), 0) AS percent FROM step1"
        )
        way = "DESC" if self.lines.down or not self.lines.order else "ASC"
        text = f"SELECT {', '.join(columns)} FROM ({text}) AS shares ORDER BY percent {way}"
        text += f" LIMIT {self.lines.limit}" if self.lines.limit else ""
        return [first, _node("sql", "step2", text, columns)]

    def _of_periods(self, kind: str, figure: str) -> list[dict[str, Any]]:
        """A figure of each period with its change from the one before, or the total up to it; months of several years stand apart."""
        lines = self.lines
        for part in lines.group:
            call = _CALL.match(part)
            if (
                call is not None
                and call[1] in ("month", "quarter")
                and not any(f"year({call[2]})" in c for c in lines.where)
            ):
                lines.group = [f"year({call[2]})", *lines.group]
        first, keys, (name,) = self._figures_of([figure])
        parts = [key for key, part in zip(keys, dict.fromkeys(lines.group), strict=True) if not self._is_period(part)]
        times = ", ".join(key for key in keys if key not in parts)
        apart = f"PARTITION BY {', '.join(parts)} " if parts else ""
        over = f"OVER ({apart}ORDER BY {times})"
        columns = [*keys, name, *((kind, "percent") if kind == CHANGE else (kind,))]
        if kind == CHANGE:
            before = f"lag({name}) {over}"
            made = f"{name} - {before} AS change, 100.0 * ({name} - {before}) / nullif({before}, 0) AS percent"
        else:
            made = f"sum({name}) {over} AS running"
        text = f"SELECT {', '.join([*keys, name])}, {made} FROM step1 ORDER BY {', '.join(keys)}"
        return [first, _node("sql", "step2", text, columns)]

    def _is_period(self, key: str) -> bool:
        call = _CALL.match(key)
        column = self._column(key)
        return (call is not None and call[1] in PARTS) or (column is not None and is_dated(column))

    def _over_groups(self, outer: str, inner: str) -> list[dict[str, Any]]:
        """An aggregate of the figures that the groups have."""
        first, _, (name,) = self._figures_of([inner])
        over = f"{outer}_{name}"
        return [
            first,
            _node("sql", "step2", f"SELECT {outer}({name}) AS {over}, count(*) AS groups FROM step1", [over, "groups"]),
        ]

    def _own_group(self, text: str) -> str:
        """A comparison with the average of the row's own group, which a step before makes; any other condition as it is."""
        found = _OWN.fullmatch(text)
        if found is None:
            return text
        number, way, of, key = found.groups()
        table = f"averages{len(self.lines.before) + 1}"
        columns = [self._column(name) for name in (of, key)]
        alone = len({c.table for c in columns if c is not None}) == 1 and None not in columns
        group, value = (self._bare(key), self._bare(of)) if alone else (key, of)
        source = self._table(key) if alone else self.lines.path.source
        body = f"SELECT {group} AS own_group, avg({value}) AS own_average FROM {source} WHERE {group} IS NOT NULL GROUP BY {group}"
        self.lines.before.append(_node("uql", table, body, ["own_group", "own_average"]))
        path = self.lines.path
        joined = f"{path.source} JOIN {table} ON {self._full(key)} = {table}.own_group"
        self.lines.path = replace(path, source=joined)
        return f"{number} {way} {table}.own_average"

    def _full(self, name: str) -> str:
        """A column with its table."""
        column = self._column(name)
        return name if column is None else named(column.table, column.field.name)

    # ---------------------------------------------------------------------------------------------------- expressions
    def _from(self, more: Sequence[str] = ()) -> str:
        conditions = [*map(self._condition, self.lines.where), *more]
        where = f" WHERE {' AND '.join(dict.fromkeys(conditions))}" if conditions else ""
        return f"FROM {self.lines.path.source}{where}"

    def _known(self, keys: Sequence[str]) -> list[str]:
        """That the groups have a name; those that a model finds have one."""
        plain = [key for key in keys if not key.startswith("ask(")]
        return [f"{call[2] if (call := _CALL.match(key)) else key} IS NOT NULL" for key in plain]

    def _sorted(self, pairs: Sequence[tuple[str, str]]) -> str:
        shown = dict(pairs)
        return shown.get(self.lines.order, READ if self.lines.order == READ else self._value(self.lines.order))

    def _condition(self, text: str) -> str:
        if text.startswith("ask("):
            return _prompt(text)
        if text.startswith("NOT "):
            return f"NOT {self._value(text[4:])}"
        if text.startswith("list_contains("):
            return text
        if (rows := elsewhere.sql_of(text, self.lines.path, self.scope)) is not None:
            return rows
        if text.startswith("without "):
            return self._without(text[8:])
        if text.endswith(" NULL"):
            return text
        found = _COMPARED.match(text)
        if found is None:
            return self._value(text)
        left, op, right = found.groups()
        if op == "LIKE":
            return f"{self._value(left)} ILIKE {right}"
        column = self._column(left)
        if re.fullmatch(r"'\d{4}'", right) and (column is None or not column.is_text):
            return f"year({self._value(left)}) {op} {right[1:5]}"
        if right.startswith("avg(") and sql_of(left) is not None:
            right = f"(SELECT avg({self._value(left)}) FROM {self.lines.path.source})"
        elif right.startswith("avg("):
            right = f"(SELECT avg({self._bare(left)}) FROM {self._table(left)})"
        elif (row := _THAT_OF.match(right)) is not None:
            top = "max" if op == ">" else "min"
            right = f"(SELECT {top}({self._bare(left)}) FROM {self._table(left)} WHERE {self._bare(row[1])} = {row[2]})"
        return f"{self._value(left)} {op} {right}"

    def _without(self, table: str) -> str:
        """That another table has no row for this one."""
        found = [other for other in self.lines.path.others if other[0] == table]
        if not found:
            raise QuestionError(f"no table {table} is linked to {', '.join(self.lines.path.tables)}", code="UQL631")
        _, theirs, mine = found[0]
        return f"{mine} NOT IN (SELECT {theirs} FROM {named(table)} WHERE {theirs} IS NOT NULL)"

    def _bare(self, name: str) -> str:
        """A column without its table, for a query over that alone."""
        column = self._column(name)
        return named(column.field.name) if column is not None else name

    def _table(self, name: str) -> str:
        column = self._column(name)
        return named(column.table if column is not None else self.lines.path.tables[0])

    def _value(self, text: str) -> str:
        """An item, key or figure as UQL has it."""
        bare = text.removesuffix(f" AS {READ}")
        if (made := sql_of(bare)) is not None:
            return made
        call = _CALL.match(bare)
        if call is None:
            return bare
        name, inner = call.groups()
        if name == "ask":
            return _prompt(bare)
        if name == "ask_number":
            return f"CAST({_prompt(bare)} AS DOUBLE)"
        if name == SUMMARY:
            return _prompt(bare)
        if name in PARTS:
            return self._part(name, inner)
        if inner == "*":
            return "count(*)"
        if inner.startswith("DISTINCT "):
            return f"count(DISTINCT {self._value(inner[9:])})"
        parts = split(inner, ", ")
        if len(parts) == 2 and name == "percent":
            whole = self._value(parts[0])
            return f"100.0 * {whole} FILTER (WHERE {self._condition(parts[1])}) / {whole}"
        if len(parts) == 2:
            return f"{name}({self._value(parts[0])}) FILTER (WHERE {self._condition(parts[1])})"
        if name == "percent":
            return f"100 * avg(CASE WHEN {self._condition(inner)} THEN 1.0 ELSE 0.0 END)"
        if name == "count":
            return f"count(*) FILTER (WHERE {self._condition(inner)})"
        return f"{name}({self._value(inner)})"

    def _part(self, part: str, name: str) -> str:
        """The year, month, decade or century of a date, or of a text that begins as one."""
        column = self._column(name)
        timed = column is None or column.field.type != "VARCHAR"
        if part in _OF_DAYS:
            return _OF_DAYS[part].format(name if timed else f"TRY_CAST({name} AS DATE)")
        if part == "month":
            return f"month({name})" if timed else f"CAST(regexp_extract({name}, '-([0-9]+)', 1) AS INTEGER)"
        if column is not None and column.is_number:
            year = name
        else:
            year = f"year({name})" if timed else f"CAST(regexp_extract({name}, '^-?[0-9]+') AS INTEGER)"
        match part:
            case "century":
                return f"CAST(floor(({year} - 1) / 100) AS INTEGER) + 1"
            case "decade":
                return f"CAST(floor({year} / 10) AS INTEGER) * 10"
        return year

    def _called(self, key: str) -> str:
        """The column that says what a row is called: of the table of the key, else of the first; "" where none does."""
        of = self._column(key)
        tables = [of.table] if of is not None else list(self.lines.path.tables)
        named = [c for c in self.lines.path.columns if c.is_text and not c.field.is_unstructured and is_called(c.name)]
        return next((c.name for table in tables for c in named if c.table == table), "")

    def _column(self, name: str) -> Column | None:
        return next((c for c in self.lines.path.columns if c.name == name), None)

    def _name(self, item: str) -> str:
        """A name for an item that no other has."""
        bare = item.removesuffix(f" AS {READ}")
        call = _CALL.match(bare)
        if call is None:
            name = re.sub(r"\w+\.", "", bare).strip('"')
        elif call[1] in ("ask", "ask_number"):
            noun = _NOUN.match(bare) if item in self.lines.group else None
            name = noun[1] if noun is not None else READ
        elif call[1] in (*PARTS, SUMMARY):
            name = call[1]
        elif call[1] in ("count", "percent") or len(split(call[2], ", ")) == 2:
            held = re.sub(r"\W+", "_", " ".join(re.findall(r"'([^']*)'", call[2]))).strip("_")[
                :24
            ]  # the condition's own word
            kind = {"count": "n", "percent": "percent"}.get(call[1]) or f"{call[1]}_{split(call[2], ', ')[0]}"
            name = kind + (f"_{held}" if held else "")
        else:
            inner = re.sub(r"\W+", "_", call[2].rpartition(".")[2]).strip("_")
            name = f"{call[1]}_{READ if 'ask' in call[2] else inner}"
        name = re.sub(r"\W+", "_", name).strip("_").lower() or "value"
        name = f"{name}_value" if name in _KEYWORDS else f"value_{name}" if name[0].isdigit() else name
        taken, n = name, 2
        while taken in self.names:
            taken, n = f"{name}_{n}", n + 1
        self.names.append(taken)
        return taken


_KEYWORDS = RESERVED | {"rank", "asc", "desc"}


def _agg(item: str) -> str:
    """The aggregate of an item; "" where it is none."""
    call = _CALL.match(item)
    return call[1] if call is not None and call[1] in AGGREGATES else ""


def _inside(figure: str) -> str:
    call = _CALL.match(figure)
    return call[2] if call is not None else figure


def _prompt(text: str) -> str:
    inner = text[text.index("'") + 1 : text.rindex("'")]
    return 'PROMPT "' + inner.replace("\\", "").replace('"', "’") + '"'


def _node(kind: str, name: str, body: str, columns: Sequence[str]) -> dict[str, Any]:
    return {"kind": kind, "name": name, "uql" if kind == "uql" else "body": body, "columns": list(columns)}


def _plot(mark: str, columns: Sequence[str], table: str, title: str) -> dict[str, Any]:
    y = columns[-1]
    return {
        "kind": "plot",
        "name": "plot",
        "input": table,
        "mark": mark,
        "x": columns[0],
        "y": y,
        "color": columns[1] if len(columns) == 3 else "",
        "title": " ".join(title.split())[:80],
    }
