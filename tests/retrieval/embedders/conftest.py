from __future__ import annotations

import json
import struct

import numpy as np
import pytest

from locus_memory.retrieval.embedders.models.catalogue import CARRIED
from locus_memory.retrieval.embedders.models.files import find_model

WORDS = ["[PAD]", "[UNK]", "the", "cat", "dog", "##s", "play", "##ing", "!", "cafe", "中"]


@pytest.fixture
def real_model():
    """Skip the test where there is no model, or nothing to run it."""
    pytest.importorskip("onnxruntime")
    pytest.importorskip("tokenizers")
    if not all(map(find_model, CARRIED)):
        pytest.skip("the models are not here: locus-memory models fetch all")


@pytest.fixture
def write_table(tmp_path):
    """Write a static table in the layout of Model2Vec and return its folder."""

    def write(tensors, words=WORDS):
        folder = tmp_path / "tiny-table"
        folder.mkdir(exist_ok=True)
        names = {"float32": "F32", "float16": "F16", "int8": "I8", "int64": "I64"}
        header, body = {}, b""
        for name, array in tensors.items():
            data = np.ascontiguousarray(array).tobytes()
            header[name] = {
                "dtype": names[str(array.dtype)],
                "shape": list(array.shape),
                "data_offsets": [len(body), len(body) + len(data)],
            }
            body += data
        text = json.dumps(header).encode()
        text += b" " * (-len(text) % 8)
        (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + body)
        (folder / "tokenizer.json").write_text(json.dumps(tokenizer_document(words)))
        (folder / "config.json").write_text('{"normalize": true}')
        return folder

    return write


def tokenizer_document(words):
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [],
        "normalizer": {
            "type": "BertNormalizer",
            "clean_text": True,
            "handle_chinese_chars": True,
            "strip_accents": None,
            "lowercase": True,
        },
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": None,
        "decoder": None,
        "model": {
            "type": "WordPiece",
            "unk_token": "[UNK]",
            "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100,
            "vocab": {word: index for index, word in enumerate(words)},
        },
    }


@pytest.fixture
def table(write_table):
    """A table of random vectors."""
    return write_table(
        {"embeddings": np.random.default_rng(7).normal(size=(len(WORDS), 5)).astype(np.float32)}
    )
