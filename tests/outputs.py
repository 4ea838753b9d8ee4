"""Outputs that pages and notebooks show, as tests compare them."""

from __future__ import annotations

import re

_ESTIMATE = re.compile(r"±|\d–\d|_low|\bcalls\b|\bbetween\b|\d to \d|█|\binterval\b")
_NUMBER = re.compile(r"\d[\d.,]*(?: ± \d[\d.,]*)?(?: \(\d[\d.,]*–\d[\d.,]*\))?")


def skeleton(block: str) -> str:
    """A block as it is compared: exact, but where it holds an estimate its numbers, their width and the order of rows may differ
    between processors: rows are asked in the order of a regression's last digits."""
    if not _ESTIMATE.search(block):
        return block
    masked = [
        re.sub(r"[─┬┴┼]+", "─", _NUMBER.sub("#", re.sub(r"[█▉▊▋▌▍▎▏]+", "█", line))) for line in block.splitlines()
    ]
    return "\n".join(sorted(re.sub(r"\s+", " ", line) for line in masked))
