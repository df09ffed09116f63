"""A transformer in ONNX form: it runs one text at a time, in its own thread."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, TypeVar

from typing_extensions import override

from locus_memory._internal.providers.drivers import require
from locus_memory._internal.resource import Resource
from locus_memory.errors import ConfigurationError
from locus_memory.retrieval.embedders.models.files import ModelFiles, files_of

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

__all__ = ["EXTRA", "Input", "LocalModel", "Transformer", "check_runtime"]

EXTRA: Final = "local"
"""The extra that installs onnxruntime and tokenizers."""

Input = str | tuple[str, str]
"""A text, or a pair of texts that the model reads together."""

_STRIDE: Final = 8
"""How many inputs of one call run before those of other calls."""

_MOST_THREADS: Final = 4
_ERRORS_ONLY: Final = 3

_Result = TypeVar("_Result")
_Reader = Callable[["npt.NDArray[np.float32]", "npt.NDArray[np.int64]"], _Result]


def check_runtime(needed_by: str) -> None:
    """Import the packages that run a model.

    Raises:
        MissingDriverError: onnxruntime or tokenizers is not installed.
    """
    require("onnxruntime", EXTRA, needed_by=needed_by)
    require("tokenizers", EXTRA, needed_by=needed_by)


class Transformer(Resource):
    """A transformer and its tokenizer, loaded on first use.

    Each input runs separately. A quantised model measures the range of a whole batch, so in a batch
    the vector of a text would depend on its neighbours (by up to 0.01 in the cosine, measured), and
    a batch saves only a fifth of the time. One thread runs a few inputs of each call in turn, so a
    query never waits for a long list of documents, and a cancelled call ends soon.

    Load it after a process has forked: a child does not have its parent's threads.

    Args:
        files: The files of the model.
        max_tokens: Longer inputs are cut.
        threads: How many cores one run uses; by default all, up to 4.
    """

    def __init__(self, files: ModelFiles, *, max_tokens: int, threads: int | None = None) -> None:
        self._files = files
        self._max_tokens = max_tokens
        self._threads = threads or min(os.cpu_count() or 1, _MOST_THREADS)
        self._lock = Lock()
        self._executor: ThreadPoolExecutor | None = None
        self._loaded: tuple[Any, Any] | None = None

    @override
    async def open(self) -> None:
        """Load the model now, rather than on first use."""
        await self.run([], lambda output, _ids: output)

    @override
    async def close(self) -> None:
        """Release the model and its thread; the next use loads it again."""
        with self._lock:
            executor, self._executor, self._loaded = self._executor, None, None
        if executor is not None:
            executor.shutdown(wait=False)

    async def run(self, inputs: Sequence[Input], read: _Reader[_Result]) -> list[_Result]:
        """Return the result of `read` for the model's first output, for each input in order.

        Args:
            inputs: The inputs of the model; each runs separately.
            read: Called in the thread with the output for one input, such as `(tokens, hidden)`,
                and its token ids of shape `(tokens,)`.

        Raises:
            ConfigurationError: The files hold no model that can be run.
        """
        loop = asyncio.get_running_loop()
        results: list[_Result] = []
        for start in range(0, max(1, len(inputs)), _STRIDE):
            part = inputs[start : start + _STRIDE]
            results += await loop.run_in_executor(self._thread(), self._run, part, read)
        return results

    def _thread(self) -> ThreadPoolExecutor:
        with self._lock:
            if self._executor is None:
                self._executor = ThreadPoolExecutor(1, "locus-memory-model")
            return self._executor

    def _run(self, inputs: Sequence[Input], read: _Reader[_Result]) -> list[_Result]:
        session, tokenizer = self._load()
        return [self._one(session, tokenizer, each, read) for each in inputs]

    def _one(self, session: Any, tokenizer: Any, one: Input, read: _Reader[_Result]) -> _Result:
        import numpy as np  # noqa: PLC0415 - the import of the package must not load numpy

        encoding = tokenizer.encode(*one) if isinstance(one, tuple) else tokenizer.encode(one)
        ids = np.asarray([encoding.ids], dtype=np.int64)
        known = {
            "input_ids": ids,
            "attention_mask": np.ones_like(ids),
            "token_type_ids": np.asarray([encoding.type_ids], dtype=np.int64),
        }
        wanted = {each.name: known[each.name] for each in session.get_inputs()}
        return read(session.run(None, wanted)[0][0], ids[0])

    def _load(self) -> tuple[Any, Any]:
        if self._loaded is None:
            try:
                tokenizer = read_tokenizer(self._files.tokenizer, self._max_tokens)
                self._loaded = self._make_session(), tokenizer
            # Neither library has its own error class to catch.
            except Exception as error:
                raise ConfigurationError(
                    f"{self._files.folder} holds no model that can be run: {error}"
                ) from error
        return self._loaded

    def _make_session(self) -> Any:
        runtime = require("onnxruntime", EXTRA)
        options = runtime.SessionOptions()
        options.intra_op_num_threads = self._threads
        options.inter_op_num_threads = 1
        options.log_severity_level = _ERRORS_ONLY
        # Threads that wait for the next run must not keep a core busy.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        return runtime.InferenceSession(
            str(self._files.model), options, providers=["CPUExecutionProvider"]
        )


def read_tokenizer(path: Path, max_tokens: int) -> Any:
    """Return the tokenizer of a `tokenizer.json`, which cuts longer texts.

    Raises:
        MissingDriverError: tokenizers is not installed.
    """
    tokenizer = require("tokenizers", EXTRA).Tokenizer.from_file(str(path))
    tokenizer.no_padding()
    tokenizer.enable_truncation(max_tokens)
    return tokenizer


class LocalModel(Resource):
    """A model that runs a transformer of this machine.

    Args:
        default: The known model whose files are used without a folder.
        folder: The folder of the files, or `None`.
        name: The name of the model; by default that of the folder.
        max_tokens: Longer inputs are cut.
        threads: How many cores one run uses; by default all, up to 4.

    Attributes:
        name: The name of the model.

    Raises:
        ConfigurationError: The model does not exist.
        MissingDriverError: onnxruntime or tokenizers is not installed.
    """

    def __init__(
        self,
        default: str,
        folder: str | Path | None,
        name: str | None,
        *,
        max_tokens: int,
        threads: int | None,
    ) -> None:
        self._files = files_of(default, folder)
        check_runtime(type(self).__name__)
        self.name = name or (default if folder is None else self._files.folder.resolve().name)
        self._model = Transformer(self._files, max_tokens=max_tokens, threads=threads)

    @override
    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"

    @override
    async def open(self) -> None:
        """Load the model now, rather than on first use.

        Raises:
            ConfigurationError: The files hold no model that can be run.
        """
        await self._model.open()

    @override
    async def close(self) -> None:
        """Release the model; the next use loads it again."""
        await self._model.close()
