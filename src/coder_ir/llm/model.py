"""Asks one model, from the cache where it can, and counts what that costs."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar

from coder_ir.errors import LanguageModelError, MissingExtra
from coder_ir.llm.cache import AnswerCache
from coder_ir.llm.endpoint import Endpoint
from coder_ir.llm.question import Messages, Question, Reply, Unfit, fault, parsed
from coder_ir.llm.trouble import explained, hidden, no_completion
from coder_ir.types import Progress

if TYPE_CHECKING:
    from pydantic import BaseModel

T = TypeVar("T", bound="BaseModel")
R = TypeVar("R")

_SECRET = 8  # characters; a shorter key ("ollama", "EMPTY") is a word that answers may hold
_SHOWN = 400  # characters of an answer that cannot be used
_NO_KEY = "no-key"  # what a server gets where the environment holds none


@dataclass(frozen=True, slots=True)
class Ledger:
    """What the answers cost so far; one from the cache costs nothing."""

    calls: int = 0  # answers a server gave, fit or not
    cached: int = 0  # answers taken from the cache
    retried_answers: int = 0  # calls that followed an answer that did not fit
    prompt_tokens: int = 0
    completion_tokens: int = 0
    dollars: float = 0.0
    seconds: float = 0.0  # waited for calls; those that ran side by side all count

    @property
    def tokens(self) -> int:
        """Sent and received."""
        return self.prompt_tokens + self.completion_tokens

    def __str__(self) -> str:
        return (
            f"{self.calls} calls of the language model, {self.cached} answers from the cache, "
            f"{self.tokens} tokens, {self.dollars:.4f} dollars, {self.seconds:.1f} s"
        )


class LanguageModel:
    """One model; several threads may share it."""

    def __init__(self, endpoint: Endpoint, *, cache: Path | None = None) -> None:
        """Open the client and the cache file; nothing is asked yet."""
        try:
            import openai
            import pydantic  # noqa: F401
        except ImportError as error:
            raise MissingExtra("Asking a language model", extra="llm") from error
        self.endpoint = endpoint
        self._key = endpoint.key()
        self._ledger = Ledger()
        self._lock = threading.Lock()
        self._client: Any = openai.OpenAI(
            api_key=self._key or _NO_KEY,
            base_url=endpoint.base_url,
            timeout=endpoint.timeout,
            max_retries=endpoint.retries,
        )
        self._cache: AnswerCache | None = None
        if cache is not None:
            try:
                self._cache = AnswerCache(cache)
            except BaseException:
                self._client.close()
                raise

    def __repr__(self) -> str:
        return f"LanguageModel({self.endpoint.model!r} at {self.endpoint.base_url})"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the connections and the cache file."""
        self._client.close()
        if self._cache is not None:
            self._cache.close()

    @property
    def ledger(self) -> Ledger:
        """The costs up to now."""
        with self._lock:
            now = self._ledger
        price = self.endpoint.prompt_price, self.endpoint.completion_price
        dollars = (now.prompt_tokens * price[0] + now.completion_tokens * price[1]) / 1_000_000
        return replace(now, dollars=dollars)

    def write(
        self, prompt: str, *, temperature: float = 0.0, sample: int = 0, whole: bool = True
    ) -> str:
        """Plain text that is not empty; each `sample` is kept apart in the cache.

        One that was cut off at `max_tokens` will do where it need not be `whole`.
        """
        question = Question.plain(prompt, temperature=temperature, sample=sample, whole=whole)
        most = self.endpoint.max_tokens if whole else None
        return self._settle(question, lambda reply: fault(reply, max_tokens=most) or reply.text)

    def ask(self, prompt: str, answer: type[T], *, temperature: float = 0.0, sample: int = 0) -> T:
        """An answer that fits the type; each `sample` is kept apart in the cache."""
        question = Question.plain(prompt, temperature=temperature, sample=sample).fitting(answer)
        most = self.endpoint.max_tokens
        return self._settle(question, lambda reply: parsed(reply, answer, max_tokens=most))

    def write_many(
        self, prompts: Sequence[str], *, temperature: float = 0.0, progress: Progress | None = None
    ) -> list[str]:
        """Texts in the order of the prompts; otherwise as `ask_many`."""
        return self._each(
            prompts, lambda prompt: self.write(prompt, temperature=temperature), progress=progress
        )

    def ask_many(
        self,
        prompts: Sequence[str],
        answer: type[T],
        *,
        temperature: float = 0.0,
        progress: Progress | None = None,
    ) -> list[T]:
        """Answers in the order of the prompts; equal prompts are asked once.

        After an error or Ctrl-C no further prompt is sent, the answers under way are waited for,
        and all that arrived are in the cache.
        """
        return self._each(
            prompts,
            lambda prompt: self.ask(prompt, answer, temperature=temperature),
            progress=progress,
        )

    def _each(
        self, prompts: Sequence[str], one: Callable[[str], R], *, progress: Progress | None
    ) -> list[R]:
        times = Counter(prompts)
        with ThreadPoolExecutor(self.endpoint.concurrency) as pool:
            try:
                waiting = {pool.submit(one, prompt): prompt for prompt in times}
                for done in as_completed(waiting):
                    done.result()
                    if progress:
                        progress(times[waiting[done]])
            except BaseException:
                pool.shutdown(cancel_futures=True)
                raise
        answers = {prompt: done.result() for done, prompt in waiting.items()}
        return [answers[prompt] for prompt in prompts]

    def _settle(self, question: Question, read: Callable[[Reply], R | Unfit]) -> R:
        """The kept answer, or one asked for until it fits."""
        key = question.key(self.endpoint)
        kept = None if self._cache is None else self._cache.get(key)
        if kept is not None:
            found = read(kept)
            # A type can have become stricter than its schema tells.
            if not isinstance(found, Unfit):
                self._count(cached=1)
                return found
        messages = question.messages()
        spent: Reply | None = None
        for number in range(self.endpoint.corrections + 1):
            reply = self._call(question, messages, correction=number > 0)
            spent = reply.after(spent)
            found = read(reply)
            if not isinstance(found, Unfit):
                if self._cache is not None:
                    self._cache.put(key, spent)
                return found
            unfit: Unfit = found
            messages = question.messages(reply.text, problem=unfit.problem)
        seen = hidden(f"{unfit.problem}, got {reply.text!r}", self._key)[:_SHOWN]
        raise LanguageModelError(
            f"{self.endpoint.model} gave no answer that can be used, with corrections = {number}: "
            f"{seen}; {unfit.advice}"
        )

    def _call(self, question: Question, messages: Messages, *, correction: bool) -> Reply:
        """One answer of the server, to be paid for."""
        import openai

        started = time.monotonic()
        try:
            got = self._client.chat.completions.create(
                model=self.endpoint.model,
                messages=messages,
                temperature=question.temperature,
                max_tokens=self.endpoint.max_tokens,
                **question.response_format(self.endpoint.structured),
            )
        except (openai.OpenAIError, ValueError) as error:  # ValueError: what came is not JSON
            trouble = explained(error, self.endpoint, key=self._key)
        else:
            reply = self._reply(got, time.monotonic() - started)
            self._count(reply, calls=1, retried_answers=int(correction))
            return reply
        # Not in the handler: the client's error holds the request, and with it the key.
        raise trouble from None

    def _reply(self, got: Any, seconds: float) -> Reply:
        """What the server sent, however much of it is missing."""
        if not hasattr(got, "choices"):
            raise no_completion(self.endpoint, str(got), key=self._key)
        first = got.choices[0] if got.choices else None
        content = getattr(getattr(first, "message", None), "content", None)
        usage = getattr(got, "usage", None)
        # JSON may hold half of a character, which nothing else could write down.
        whole = (content or "").encode(errors="replace").decode()
        return Reply(
            hidden(whole, self._key if len(self._key) >= _SECRET else ""),
            finish=getattr(first, "finish_reason", None) or "none",
            prompt_tokens=getattr(usage, "prompt_tokens", None) or 0,
            completion_tokens=getattr(usage, "completion_tokens", None) or 0,
            seconds=seconds,
        )

    def _count(
        self,
        reply: Reply | None = None,
        *,
        calls: int = 0,
        cached: int = 0,
        retried_answers: int = 0,
    ) -> None:
        new = reply or Reply("")
        with self._lock:
            old = self._ledger
            self._ledger = replace(
                old,
                calls=old.calls + calls,
                cached=old.cached + cached,
                retried_answers=old.retried_answers + retried_answers,
                prompt_tokens=old.prompt_tokens + new.prompt_tokens,
                completion_tokens=old.completion_tokens + new.completion_tokens,
                seconds=old.seconds + new.seconds,
            )
