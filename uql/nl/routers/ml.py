"""MLRouter: a frozen encoder of the sub-query, its operator and modality, and a small network that ranks the adapters.

Learned offline from traces. The label of a sub-query is its best adapter, its weight says how much depends on the choice:

    w = clip(α + β·q₁ + γ·(q₁ − q₂), 0.1, 1.5)        α = 0.1, β = 0.9, γ = 0.2

with q₁ and q₂ the quality of the best adapter and of the next (equation 1 of Meta Engine as read here, with its constants and bounds);
the loss is the weighted cross-entropy −Σ wᵢ log p(yᵢ|xᵢ) / Σ wᵢ (equation 2). The hidden layers see sub-queries, the last layer alone
knows adapters: one is added or dropped by fitting that layer again. Source: Meta Engine, section 4.4.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from uql.base.errors import ConfigError, DataError
from uql.base.extras import need
from uql.features.embedder import Embedder
from uql.nl.plan.dag import Operator
from uql.nl.routers.traces import MODALITIES, ScoredSubquery, Trace, modality_of, scored_subqueries

Matrix = NDArray[np.float64]
ALPHA, BETA, GAMMA = 0.1, 0.9, 0.2
LOWEST, HIGHEST = 0.1, 1.5
HIDDEN = (64,)
DECAY = 0.1  # L2 penalty of the network
HEAD_C = 10.0  # inverse L2 penalty of a last layer fitted alone
EPOCHS = 400
OPERATORS = tuple(operator.value for operator in Operator)


def weight(qualities: Sequence[float]) -> float:
    """The weight of a sub-query whose adapters reached these qualities: equation 1.

    >>> weight([1.0, 0.0]), weight([0.5, 0.5]), weight([0.0, 0.0])
    (1.2, 0.55, 0.1)
    """
    best, *others = sorted(qualities, reverse=True)
    margin = best - (others[0] if others else 0.0)
    return round(min(HIGHEST, max(LOWEST, ALPHA + BETA * best + GAMMA * margin)), 12)


def labels(subqueries: Sequence[ScoredSubquery]) -> tuple[list[str], Matrix]:
    """The best adapter of each sub-query, and the (n,) weights. Of several equally good ones that which is better on the whole."""
    qualities: dict[str, list[float]] = {}
    for one in subqueries:
        for name, quality in one.quality.items():
            qualities.setdefault(name, []).append(quality)
    means = {name: sum(values) / len(values) for name, values in qualities.items()}
    best = [min(one.quality, key=lambda name: (-one.quality[name], -means[name], name)) for one in subqueries]
    return best, np.array([weight(list(one.quality.values())) for one in subqueries], np.float64)


def cross_entropy(probabilities: Matrix, chosen: NDArray[np.int64], weights: Matrix) -> float:
    """Equation 2: (n, k) probabilities, (n,) labels in [0, k), (n,) weights → the weighted mean loss in nats.

    Args:
        probabilities: (n, k) each row sums to 1.
        chosen: (n,) int in [0, k), the label of each.
        weights: (n,) of each.
    """
    likelihoods = np.clip(probabilities[np.arange(len(chosen)), chosen], 1e-12, 1.0)
    return float(-(weights * np.log(likelihoods)).sum() / weights.sum())


@dataclass(frozen=True, slots=True)
class MLRouter:
    """Ranks adapters by the probability that they are the best.

    Attributes:
        embedder: frozen; the one that it was trained with, by name.
        adapters: in the order of the last layer's outputs.
        coefficients, intercepts: of the layers, (d_in, d_out) and (d_out,).
        loss: equation 2 over the training sub-queries.
        trained_on: sub-queries.
    """

    embedder: Embedder = field(repr=False)
    adapters: tuple[str, ...]
    coefficients: tuple[Matrix, ...] = field(repr=False)
    intercepts: tuple[Matrix, ...] = field(repr=False)
    loss: float = float("nan")
    trained_on: int = 0

    # -------------------------------------------------------------------------------------------------------- learning
    @classmethod
    def fit(cls, traces: Iterable[Trace], embedder: Embedder, *, seed: int = 0) -> MLRouter:
        """Trains encoder head and layers on traces.

        Args:
            seed: of the layers before training.
        Raises: DataError (UQL514) where the traces hold no sub-query that two adapters were tried on.
        """
        need("routers", "routers", "sklearn")
        from sklearn.neural_network import MLPClassifier

        subqueries = _comparable(scored_subqueries(traces))
        best, weights = labels(subqueries)
        features = _features(embedder, subqueries)
        names = tuple(sorted({name for one in subqueries for name in one.quality}))
        classes = tuple(sorted(set(best)))
        if len(classes) == 1:  # one adapter is best everywhere: nothing to learn but that
            width = features.shape[1]
            layers = _random_layers(width, seed)
            router = cls(embedder, classes, layers[0], layers[1], 0.0, len(subqueries))
            return router.with_adapters(traces, names)
        network = MLPClassifier(HIDDEN, alpha=DECAY, max_iter=EPOCHS, random_state=seed, solver="lbfgs")
        _fit_weighted(network, features, best, weights)
        coefficients, intercepts = list(network.coefs_), list(network.intercepts_)
        if len(classes) == 2:  # one logistic output: the same as two of a softmax
            coefficients[-1] = np.hstack([np.zeros_like(coefficients[-1]), coefficients[-1]])
            intercepts[-1] = np.array([0.0, float(intercepts[-1][0])])
        router = cls(
            embedder,
            tuple(str(name) for name in network.classes_),
            tuple(np.asarray(c, np.float64) for c in coefficients),
            tuple(np.asarray(c, np.float64) for c in intercepts),
            trained_on=len(subqueries),
        )
        return router._with_loss(subqueries)

    def with_adapters(self, traces: Iterable[Trace], adapters: Sequence[str]) -> MLRouter:
        """The same layers with a last one for these adapters, fitted anew on their traces; nothing else is trained.

        Raises: DataError (UQL514) where an adapter has no trace.
        """
        need("routers", "routers", "sklearn")
        from sklearn.linear_model import LogisticRegression

        subqueries = scored_subqueries(traces, adapters)
        tried = {name for one in subqueries for name in one.quality}
        missing = [name for name in adapters if name not in tried]
        if missing:
            raise DataError(f"there are no traces of {missing[0]}", code="UQL514", help="uql router collect")
        comparable = _comparable(subqueries)
        best, weights = labels(comparable)
        names = tuple(sorted(set(best)))
        inner = self._hidden(_features(self.embedder, comparable))
        if len(names) == 1:
            last, offset = np.zeros((inner.shape[1], 1)), np.zeros(1)
        else:
            head = LogisticRegression(C=HEAD_C, max_iter=2_000).fit(inner, best, sample_weight=weights)
            last, offset = np.asarray(head.coef_.T, np.float64), np.asarray(head.intercept_, np.float64)
            if len(names) == 2:
                last, offset = np.hstack([np.zeros_like(last), last]), np.array([0.0, float(offset[0])])
        router = replace(
            self,
            adapters=names,
            coefficients=(*self.coefficients[:-1], last),
            intercepts=(*self.intercepts[:-1], offset),
            trained_on=len(comparable),
        )
        return router._with_loss(comparable)

    def _with_loss(self, subqueries: Sequence[ScoredSubquery]) -> MLRouter:
        best, weights = labels(subqueries)
        chosen = np.array([self.adapters.index(name) for name in best], np.int64)
        probabilities = self._probabilities(_features(self.embedder, subqueries))
        return replace(self, loss=cross_entropy(probabilities, chosen, weights))

    # --------------------------------------------------------------------------------------------------------- ranking
    def rank(
        self, subquery: str, operator: Operator, adapters: Sequence[str], modality: str | None = None
    ) -> list[str]:
        """As in `Router`, the likeliest to be best first.

        Args:
            modality: of the sources; None: that of the operator.
        """
        probabilities = self.probabilities(subquery, operator, modality)
        return sorted(adapters, key=lambda name: -probabilities.get(name, -1.0))

    def probabilities(self, subquery: str, operator: Operator, modality: str | None = None) -> dict[str, float]:
        """Of each adapter that it knows, that it is the best.

        Args:
            modality: of the sources; None: that of the operator.
        Returns: by adapter, summing to 1.
        """
        one = ScoredSubquery(subquery, operator.value, modality or modality_of(operator.value), {})
        row = self._probabilities(_features(self.embedder, [one]))[0]
        return {name: float(p) for name, p in zip(self.adapters, row, strict=True)}

    def _hidden(self, features: Matrix) -> Matrix:
        """(n, d) → (n, h): what the last layer sees."""
        for matrix, offset in zip(self.coefficients[:-1], self.intercepts[:-1], strict=True):
            features = np.maximum(features @ matrix + offset, 0.0)
        return features

    def _probabilities(self, features: Matrix) -> Matrix:
        scores = self._hidden(features) @ self.coefficients[-1] + self.intercepts[-1]
        scores = np.exp(scores - scores.max(axis=1, keepdims=True))
        softmax: Matrix = scores / scores.sum(axis=1, keepdims=True)
        return softmax

    # ------------------------------------------------------------------------------------------------------------ files
    def save(self, path: str | Path) -> None:
        """Writes PATH.json, which describes it, and PATH.npz beside it, which holds the layers. No code is in either."""
        place = Path(path)
        arrays = {f"c{i}": c for i, c in enumerate(self.coefficients)} | {
            f"b{i}": b for i, b in enumerate(self.intercepts)
        }
        np.savez(place.with_suffix(".npz"), **arrays)  # type: ignore[arg-type]
        description = {
            "kind": "ml",
            "embedder": self.embedder.name,
            "adapters": self.adapters,
            "layers": len(self.coefficients),
            "loss": self.loss,
            "trained_on": self.trained_on,
        }
        place.with_suffix(".json").write_text(json.dumps(description, indent=1), encoding="utf-8")

    @classmethod
    def load(cls, path: str | Path, state: dict[str, Any], embedder: Embedder) -> MLRouter:
        """From the files of `save`.

        Args:
            path: of the JSON file; the layers lie beside it as .npz.
            state: the content of the JSON file.
            embedder: must be the one that it was trained with.
        Raises: ConfigError (UQL643) where another embedder made it; DataError (UQL514) where the layers do not fit.
        """
        if state.get("embedder") != embedder.name:
            raise ConfigError(
                f"the router was trained with the embedder {state.get('embedder')}, not {embedder.name}",
                code="UQL643",
                help="set that embedder, or train it again: uql router train",
            )
        try:
            with np.load(Path(path).with_suffix(".npz"), allow_pickle=False) as arrays:
                layers = range(int(state["layers"]))
                coefficients = tuple(np.asarray(arrays[f"c{i}"], np.float64) for i in layers)
                intercepts = tuple(np.asarray(arrays[f"b{i}"], np.float64) for i in layers)
            adapters = tuple(str(name) for name in state["adapters"])
        except (OSError, KeyError, ValueError, TypeError) as error:
            raise DataError(f"the router's layers beside {path} cannot be read: {error}", code="UQL514") from error
        fit = [c.shape[1] == b.shape[0] for c, b in zip(coefficients, intercepts, strict=True)]
        if not coefficients or not all(fit) or coefficients[-1].shape[1] != len(adapters):
            raise DataError(f"the router's layers beside {path} do not fit together", code="UQL514")
        loss = state.get("loss")
        return cls(
            embedder,
            adapters,
            coefficients,
            intercepts,
            float(loss) if isinstance(loss, int | float) else float("nan"),
            int(state.get("trained_on", 0)),
        )


def _comparable(subqueries: Sequence[ScoredSubquery]) -> list[ScoredSubquery]:
    """The sub-queries on which there was a choice."""
    comparable = [one for one in subqueries if len(one.quality) > 1]
    if not comparable:
        raise DataError(
            "the traces hold no sub-query that two adapters were tried on", code="UQL514", help="uql router collect"
        )
    return comparable


def _features(embedder: Embedder, subqueries: Sequence[ScoredSubquery]) -> Matrix:
    """(n, d + 3 + 3): the vector of the sub-query, its operator and its modality."""
    one_hot = np.zeros((len(subqueries), len(OPERATORS) + len(MODALITIES)), np.float64)
    for i, one in enumerate(subqueries):
        one_hot[i, OPERATORS.index(one.operator)] = 1.0
        one_hot[i, len(OPERATORS) + MODALITIES.index(one.modality)] = 1.0
    return np.hstack([np.asarray(embedder.embed([one.subquery for one in subqueries]), np.float64), one_hot])


def _fit_weighted(network: Any, features: Matrix, best: Sequence[str], weights: Matrix) -> None:
    """Fits with sample weights, converged or not."""
    from sklearn.exceptions import ConvergenceWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        network.fit(features, list(best), sample_weight=weights)


def _random_layers(width: int, seed: int) -> tuple[tuple[Matrix, ...], tuple[Matrix, ...]]:
    """Layers before any training, with a last one of a single output."""
    rng = np.random.default_rng(seed)
    sizes = (width, *HIDDEN, 1)
    pairs = list(pairwise(sizes))
    return (
        tuple(rng.normal(0.0, np.sqrt(2.0 / a), (a, b)) for a, b in pairs),
        tuple(np.zeros(b) for _, b in pairs),
    )
