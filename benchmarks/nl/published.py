"""What three papers on questions in words report, for their tables to stand beside ours. A test finds each row in the papers' text.

Meta Engine (tables 2 to 6), CAESURA (Urban and Binnig, tables 1 and 2), M²EX (tables 1 to 3). "" is a cell that a paper leaves empty.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Published:
    """A table of a paper: the heads of its columns, and its rows, of which the first cells name the row."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    names: int = 1  # cells that name a row


def _rows(text: str) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(cell.strip() for cell in line.split("|")) for line in text.strip().splitlines())


# ----------------------------------------------------------------------------------------------------------- Meta Engine
META_2 = Published(
    ("Lotus", "Single-Model", "LlamaIndex", "DSPy", "Meta-Engine (MLRouter)", "Meta-Engine (StatRouter)"),
    _rows("""
        Text2Vis | F1-score | 9.71 | 32.18 | 9.62 | 23.45 | 36.76 | 36.14
        Text2Vis | Hit | 58.11 | 64.32 | 69.74 | 63.03 | 66.28 | 65.83
        Text2Vis | Semantic Hit | 63.48 | 75.11 | 73.66 | 68.79 | 74.78 | 75.62
        ManyModalQA | F1-score | 9.48 | 33.90 | 12.89 | 33.38 | 51.06 | 54.61
        ManyModalQA | Hit | 68.40 | 69.93 | 69.24 | 68.13 | 67.22 | 74.38
        ManyModalQA | Semantic Hit | 68.82 | 77.78 | 74.72 | 72.78 | 72.22 | 81.60
        MultiModalQA | F1-score | 9.47 | 34.88 | 10.03 | 24.26 | 54.71 | 53.13
        MultiModalQA | Hit | 70.10 | 70.95 | 65.50 | 64.15 | 75.15 | 74.90
        MultiModalQA | Semantic Hit | 53.90 | 65.55 | 57.60 | 58.90 | 72.90 | 72.65
        M2QA | F1-score | 5.43 | 26.67 | 10.14 | 28.27 | 47.91 | 50.57
        M2QA | Hit | 46.11 | 43.51 | 77.25 | 77.05 | 65.07 | 69.86
        M2QA | Semantic Hit | 38.72 | 39.12 | 62.08 | 64.87 | 62.87 | 66.47
        FinMMR | F1-score | 1.16 | 20.75 | 2.92 | 19.70 | 26.90 | 28.47
        FinMMR | Hit | 11.62 | 25.41 | 42.37 | 25.02 | 35.40 | 37.41
        FinMMR | Semantic Hit | 16.42 | 34.86 | 53.99 | 34.24 | 50.43 | 52.59
    """),
    names=2,
)
_ABLATED = ("F1 (%)", "Hit (%)", "Semantic Hit (%)")
META_3, META_4, META_5 = (
    Published(_ABLATED, _rows(text), names=2)
    for text in (
        """
        MLRouter | Meta-Engine | 54.71 | 75.15 | 72.90
        MLRouter | Meta-Engine w/o Aggregator | 52.75 | 74.15 | 70.60
        MLRouter | Meta-Engine w/o Decomposer | 54.66 | 72.70 | 71.40
        MLRouter | Meta-Engine w/o Checker | 52.60 | 76.10 | 71.95
        StatRouter | Meta-Engine | 53.13 | 74.90 | 72.65
        StatRouter | Meta-Engine w/o Aggregator | 40.79 | 75.15 | 71.60
        StatRouter | Meta-Engine w/o Decomposer | 53.01 | 73.05 | 71.00
        StatRouter | Meta-Engine w/o Checker | 53.18 | 76.80 | 73.85
        Single-Adapter (LOTUS) | Meta-Engine | 39.76 | 62.35 | 57.15
        """,
        """
        MLRouter | Meta-Engine | 51.06 | 67.22 | 72.22
        MLRouter | Meta-Engine w/o Aggregator | 50.50 | 68.19 | 72.50
        MLRouter | Meta-Engine w/o Decomposer | 51.47 | 68.19 | 72.64
        MLRouter | Meta-Engine w/o Checker | 51.09 | 72.78 | 76.67
        StatRouter | Meta-Engine | 54.61 | 74.38 | 81.60
        StatRouter | Meta-Engine w/o Aggregator | 46.80 | 74.86 | 81.25
        StatRouter | Meta-Engine w/o Decomposer | 54.40 | 74.38 | 80.14
        StatRouter | Meta-Engine w/o Checker | 51.00 | 73.47 | 78.89
        Single-Adapter (LOTUS) | Meta-Engine | 34.83 | 53.54 | 57.85
        """,
        """
        MLRouter | Meta-Engine | 47.91 | 65.07 | 62.87
        MLRouter | Meta-Engine w/o Aggregator | 35.62 | 59.08 | 52.50
        MLRouter | Meta-Engine w/o Decomposer | 47.47 | 60.28 | 58.48
        MLRouter | Meta-Engine w/o Checker | 43.88 | 65.47 | 61.28
        StatRouter | Meta-Engine | 50.57 | 69.86 | 66.47
        StatRouter | Meta-Engine w/o Aggregator | 29.20 | 66.27 | 57.29
        StatRouter | Meta-Engine w/o Decomposer | 51.02 | 68.86 | 65.47
        StatRouter | Meta-Engine w/o Checker | 45.80 | 67.86 | 64.67
        Single-Adapter (LOTUS) | Meta-Engine | 46.58 | 69.06 | 65.27
        """,
    )
)
META_6 = Published(
    ("ManyModalQA", "MultiModalQA", "M2QA"),
    _rows("""
        | Lotus | 6.89 | 7.55 | 6.13
        | Single-Model | 7.08 | 8.01 | 6.87
        | LlamaIndex | 4.15 | 5.99 | 4.81
        | DSPy | 7.37 | 9.03 | 11.63
        MLRouter | Full | 8.15 | 11.91 | 19.89
        MLRouter | w/o Aggregator | 6.45 | 11.76 | 17.00
        MLRouter | w/o Decomposer | 5.76 | 7.33 | 8.30
        MLRouter | w/o Checker | 13.04 | 19.26 | 23.58
        StatRouter | Full | 8.72 | 13.08 | 21.01
        StatRouter | w/o Aggregator | 7.53 | 12.26 | 20.99
        StatRouter | w/o Decomposer | 6.12 | 9.02 | 10.46
        StatRouter | w/o Checker | 14.53 | 18.74 | 25.81
    """),
    names=2,
)

