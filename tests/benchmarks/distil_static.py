"""Make a static table of bge-small-en-v1.5: `python tests/benchmarks/distil_static.py FOLDER`.

Each token of the vocabulary goes through the model alone; the mean of its states is projected
on the first principal components, weighted by how seldom it is, and stored in 8 bits. That is
the recipe of Model2Vec (https://github.com/MinishLab/model2vec), and the folder is laid out as
its are. The model's licence, MIT, holds for the table too. It takes a few minutes.
"""

from __future__ import annotations

import argparse
import json
import struct
from pathlib import Path

import numpy as np

from locus_memory._internal.providers.drivers import require
from locus_memory.retrieval.embedders.models.files import find_model

MODEL = "bge-small-en-v1.5"
FIRST_WORD = 1996
"""BERT's vocabulary: special tokens, then characters, then words from the most frequent on."""

UNUSED = 999
SMOOTHING = 1e-5


def token_states(files) -> np.ndarray:
    """Return the mean state of each token of the vocabulary, shape `(tokens, hidden)`."""
    runtime = require("onnxruntime", "local")
    session = runtime.InferenceSession(str(files.model), providers=["CPUExecutionProvider"])
    vocabulary = json.loads(files.tokenizer.read_text(encoding="utf-8"))["model"]["vocab"]
    first, last = vocabulary["[CLS]"], vocabulary["[SEP]"]
    states = []
    for token in range(len(vocabulary)):
        ids = np.array([[first, token, last]], dtype=np.int64)
        inputs = {"input_ids": ids, "attention_mask": ids * 0 + 1, "token_type_ids": ids * 0}
        states.append(session.run(None, inputs)[0][0].mean(axis=0))
    return np.stack(states)


def distil(states: np.ndarray, dimensions: int) -> np.ndarray:
    """Return the table, shape `(tokens, dimensions)`, as integers of 8 bits."""
    centred = states - states.mean(axis=0)
    _, vectors = np.linalg.eigh(centred.T @ centred)
    table = centred @ vectors[:, ::-1][:, :dimensions]
    rank = np.maximum(1, np.arange(len(states)) - FIRST_WORD + 1)
    share = (1 / rank) / (1 / rank).sum()
    weights = SMOOTHING / (SMOOTHING + share)
    weights[:UNUSED] = 0
    table *= weights[:, None]
    return np.round(table / np.abs(table).max() * 127).astype(np.int8)


def write(folder: Path, table: np.ndarray, tokenizer: Path) -> None:
    """Write the table as a safetensors file, and the tokenizer beside it."""
    folder.mkdir(parents=True, exist_ok=True)
    entry = {"dtype": "I8", "shape": list(table.shape), "data_offsets": [0, table.nbytes]}
    header = json.dumps({"embeddings": entry}).encode()
    header += b" " * (-len(header) % 8)
    content = struct.pack("<Q", len(header)) + header + table.tobytes()
    (folder / "model.safetensors").write_bytes(content)
    (folder / "tokenizer.json").write_bytes(tokenizer.read_bytes())
    (folder / "config.json").write_text('{"model_type": "model2vec", "normalize": true}\n')


def main() -> None:
    """Make the table that the arguments ask for."""
    parser = argparse.ArgumentParser(description="Make a static table of bge-small-en-v1.5.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--dimensions", type=int, default=128)
    parser.add_argument("--states", type=Path, help="Keep the tokens' states in this .npy file.")
    arguments = parser.parse_args()
    files = find_model(MODEL)
    if files is None:
        parser.error(f"{MODEL} is not here: run locus-memory models fetch local")
    if arguments.states and arguments.states.exists():
        states = np.load(arguments.states)
    else:
        states = token_states(files)
        if arguments.states:
            np.save(arguments.states, states)
    write(arguments.folder, distil(states, arguments.dimensions), files.tokenizer)


if __name__ == "__main__":
    main()
