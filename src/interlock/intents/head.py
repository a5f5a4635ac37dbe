"""A logistic head on sentence vectors: which intent, or conversation. Trained from examples in a second, then kept."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from interlock.intents.embedding import Embedder

_STEPS = 300
_RATE = 4.0
_DECAY = 2e-4
_SCALE = 12.0


class Head:
    """One row of weights for each class."""

    def __init__(self, embedder: Embedder, labels: Sequence[str], weights: Any) -> None:
        self._embedder = embedder
        self.labels = tuple(labels)
        self._weights = weights

    def probabilities(self, text: str) -> dict[str, float]:
        """How likely the text belongs to each class."""
        import numpy as np

        vector = np.append(self._embedder.embed([text])[0] * _SCALE, 1.0)
        found = _softmax(vector @ self._weights)
        return {label: float(p) for label, p in zip(self.labels, found, strict=True)}


def train(embedder: Embedder, examples: Mapping[str, Sequence[str]]) -> Head:
    """A head for these classes; what was trained before from the same examples is taken from the cache."""
    import numpy as np

    labels = tuple(examples)
    texts = [text for label in labels for text in examples[label]]
    kept = _cache(embedder.name, examples)
    if kept is not None and kept.exists():
        try:
            weights = np.load(kept, allow_pickle=False)
            if weights.shape == (385, len(labels)):
                return Head(embedder, labels, weights)
        except (OSError, ValueError):
            pass  # made anew below
    vectors = np.hstack([embedder.embed(texts) * _SCALE, np.ones((len(texts), 1), dtype=np.float32)])
    wanted = np.array([n for n, label in enumerate(labels) for _ in examples[label]])
    weights = _descend(np, vectors, wanted, len(labels))
    if kept is not None:
        _keep(np, kept, weights)
    return Head(embedder, labels, weights)


def _descend(np: Any, vectors: Any, wanted: Any, classes: int) -> Any:
    """Full-batch gradient descent on the cross entropy, every class weighing the same however many examples it has."""
    truth = np.eye(classes, dtype=np.float32)[wanted]
    share = 1.0 / (classes * truth.sum(axis=0)[wanted])
    weights = np.zeros((vectors.shape[1], classes), dtype=np.float32)
    speed = np.zeros_like(weights)
    for _ in range(_STEPS):
        slope = vectors.T @ ((_softmax(vectors @ weights) - truth) * share[:, None]) + _DECAY * weights
        speed = 0.9 * speed - _RATE * 0.1 * slope
        weights += speed
    return weights


def _softmax(scores: Any) -> Any:
    import numpy as np

    raised = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return raised / raised.sum(axis=-1, keepdims=True)


def _cache(model: str, examples: Mapping[str, Sequence[str]]) -> Path | None:
    settings = (_STEPS, _RATE, _DECAY, _SCALE)
    digest = hashlib.sha256(msgspec.json.encode((model, settings, list(examples.items())))).hexdigest()[:32]
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return Path(home) / "interlock" / f"intents-{digest}.npy"


def _keep(np: Any, path: Path, weights: Any) -> None:
    """Written beside and moved, so that nobody reads half of it; a folder that cannot be written costs only time."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        beside = path.with_name(f"{path.stem}.{os.getpid()}.npy")
        np.save(beside, weights, allow_pickle=False)
        beside.replace(path)
    except OSError:
        return
