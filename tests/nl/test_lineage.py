"""A private column stays private under any name that a query gives it."""

from __future__ import annotations

import pytest

from uql.nl.dag import Node, NodeKind
from uql.nl.lineage import marked
from uql.schema import Field

READ = (Field("name", "VARCHAR"), Field("owner_phone", "VARCHAR", private=True))


def hidden(kind: NodeKind, body: str, *columns: str) -> set[str]:
    made = marked(Node("n", kind, body), [Field(name, "VARCHAR") for name in columns], READ)
    return {f.name for f in made if f.private}


@pytest.mark.parametrize("kind", [NodeKind.UQL, NodeKind.SQL])
@pytest.mark.parametrize(
    ("body", "columns", "private"),
    [
        ("SELECT name, owner_phone AS contact FROM shops", ("name", "contact"), {"contact"}),
        ("SELECT upper(owner_phone) AS a, name AS b FROM shops", ("a", "b"), {"a"}),
        ("SELECT count(owner_phone) AS n, max(owner_phone) AS m FROM shops", ("n", "m"), {"m"}),
        ("SELECT c AS d FROM (SELECT owner_phone AS c FROM shops) AS t", ("d",), {"d"}),
        ("SELECT * FROM shops", ("name", "owner_phone"), {"owner_phone"}),
        ("SELECT name AS n FROM shops", ("n",), set()),
    ],
)
def test_what_a_private_column_gives_is_private_under_any_name(
    kind: NodeKind, body: str, columns: tuple[str, ...], private: set[str]
) -> None:
    assert hidden(kind, body, *columns) == private


def test_a_question_with_a_private_hole_is_private_and_what_cannot_be_followed_too() -> None:
    assert hidden(NodeKind.UQL, 'SELECT PROMPT "the area of {owner_phone}" AS area FROM shops', "area") == {"area"}
    assert hidden(NodeKind.PYTHON, "[{'x': r['owner_phone']} for r in shops]", "x") == {"x"}
    assert hidden(NodeKind.SQL, "SELECT FROM WHERE", "x") == {"x"}