# --------------------------------------------------------------------------------------------------------------- CAESURA
CAESURA_1 = Published(
    ("ChatGPT-3.5 logical", "ChatGPT-3.5 physical", "GPT-4 logical", "GPT-4 physical"),
    _rows("""
        Artwork overall | 79.2% | 70.8% | 100% | 100%
        Rotowire overall | 50.0% | 41.7% | 87.5% | 75.0%
        Single modality | 79.2% | 75.0% | 100% | 92.7%
        Multiple modalities | 50.0% | 37.5% | 87.5% | 83.3%
        Single value | 75.0% | 62.5% | 100% | 93.8%
        Table | 68.8% | 62.5% | 87.5% | 81.3%
        Plot | 50.0% | 43.8% | 93.8% | 87.5%
        All | 64.6% | 56.2% | 93.8% | 87.5%
    """),
)
CAESURA_2 = Published(
    ("ChatGPT-3.5", "GPT-4"),
    _rows("""
        Impossible Actions | logical | 4 | 2
        Data Misunderstanding | logical | 9 | 1
        Illogical / Missing Steps | logical | 3 | 0
        Wrong Arguments | physical | 3 | 3
        Wrong Tool | physical | 1 | 0
    """),
    names=2,
)

# ------------------------------------------------------------------------------------------------------------------ M²EX
_M2EX = ("Accuracy", "Steps", "Tokens", "Latency [s]", "Cost [$]")
# In the paper's text the cells of M²EX's workflow on RotoWire have slipped to the right: they stand here where they belong. Its column
# "Gen. Plan" has one cell a system: CAESURA 80 % and 91.67 %, M²EX 100 % and 100 %; CAESURA does not re-plan, M²EX does.
M2EX_1 = Published(
    (*(f"ArtWork {name}" for name in _M2EX), *(f"RotoWire {name}" for name in _M2EX)),
    _rows("""
        CAESURA | Single | 60.00% | 152 | 214,014 | 973.28 | 1.33 | 50.00% | 79 | 100,277 | 500.52 | 0.65
        CAESURA | Multiple | 6.67% | 164 | 268,918 | 4,847.95 | 1.65 | 0.00% | 78 | 133,230 | 959.17 | 0.85
        CAESURA | Single Value | 37.50% | 88 | 135,077 | 1,047.24 | 0.82 | 66.67% | 32 | 45,145 | 287.55 | 0.29
        CAESURA | Data Structure | 50.00% | 116 | 183,454 | 2,683.03 | 1.14 | 20.00% | 69 | 104,345 | 659.37 | 0.68
        CAESURA | Plot | 25.00% | 79 | 112,732 | 1,856.66 | 0.69 | 0.00% | 56 | 84,017 | 512.77 | 0.53
        CAESURA | Plot-Plot | 0% | 16 | 21,508 | 108.87 | 0.14 | — | — | — | — | —
        CAESURA | Plot-Data Structure | 0% | 17 | 30,161 | 125.42 | 0.19 | — | — | — | — | —
        CAESURA | Sequential | 41.67% | 261 | 399,045 | 5,330.12 | 2.45 | 25.00% | 157 | 233,507 | 1,459.69 | 1.50
        CAESURA | Parallel | 0% | 55 | 83,887 | 491.11 | 0.52 | — | — | — | — | —
        CAESURA | Overall | 33.33% | 316 | 482,932 | 5,821.23 | 2.98 | 25.00% | 157 | 233,507 | 1,459.69 | 1.50
        M²EX | Single | 100.00% | 96 | 159,212 | 525.09 | 0.61 | 100.00% | 34 | 89,810 | 524.06 | 0.40
        M²EX | Multiple | 26.67% | 107 | 326,400 | 2,515.03 | 1.49 | 33.33% | 42 | 952,386 | 3,235.96 | 3.22
        M²EX | Single Value | 50.00% | 56 | 71,575 | 494.78 | 0.39 | 100.00% | 16 | 108,520 | 499.70 | 0.40
        M²EX | Data Structure | 50.00% | 67 | 223,528 | 1,330.40 | 0.89 | 40.00% | 27 | 410,698 | 2,120.15 | 1.57
        M²EX | Plot | 75.00% | 52 | 118,431 | 798.97 | 0.48 | 75.00% | 33 | 522,987 | 1,140.17 | 1.65
        M²EX | Plot-Plot | 100.00% | 14 | 50,108 | 308.92 | 0.22 | — | — | — | — | —
        M²EX | Plot-Data Structure | 100.00% | 14 | 21,970 | 107.05 | 0.10 | — | — | — | — | —
        M²EX | Sequential | 62.50% | 163 | 338,766 | 2,131.11 | 1.51 | 66.67% | 76 | 1,042,196 | 3,760.02 | 3.62
        M²EX | Parallel | 66.67% | 40 | 146,846 | 909.01 | 0.59 | — | — | — | — | —
        M²EX | Overall | 63.33% | 203 | 485,612 | 3,040.12 | 2.10 | 66.67% | 76 | 1,042,196 | 3,760.02 | 3.62
    """),
    names=2,
)
M2EX_2 = Published(
    (
        "Image Single-1",
        "Image Single-2",
        "Image+Table Single",
        "Binary",
        "Categorical",
        "Overall",
        "Generated Plan",
        "Replanning",
    ),
    _rows("""
        NeuralSQL zero-shot | 0.00% | 0.00% | 0.00% | 0.00% | 0.00% | 0.00% | N/A | No
        NeuralSQL few-shot | 26.67% | 20.00% | 47.50% | 48.00% | 18.00% | 33.00% | |
        M²EX zero-shot | 23.33% | 43.33% | 77.50% | 74.00% | 28.00% | 51.00% | 98% | Yes
    """),
)
M2EX_3 = Published(
    ("Tasks", "Errors", "Dominant Error Source"),
    _rows("""
        ArtWork | CAESURA | 30 | 20 | Faulty plans; VQA errors
        ArtWork | M²EX | 30 | 11 | VQA errors only
        RotoWire | CAESURA | 12 | 9 | Text analysis; SQL faults
        RotoWire | M²EX | 12 | 4 | Text analysis
        EHRXQA | NeuralSQL | 100 | 67 | N/A – no plan output
        EHRXQA | M²EX | 100 | 49 | VQA errors only
    """),
    names=2,
)
PUBLISHED = {
    "meta-engine": (META_2, META_3, META_4, META_5, META_6),
    "caesura": (CAESURA_1, CAESURA_2),
    "m2ex": (M2EX_1, M2EX_2, M2EX_3),
}
