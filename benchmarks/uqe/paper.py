"""What the UQE paper reports (Dai et al., 2024; the text of its first version), for the tables to stand beside ours."""

from __future__ import annotations

Figures = dict[str, dict[str, str]]  # query → column → what is printed

GPT, CLAUDE, MIPS, UQE = "lc-gpt-4-turbo", "lc-claude-3-opus", "MIPS", "UQE"


def _row(*cells: str, columns: tuple[str, ...] = (GPT, CLAUDE, UQE)) -> dict[str, str]:
    return dict(zip(columns, cells, strict=True))


# Table 1: relative error of COUNT, B = 128; UQE with claude-3-haiku, over CLEVR with gpt-4o.
# CLEVR has lc-gpt-4o and lc-gpt-4-turbo; the first stands in the column of claude-3-opus, as its cell says.
COUNT: Figures = {
    "imdb_positive": _row("49.02 ± 21.23 %", "56.05 ± 14.69 %", "5.75 ± 3.43 %"),
    "abcd_account_access": _row("69.25 ± 32.82 %", "27.28 ± 17.05 %", "11.75 ± 9.78 %"),
    "abcd_single_item_query": _row("78.42 ± 9.36 %", "23.39 ± 16.14 %", "12.32 ± 10.53 %"),
    "airdialogue_book": _row("47.58 ± 15.24 %", "54.40 ± 13.37 %", "4.98 ± 2.26 %"),
    "airdialogue_no_flight": _row("47.92 ± 21.62 %", "53.88 ± 15.77 %", "8.78 ± 8.12 %"),
    "airdialogue_no_reservation": _row("50.54 ± 21.86 %", "57.49 ± 13.08 %", "7.23 ± 5.40 %"),
    "clevr_few_objects": _row("48.15 ± 41.52 %", "gpt-4o: 22.46 ± 19.35 %", "9.55 ± 8.55 %"),
    "clevr_many_spheres": _row("91.09 ± 20.08 %", "gpt-4o: 35.72 ± 14.95 %", "15.14 ± 10.71 %"),
}
# one picture at a time, counted by gpt-4o (section 6.1.1)
COUNT_EACH = {"clevr_few_objects": "17.10 ± 13.95 %", "clevr_many_spheres": "19.35 ± 13.81 %"}

# Table 2: F1, B = 256, claude-3-haiku
_FOUR = (GPT, CLAUDE, MIPS, UQE)
FIND: Figures = {
    "imdb_positive": _row("0.397 ± 0.041", "0.556 ± 0.066", "0.875", "0.978 ± 0.003", columns=_FOUR),
    "abcd_account_access": _row("0.045 ± 0.033", "0.080 ± 0.023", "0.961", "0.940 ± 0.019", columns=_FOUR),
    "abcd_single_item_query": _row("0.023 ± 0.021", "0.082 ± 0.030", "0.266", "0.935 ± 0.006", columns=_FOUR),
    "airdialogue_book": _row("0.327 ± 0.0667", "0.585 ± 0.025", "0.930", "0.979 ± 0.010", columns=_FOUR),
    "airdialogue_no_flight": _row("0.066 ± 0.037", "0.228 ± 0.068", "0.867", "0.928 ± 0.018", columns=_FOUR),
    "airdialogue_no_reservation": _row("0.156 ± 0.075", "0.297 ± 0.043", "0.965", "0.969 ± 0.004", columns=_FOUR),
    "airdialogue_cancel": _row("0.006 ± 0.009", "0.013 ± 0.008", "0.066", "0.741 ± 0.205", columns=_FOUR),
    "clevr_few_objects": _row("0.058 ± 0.026", "0.066 ± 0.023", "0.023", "0.850 ± 0.025", columns=_FOUR),
    "clevr_many_spheres": _row("0.037 ± 0.027", "0.099 ± 0.023", "0.145", "0.633 ± 0.177", columns=_FOUR),
}

# Table 3: EMD of GROUP BY
GROUP: Figures = {
    "airdialogue_outcome": _row("0.143 ± 0.034", "0.121 ± 0.014", "0.111 ± 0.019"),
    "abcd_account_access_type": _row("0.154 ± 0.031", "0.113 ± 0.010", "0.110 ± 0.016"),
    "abcd_single_item_type": _row("0.031 ± 0.034", "0.011 ± 0.006", "0.005 ± 0.002"),
}

# Table 4: share of the rows that meet a condition, in hundredths
SHARE = {
    "airdialogue_book": 51.40,
    "airdialogue_cancel": 1.46,
    "airdialogue_no_flight": 23.08,
    "airdialogue_no_reservation": 23.89,
    "abcd_single_item_query": 10.41,
    "abcd_account_access": 10.44,
    "imdb_positive": 50.0,
    "clevr_few_objects": 12.65,
    "clevr_many_spheres": 17.53,
}

# Table 5: seconds of a query of UQE with claude-3-haiku on a laptop, the model's latency included: COUNT and retrieval
SECONDS = {
    "clevr": ("3.13", "46.00"),
    "abcd": ("3.34", "41.20"),
    "imdb": ("5.83", "38.08"),
    "airdialogue": ("3.85", "67.14"),
}

FIGURE_4 = (
    "imdb_positive",
    "abcd_account_access",
    "abcd_single_item_query",
    "airdialogue_book",
    "airdialogue_no_flight",
    "airdialogue_no_reservation",
)
FIGURE_5 = ("airdialogue_cancel", "airdialogue_no_flight", "clevr_few_objects", "clevr_many_spheres")
FOUND, TRUE = "found: ", "labels: "  # begin the names under which a run of GROUP BY keeps its groups
