"""A logistic head on sentence vectors and words: which intent, or conversation. Trained in seconds, then kept."""

from __future__ import annotations

import hashlib
import os
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from interlock.answers.intents.features import as_rows, vocabulary
from interlock.config import cache_folder
from interlock.embedding import Embedder

_STEPS = 250
_RATE = 0.4
_DECAY = 3e-3
_VECTOR, _WORDS = 12.0, 10.0  # scaled up: both have length one, and the decay keeps weights small
_FORM = 2  # part of the name in the cache: raise it when inputs or training change in another way


class IntentHead:
    """One column of weights for each class."""

    def __init__(self, embedder: Embedder, labels: Sequence[str], words: Sequence[str], weights: Any) -> None:
        self._embedder = embedder
        self.labels = tuple(labels)
        self.words = {word: place for place, word in enumerate(words)}
        self._weights = weights

    def probabilities(self, text: str) -> dict[str, float]:
        """How likely the text belongs to each class."""
        import numpy as np

        found = _softmax(np, inputs(np, self._embedder, [text], self.words) @ self._weights)[0]
        return {label: float(p) for label, p in zip(self.labels, found, strict=True)}


def inputs(np: Any, embedder: Embedder, texts: Sequence[str], words: dict[str, int]) -> Any:
    """What the head sees of texts: vector, words, and a constant."""
    ones = np.ones((len(texts), 1), dtype=np.float32)
    return np.hstack([embedder.embed(texts) * _VECTOR, as_rows(np, texts, words) * _WORDS, ones])


def train(embedder: Embedder, examples: Mapping[str, Sequence[str]]) -> IntentHead:
    """A head for these classes; what was trained before from the same examples is taken from the cache."""
    import numpy as np

    labels, kept = tuple(examples), _cache(embedder.name, examples)
    found = _read_kept(np, kept)
    # 385: the 384 numbers of a vector and the constant. A file of another shape is trained anew, not believed.
    if found is not None and found[1].shape == (385 + len(found[0]), len(labels)):
        return IntentHead(embedder, labels, *found)
    texts = [text for label in labels for text in examples[label]]
    words = vocabulary(texts)
    seen = inputs(np, embedder, texts, {word: place for place, word in enumerate(words)})
    wanted = np.array([n for n, label in enumerate(labels) for _ in examples[label]])
    weights = _descend(np, seen, wanted, len(labels))
    _keep(np, kept, words, weights)
    return IntentHead(embedder, labels, words, weights)


def _descend(np: Any, seen: Any, wanted: Any, classes: int) -> Any:
    """Full-batch gradient descent on the cross entropy, every class weighing the same however many examples it has."""
    truth = np.eye(classes, dtype=np.float32)[wanted]
    share = 1.0 / (classes * truth.sum(axis=0)[wanted])
    # From zero and over all examples at once: the same examples give the same head, without a seed.
    weights = np.zeros((seen.shape[1], classes), dtype=np.float32)
    speed = np.zeros_like(weights)
    for _ in range(_STEPS):
        slope = seen.T @ ((_softmax(np, seen @ weights) - truth) * share[:, None]) + _DECAY * weights
        speed = 0.9 * speed - _RATE * slope
        weights += speed
    return weights


def _softmax(np: Any, scores: Any) -> Any:
    # Less the highest, which changes nothing in the result: exp of a large score would be infinite.
    raised = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return raised / raised.sum(axis=-1, keepdims=True)


def _cache(model: str, examples: Mapping[str, Sequence[str]]) -> Path:
    settings = (_FORM, _STEPS, _RATE, _DECAY, _VECTOR, _WORDS)
    digest = hashlib.sha256(msgspec.json.encode((model, settings, list(examples.items())))).hexdigest()[:32]
    return cache_folder() / f"intents-{digest}.npz"


def _read_kept(np: Any, path: Path) -> tuple[tuple[str, ...], Any] | None:
    """What was trained before; None if it is not there or cannot be read."""
    try:
        with np.load(path, allow_pickle=False) as held:  # a pickle from a cache folder would be code that is run
            return tuple(str(word) for word in held["words"]), held["weights"]
    except (OSError, ValueError, KeyError, zipfile.BadZipFile):
        return None


def _keep(np: Any, path: Path, words: Sequence[str], weights: Any) -> None:
    """Written beside and moved, so that nobody reads half of it; a folder that cannot be written costs only time."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        payload = path.with_name(f"{path.stem}.{os.getpid()}.npz")
        np.savez(payload, words=np.array(words), weights=weights)
        payload.replace(path)
    except OSError:
        return
