"""Decompositions by a language model."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from coder_ir.baselines.decompose import Decomposer, Intents
from coder_ir.baselines.hyde import PASSAGES
from coder_ir.errors import MissingExtra
from coder_ir.types import Progress

if TYPE_CHECKING:
    from pydantic import BaseModel

    from coder_ir.llm import LanguageModel

_INTENTS = """\
A search query may say what it wants and what it does not want. Split this one.
positive: one to three short phrases for what the searcher wants to read, without the words that \
rule something out.
negative: short phrases for what the searcher does not want, or, where the query claims or asks \
something in one direction, the opposite claim. Empty where there is nothing.

Query: {text}"""
_PASSAGE = """\
Write a passage of two or three sentences, as an article would have it, that satisfies this search \
query. Keep to what the query wants and leave out what it rules out. Answer with the passage alone.

Query: {text}"""
_FORMULA = """\
Translate this {kind} into first-order logic with the signs ∀ ∃ ∧ ∨ ¬ → and predicates made of \
English words. Negate what it denies or rules out. Answer with the formula alone, on one line.

Example: A hotel without a bar. becomes ∃x (Hotel(x) ∧ ¬Bar(x))

{text}"""
R = TypeVar("R")
_READ = 2000  # characters of a document


class Asked:
    """A language model, asked in words."""

    def __init__(
        self,
        model: "LanguageModel",
        *,
        temperature: float = 0.7,
        documents: Decomposer | None = None,
    ) -> None:
        """Passages are drawn at the temperature; everything else at 0.

        `documents` reads documents in the model's place, for NS-IR has many read.
        """
        self.name = model.endpoint.model
        self._documents = documents
        self._model = model
        self._temperature = temperature
        self._split = _schema()
        self._known: dict[tuple[str, str], Any] = {}

    def prefetch(
        self, queries: Sequence[str], *, system: str, progress: Progress | None = None
    ) -> None:
        """Ask ahead, several at once, what a system will ask; after an error nothing more is."""
        reads: dict[str, Callable[[str], object]] = {
            "hyde": lambda query: self.passages(query, PASSAGES),
            "deo": self.intents,
            "ns-ir": self.formula,
        }
        for _ in self._each(reads[system], list(dict.fromkeys(queries))):
            if progress:
                progress(1)

    def intents(self, query: str) -> Intents:
        """The model's phrases; the query itself where it names nothing that is wanted."""
        return self._once("intents", query, self._intents)

    def passages(self, query: str, n: int) -> list[str]:
        """As many draws as asked for."""
        return self._once(f"{n} passages", query, partial(self._passages, n=n))

    def formula(self, query: str) -> str:
        """As the model writes it."""
        return self._once("formula", query, partial(self._formula, kind="search query"))

    def formulas(self, documents: Sequence[str]) -> list[str]:
        """One call a document, several at once, each read up to its two thousandth character."""
        if self._documents:
            return self._documents.formulas(documents)
        read = partial(self._formula, kind="passage")
        texts = list(dict.fromkeys(documents))
        found = self._each(lambda text: self._once("document", text, read), texts)
        known = dict(zip(texts, found, strict=True))
        return [known[text] for text in documents]

    def _each(self, read: Callable[[str], R], texts: Sequence[str]) -> Iterator[R]:
        """Answers in order; after an error nothing more is asked."""
        with ThreadPoolExecutor(self._model.endpoint.concurrency) as pool:
            try:
                yield from pool.map(read, texts)
            except BaseException:
                pool.shutdown(cancel_futures=True)
                raise

    def _once(self, what: str, text: str, read: Callable[[str], R]) -> R:
        """What was asked before, or is asked now."""
        if (what, text) not in self._known:
            self._known[what, text] = read(text)
        found: R = self._known[what, text]
        return found

    def _intents(self, query: str) -> Intents:
        found: Any = self._model.ask(_INTENTS.format(text=query), self._split)
        positive = tuple(filter(None, map(str.strip, found.positive)))
        return Intents(positive or (query,), tuple(filter(None, map(str.strip, found.negative))))

    def _passages(self, query: str, *, n: int) -> list[str]:
        prompt, warm = _PASSAGE.format(text=query), self._temperature
        return [
            self._model.write(prompt, temperature=warm, sample=sample, whole=False)
            for sample in range(n)
        ]

    def _formula(self, text: str, *, kind: str) -> str:
        return self._model.write(_FORMULA.format(kind=kind, text=text[:_READ]), whole=False)


def _schema() -> "type[BaseModel]":
    try:
        from pydantic import BaseModel
    except ImportError as error:
        raise MissingExtra("Asking a language model", extra="llm") from error

    class Split(BaseModel):
        """What a query wants and what it rules out."""

        positive: list[str]
        negative: list[str]

    return Split
