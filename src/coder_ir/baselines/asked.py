"""Decompositions by a language model."""

from typing import TYPE_CHECKING, Any

from coder_ir.baselines.decompose import Decomposer, Intents
from coder_ir.errors import MissingExtra

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

    def intents(self, query: str) -> Intents:
        """The model's phrases; the query itself where it names nothing that is wanted."""
        found: Any = self._model.ask(_INTENTS.format(text=query), self._split)
        positive = tuple(filter(None, map(str.strip, found.positive)))
        return Intents(positive or (query,), tuple(filter(None, map(str.strip, found.negative))))

    def passages(self, query: str, n: int) -> list[str]:
        """As many draws as asked for."""
        prompt = _PASSAGE.format(text=query)
        return [
            self._model.write(prompt, temperature=self._temperature, sample=sample)
            for sample in range(n)
        ]

    def formula(self, text: str, *, is_query: bool) -> str:
        """One line of logic; a document is read up to its two thousandth character."""
        if self._documents and not is_query:
            return self._documents.formula(text, is_query=False)
        kind = "search query" if is_query else "passage"
        return self._model.write(_FORMULA.format(kind=kind, text=text[:_READ]))


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
