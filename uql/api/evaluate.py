"""How right a text is: asked of labelled rows, per model and wording, with intervals, costs and seconds; and better wordings.

A text whose labels are yes and no is a condition: precision, recall, F1. Any other labels make it a choice among them: accuracy and
the mean F1 of the labels. A row without an answer counts as wrong.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from uql.api.labelled_rows import labelled_rows
from uql.api.packing import Packing, packing
from uql.base.errors import BudgetError, DataError
from uql.base.printable import aligned
from uql.llm.budget import Budget
from uql.llm.gate import Gate
from uql.llm.prompts.json_schema import closed
from uql.llm.questions import Choice, Predicate, Question, Row, Write
from uql.operators.texts import quoted
from uql.operators.types import TRUTH_WORDS
from uql.sampling.intervals import Interval, wilson
from uql.session.events import finished

if TYPE_CHECKING:
    from uql.llm.ledger import Ledger
    from uql.llm.providers.base import Provider
    from uql.session.session import Session

SAMPLE = 200  # rows that are drawn, unless told otherwise
LEAST_HALF = 10  # labelled rows of each half, below which wordings are not compared
RESAMPLES = 1_000
MISTAKES = 6  # of each kind, shown to the model that proposes wordings
Codes = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Measure:
    """A share in [0, 1] with its interval; `value` is None where no row speaks of it."""

    value: float | None
    low: float = 0.0
    high: float = 1.0

    def __str__(self) -> str:
        return "–" if self.value is None else f"{self.value:.2f} ({self.low:.2f}–{self.high:.2f})"


@dataclass(frozen=True, slots=True)
class Evaluated:
    """One text asked of one model.

    Attributes:
        rows, unknown: that were asked; of which without an answer.
        measures: by name, "precision", "recall", "f1" of a condition, "accuracy", "macro_f1" of a choice.
        calls, cached: rows that the model was asked now; rows that the ledger answered.
        usd: of the calls; None where the price is unknown.
        seconds: of a call, None where all answers came from the ledger.
    """

    text: str
    model: str
    rows: int
    unknown: int
    measures: dict[str, Measure]
    calls: int
    cached: int
    usd: float | None
    seconds: float | None
    packing: Packing | None = None  # what sharing requests does to its answers, where that was measured


@dataclass(frozen=True, slots=True)
class Improvement:
    """Wordings that a model proposed, compared on rows that were not used to choose.

    Attributes:
        proposed: all of them, in the order of their F1 on the half that was used to choose.
        held_out: the first text and the best proposal on the other half.
        gain: of F1 (of a choice: its mean over labels) by the best proposal on that half, with its interval.
    """

    proposed: tuple[Evaluated, ...]
    held_out: tuple[Evaluated, Evaluated]
    gain: Measure

    @property
    def better(self) -> bool:
        """Is the whole interval of the gain above 0?"""
        return self.gain.low > 0


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Each text with each model, and what came of `improve`."""

    found: tuple[Evaluated, ...]
    confidence: float
    improvement: Improvement | None = None

    def dicts(self) -> dict[str, Any]:
        """As plain dicts, for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        lines = [
            *_table(self.found),
            f"intervals at {100 * self.confidence:g} %; a row without an answer counts as wrong",
            *(f"{one.model}: {one.packing}" for one in self.found if one.packing is not None),
        ]
        if self.improvement is not None:
            tried = self.improvement
            gain = f"{tried.gain.value:+.2f} ({tried.gain.low:+.2f} to {tried.gain.high:+.2f})"
            lines += ["", "proposed, on the half of the rows by which one is chosen:", *_table(tried.proposed)]
            lines += ["", "on the other half:", *_table(tried.held_out)]
            lines.append(f"F1 {gain}: " + ("better" if tried.better else "not shown to be better on these rows"))
        return "\n".join(lines)


def _table(evaluations: Sequence[Evaluated]) -> list[str]:
    names = list(evaluations[0].measures)
    head = ["text", "model", "rows", *names, "no answer", "calls", "cached", "USD", "s a call"]
    body = [
        [
            *(one.text, one.model, f"{one.rows:,}", *(str(one.measures[name]) for name in names), str(one.unknown)),
            *(f"{one.calls:,}", f"{one.cached:,}", "–" if one.usd is None else f"{one.usd:.4f}"),
            "–" if one.seconds is None else f"{one.seconds:.2f}",
        ]
        for one in evaluations
    ]
    return aligned([head, *body])


# ----------------------------------------------------------------------------------------------------------------- work
def evaluate(
    session: Session,
    rows: str,
    texts: str | Sequence[str],
    *,
    label: str = "label",
    columns: Sequence[str] = (),
    models: Sequence[str | Provider] = (),
    sample: int | None = SAMPLE,
    improve: int = 0,
    packed: int = 0,
) -> Evaluation:
    """Asks texts about labelled rows and compares the answers with the labels. Answers go through the ledger: each is paid once.

    Args:
        session: its settings hold (model, max_cost, confidence, seed …).
        rows: a table, a file in single quotes, or a SELECT in DuckDB's SQL.
        texts: the wordings, as they stand in queries, without the quotes.
        label: the column with the right answers.
        columns: those that the model is shown; none: all but the label.
        models: to compare; none: that of the session.
        sample: labelled rows that are drawn; None: all.
        improve: wordings that the first model proposes for the first text; half of the rows are kept to check the best one.
        packed: rows of a request, at least 2: what that changes is measured too, and decides for rows_per_request = 'auto'.
    Raises: DataError (UQL517) where the rows cannot be used; errors of a model that concern every call.
    """
    wordings = [texts] if isinstance(texts, str) else list(texts)
    if not wordings:
        raise DataError("no text to evaluate", code="UQL517")
    examples, labels = labelled_rows(session, rows, label, columns)
    if not examples:
        raise DataError(f"no row has a label in {label!r}", code="UQL517")
    rng = np.random.default_rng(session.settings.seed)
    if sample is not None and sample < len(examples):
        positions = np.sort(rng.choice(len(examples), sample, replace=False))
        examples, labels = [examples[i] for i in positions], [labels[i] for i in positions]
    candidates: list[Any] = list(models) or [session.given(session.settings) or session.settings.model]
    with session.ledgers.open(session.settings.ledger) as ledger:
        work = _Work(session, examples, labels, packed, ledger)
        return finished(work.run(wordings, candidates, improve, rng))


class _Work:
    """The labelled rows of an evaluation, and what is asked of them."""

    def __init__(self, session: Session, rows: list[Row], labels: list[object], packed: int, ledger: Ledger) -> None:
        self.session, self.rows, self.packed, self.ledger = session, rows, packed, ledger
        self.settings = settings = session.settings
        self.budget = Budget(
            calls=None, tokens=settings.max_tokens, usd=settings.max_cost, seconds=settings.max_seconds
        )  # of all texts and models together
        words = [str(label).strip() for label in labels]
        self.is_condition = all(word.lower() in TRUTH_WORDS for word in words)
        self.names = () if self.is_condition else tuple(sorted(set(words)))
        flags = [int(TRUTH_WORDS[word.lower()]) if self.is_condition else self.names.index(word) for word in words]
        self.truth = np.array(flags, np.int64)

    @property
    def _everywhere(self) -> Codes:
        return np.arange(len(self.rows))

    async def run(
        self, texts: Sequence[str], models: Sequence[Any], improve: int, rng: np.random.Generator
    ) -> Evaluation:
        evaluations = []
        for model in models:
            for text in texts:
                evaluation, codes = await self._evaluate_text(text, model, self._everywhere)
                if self.packed > 1:
                    evaluation = replace(evaluation, packing=await self._packing(text, model, codes))
                evaluations.append(evaluation)
        improvement = await self._improved(texts[0], models[0], improve, rng) if improve else None
        return Evaluation(tuple(evaluations), self.settings.confidence, improvement)

    def _question(self, text: str) -> Question:
        return Predicate(text) if self.is_condition else Choice(text, self.names, none_of_these=False)

    async def _evaluate_text(self, text: str, model: Any, at: Codes) -> tuple[Evaluated, Codes]:
        """What came of one text and model over the rows `at`, and the (n,) answers: -1 for none."""
        async with Gate.open(self.settings, model=model, ledger=self.ledger, budget=self.budget) as gate:
            self.session.hear(gate)
            answers = await gate.ask(self._question(text), [self.rows[i] for i in at])
            provider, cost = await gate.provider(), replace(gate.cost)
        if any(failure.kind == "budget" for failure in answers.failures):
            raise BudgetError(
                f"a limit was reached after {cost.calls:,} of {len(at):,} calls for {text!r}; what was answered is in the ledger",
                help="a higher max_cost, or a smaller sample",
            )
        codes = np.array([self._code(value) for value in answers.values], np.int64)
        evaluation = Evaluated(
            text=text,
            model=model if isinstance(model, str) else provider.name,
            rows=len(at),
            unknown=int((codes < 0).sum()),
            measures=self._measures(codes, self.truth[at]),
            calls=cost.calls,
            cached=cost.cached,
            usd=cost.usd,
            seconds=cost.seconds / cost.calls if cost.calls else None,
        )
        return evaluation, codes

    async def _packing(self, text: str, model: Any, codes: Codes) -> Packing:
        words = ("no", "yes") if self.is_condition else self.names
        values = (False, True) if self.is_condition else self.names
        alone = [None if code < 0 else values[code] for code in codes.tolist()]
        question = self._question(text)
        return await packing(
            self.settings, model, question, self.rows, alone, self.packed, words, self.ledger, self.budget
        )

    def _code(self, value: Any) -> int:
        if value is None:
            return -1
        return int(value) if self.is_condition else self.names.index(value) if value in self.names else -1

    def _measures(self, answers: Codes, truth: Codes) -> dict[str, Measure]:
        confidence = self.settings.confidence
        f1 = Measure(
            self._f1(answers, truth), *self._resampled(lambda at: self._f1(answers[at], truth[at]), len(answers))
        )
        if not self.is_condition:
            return {"accuracy": _share(answers == truth, confidence), "macro_f1": f1}
        right = truth == 1
        shares = {
            "precision": _share(right[answers == 1], confidence),
            "recall": _share(answers[right] == 1, confidence),
        }
        return {**shares, "f1": f1}

    def _f1(self, answers: Codes, truth: Codes) -> float:
        """F1 of yes, or its mean over the labels that the rows have; 0 where nothing is right.

        Source: Sokolova & Lapalme (2009).
        """
        scores = []
        for label in (1,) if self.is_condition else np.unique(truth):
            hits = int(((answers == label) & (truth == label)).sum())
            scores.append(2 * hits / max(int((answers == label).sum() + (truth == label).sum()), 1))
        return float(np.mean(scores))

    def _resampled(self, statistic: Any, n: int) -> Interval:
        """The percentile interval of a statistic of rows. Source: Efron & Tibshirani (1993), chapter 13."""
        rng = np.random.default_rng(self.settings.seed)
        replicates = [statistic(rng.integers(0, n, n)) for _ in range(RESAMPLES)]
        tail = (1 - self.settings.confidence) / 2
        low, high = np.quantile(replicates, [tail, 1 - tail])
        return float(low), float(high)

    # ---------------------------------------------------------------------------------------------------------- improve
    async def _improved(self, text: str, model: Any, count: int, rng: np.random.Generator) -> Improvement:
        chosen_by, held_out = self._halves(rng)
        first, codes = await self._evaluate_text(text, model, chosen_by)
        proposed = [first]
        for wording in await self._proposed(text, model, count, chosen_by, codes):
            proposed.append((await self._evaluate_text(wording, model, chosen_by))[0])
        name = "f1" if self.is_condition else "macro_f1"
        proposed.sort(key=lambda one: -(one.measures[name].value or 0.0))  # stable: the first text before its equals
        best = next((one for one in proposed if one.text != text), first)
        before, old = await self._evaluate_text(text, model, held_out)
        after, new = await self._evaluate_text(best.text, model, held_out)
        truth = self.truth[held_out]

        def gain(at: Codes) -> float:
            return self._f1(new[at], truth[at]) - self._f1(old[at], truth[at])

        whole = gain(np.arange(len(truth)))
        return Improvement(tuple(proposed), (before, after), Measure(whole, *self._resampled(gain, len(truth))))

    def _halves(self, rng: np.random.Generator) -> tuple[Codes, Codes]:
        """The rows in two halves, each label in both in equal numbers. Raises DataError (UQL517) for too few rows."""
        if len(self.rows) < 2 * LEAST_HALF:
            raise DataError(
                f"wordings are chosen on one half of the rows and checked on the other: {len(self.rows)} labelled rows are too few",
                code="UQL517",
                help=f"at least {2 * LEAST_HALF}",
            )
        order = rng.permutation(len(self.rows))
        order = order[np.argsort(self.truth[order], kind="stable")]
        return np.sort(order[::2]), np.sort(order[1::2])

    async def _proposed(self, text: str, model: Any, count: int, at: Codes, codes: Codes) -> list[str]:
        """New wordings by the model, which sees mistakes of the first one; no text twice."""
        schema = closed({"wordings": {"type": "array", "items": {"type": "string"}}})
        words = self._request(text, count, at, codes)
        async with Gate.open(self.settings, model=model, ledger=self.ledger, budget=self.budget) as gate:
            self.session.hear(gate)
            answers = await gate.ask(Write(words, schema=json.dumps(schema), max_tokens=80 * count + 80), [Row()])
        reply = answers.values[0]
        if not isinstance(reply, dict):
            why = "; ".join(failure.message for failure in answers.failures) or "no list of wordings"
            raise DataError(
                f"the model proposes no wordings: {why}", code="UQL517", help="another --model, or no --improve"
            )
        wordings = (str(wording).strip().strip('"') for wording in reply.get("wordings", ()))
        return [wording for wording in dict.fromkeys(wordings) if wording and wording != text][:count]

    def _request(self, text: str, count: int, at: Codes, answers: Codes) -> str:
        kind = "a condition that each text meets or not" if self.is_condition else "a question with one label as answer"
        lines = [f"{kind[0].upper()}{kind[1:]} is {quoted(text)}.", *self._mistakes(at, answers)]
        lines.append(
            f"Propose {count} other wordings of it that a reader cannot misunderstand: short, each a "
            f"{'statement' if self.is_condition else 'question'} that stands alone. "
            'Answer with JSON: {"wordings": ["…"]}.'
        )
        return "\n".join(lines)

    def _mistakes(self, at: Codes, answers: Codes) -> list[str]:
        names = ("no", "yes") if self.is_condition else self.names
        wrong = [(int(row), int(code)) for row, code in zip(at, answers, strict=True) if 0 <= code != self.truth[row]]
        lines = []
        for row, code in wrong[: 2 * MISTAKES]:
            text = " ".join(cell.value for cell in self.rows[row].cells if isinstance(cell.value, str))
            right = names[self.truth[row]]
            lines.append(f"Of the text {quoted(text)} the answer was {quoted(names[code])}, right is {quoted(right)}.")
        return lines


def _share(right: NDArray[np.bool_], confidence: float) -> Measure:
    """The share of rows that are right, with Wilson's interval; no value for no rows."""
    if not len(right):
        return Measure(None)
    share = float(right.mean())
    return Measure(share, *wilson(share, len(right), confidence))
