"""Calls of the models of a run: bounded, repeated, counted, priced, and kept."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final

import orjson

from locus_memory.chat.asking import ask
from locus_memory.chat.usage import counts_in
from locus_memory.conversation.tokens import count_tokens, expected_tokens
from locus_memory.errors import ModelAnswerError, ModelUnavailableError, VersionConflictError
from locus_memory.evaluation.journal import Used
from locus_memory.evaluation.questions.costs import Price, Purse, PurseEmptyError
from locus_memory.messages import Message
from locus_memory.store.base import BaseStore

__all__ = ["AskedModel", "Counted"]

_CALLS: Final = ("calls",)
"""The namespace of the calls that are kept."""

_ATTEMPTS: Final = 6
_LONGEST_ANSWER: Final = 1_000_000
"""Characters: no answer of a model that answers, extracts or judges has more."""
_LONGEST_WAIT: Final = 60.0
_NONE: Final = Used(prompt_tokens=0, completion_tokens=0, calls=0, cost=0.0)
_SENT: Final = {"role", "content", "tool_calls", "tool_call_id", "name"}


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedModel:
    """A model of a run.

    An answer is kept before it is used: the same model is never asked the same again, and what it
    took is what it took the first time.

    Attributes:
        name: The string that names it.
        model: The chat model.
        calls: The store that keeps the answers.
        slots: How many calls may go on at once, shared by all models of a run.
        purse: What may be spent, likewise.
        price: Its price; `None`: it is not known.
        sleep: Waits for a number of seconds.
    """

    name: str
    model: Any
    calls: BaseStore
    slots: asyncio.Semaphore
    purse: Purse
    price: Price | None = None
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep

    async def answer(self, messages: Sequence[Message]) -> tuple[Message, Used]:
        """Return the answer to a conversation, and what it took.

        A model that is unavailable, such as one that limits its rate, is asked again up to five
        times, after a random wait below a bound that doubles. The clients of the models wait
        before that as long as an endpoint tells them.

        Raises:
            PurseEmptyError: Nothing more may be spent.
            ModelError: The model failed, after its retries if it was unavailable.
        """
        key = self._key(messages)
        async with self.slots:
            kept: Any = await self.calls.get(_CALLS, key)
            if kept is None:
                made = await self._asked(messages)
                # Of two that ask the same at once, both get the answer of the first.
                with suppress(VersionConflictError):
                    await self.calls.put(_CALLS, key, made, if_version=0, text="")
                # One of them may have forgotten it meanwhile.
                kept = await self.calls.get(_CALLS, key) or made
        return Message.model_validate(kept["answer"]), self._priced(Used(**kept["used"]))

    async def forget(self, messages: Sequence[Message]) -> None:
        """Forget the answer to a conversation, which is of no use: the next call asks again."""
        await self.calls.delete(_CALLS, self._key(messages))

    def _key(self, messages: Sequence[Message]) -> str:
        sent = [each.model_dump(mode="json", include=_SENT) for each in messages]
        return sha256(orjson.dumps([self.name, sent])).hexdigest()

    async def _asked(self, messages: Sequence[Message]) -> dict[str, Any]:
        """Ask the model until it answers, and return the document that is kept."""
        # It takes 40 ms to import.
        from tenacity import (  # noqa: PLC0415
            AsyncRetrying,
            retry_if_exception_type,
            stop_after_attempt,
            wait_random_exponential,
        )

        retrying = AsyncRetrying(
            stop=stop_after_attempt(_ATTEMPTS),
            wait=wait_random_exponential(max=_LONGEST_WAIT),
            retry=retry_if_exception_type(ModelUnavailableError),
            sleep=self.sleep,
            reraise=True,
        )
        return await retrying(self._asked_once, messages)

    async def _asked_once(self, messages: Sequence[Message]) -> dict[str, Any]:
        self.purse.check()
        start = time.perf_counter()
        answer = await ask(self.model, messages)
        used = self.spent(messages, answer, time.perf_counter() - start)
        length = len(answer.content or "")
        if length > _LONGEST_ANSWER:
            raise ModelAnswerError(f"the model answers with {length:,} characters")
        told = answer.model_dump(mode="json", exclude={"metadata"})
        # The price may be another one, or known, when it is read.
        return {"answer": told, "used": used.model_dump(exclude={"cost"})}

    def spent(self, messages: Sequence[Message], answer: Message, seconds: float) -> Used:
        """Return what a call took, and take it from the purse.

        Args:
            messages: The prompt.
            answer: The answer, with the `usage` in its metadata if the model reports it.
            seconds: How long it took.
        """
        told = counts_in(answer)
        counts = told.prompt_tokens, told.completion_tokens
        if not told.total_tokens:
            counts = count_tokens(messages, expected_tokens), expected_tokens(answer.content or "")
        used = Used(
            prompt_tokens=counts[0],
            completion_tokens=counts[1],
            cached_tokens=min(told.cached_tokens, told.prompt_tokens),
            counted=not told.total_tokens,
            seconds=seconds,
        )
        used = self._priced(used)
        self.purse.spent += used.cost or 0.0
        return used

    def _priced(self, used: Used) -> Used:
        cost = None if self.price is None else self.price.cost(used)
        return used.model_copy(update={"cost": cost})


@dataclass(slots=True)
class Counted:
    """A chat model that counts what one step of a run takes.

    Attributes:
        asked: The model.
        used: What its calls took.
        error: The error of the last call that failed; it may be handled by its caller.
    """

    asked: AskedModel
    used: Used = _NONE
    error: Exception | None = None

    @property
    def name(self) -> str:
        """The string that names the model."""
        return self.asked.name

    @property
    def follows_instructions(self) -> bool:
        """Whether the model follows instructions; one by rules makes no memories."""
        return bool(getattr(self.asked.model, "follows_instructions", True))

    def check(self) -> None:
        """Check that no call failed for want of the model or of money, even if that was handled.

        All other errors are the model's own failing, and its caller goes on.

        Raises:
            PurseEmptyError: Nothing more may be spent.
            ModelUnavailableError: The model was unavailable.
        """
        if isinstance(self.error, PurseEmptyError | ModelUnavailableError):
            raise self.error

    async def __call__(self, messages: Sequence[Message], /) -> Message:
        """Return the answer to a conversation."""
        try:
            answer, used = await self.asked.answer(messages)
        except Exception as error:
            self.error = error
            raise
        self.used += used
        return answer
