"""What each provider sends is as it was: bodies, schemas, grammars, and the ledger's keys, byte for byte.

tests/golden/wire/PROTOCOL.txt has a line a case: what is sent and what is read of the reply, as hashes, and the key of each question's
answer in a ledger. examples/PROTOCOL.json has some of the bodies whole. `--update-golden` rewrites both.
"""

from __future__ import annotations

import json
from hashlib import blake2b
from pathlib import Path
from typing import Any

import pytest
from wire_cases import DECIDES, PROTOCOLS, Case, asked, cases, opened, plain, takes

from uql.llm.ledger import keyed
from uql.llm.ledger_keys import question_key, row_key
from uql.llm.providers.base import Provider

GOLDEN = Path(__file__).parents[1] / "golden" / "wire"
SECRET = b"the secret of no ledger"
WHOLE = (
    "condition / text", "label / cells", "score / text", "value / holes", "compare / pair", "taxonomy", "summary-condition",
    "condition-examples / holes", "together 5 / foreign", "rows 1",
)  # fmt: skip


def written(held: Any) -> bytes:
    return json.dumps(held).encode()


def short(held: Any) -> str:
    return blake2b(written(held), digest_size=10).hexdigest()


def keys(provider: Provider, case: Case) -> str:
    """The ledger's keys of a case: a question a line's column; of several rows those of the last."""
    together = len(case.rows) > 1
    content = row_key(case.rows[-1])
    heads = [question_key(provider, question, together=together) for question in case.questions]
    return " ".join(keyed(SECRET, head, content).hex() for head in heads)


@pytest.mark.parametrize("protocol", [*PROTOCOLS, *DECIDES])
def test_what_a_provider_sends_reads_and_keeps_is_as_it_was(protocol: str, update_golden: bool) -> None:
    lines, whole = [], {}
    with opened(protocol) as (provider, transport):
        for case in cases():
            if not takes(protocol, case):
                continue
            transport.sent.clear()
            found = plain(asked(provider, case))
            lines.append(f"{case.name}\t{short(transport.sent)}\t{short(found)}\t{keys(provider, case)}")
            if case.name in WHOLE:
                whole[case.name] = {"sent": list(transport.sent), "read": found}
    text = "\n".join(lines) + "\n"
    examples = json.dumps(whole, indent=1) + "\n"
    golden, shown = GOLDEN / f"{protocol}.txt", GOLDEN / "examples" / f"{protocol}.json"
    if update_golden:
        shown.parent.mkdir(parents=True, exist_ok=True)
        golden.write_text(text, encoding="utf-8")
        shown.write_text(examples, encoding="utf-8")
    assert len(lines) >= (60 if protocol in DECIDES else 150)
    assert examples == shown.read_text(encoding="utf-8")
    assert lines == golden.read_text(encoding="utf-8").splitlines()
