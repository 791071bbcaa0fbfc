"""What HyDE, DEO and NS-IR ask of a text, answered without a language model."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from coder_ir.baselines.formulas import query_formula, text_formula
from coder_ir.query import load_parser
from coder_ir.types import Constraint, QueryParser


@dataclass(frozen=True, slots=True)
class Intents:
    """What a query wants and what it rules out, in short phrases."""

    positive: tuple[str, ...]  # at least one
    negative: tuple[str, ...] = ()


class Decomposer(Protocol):
    """Reads a text for a method that works on its parts."""

    @property
    def name(self) -> str:
        """What tables call it."""

    def intents(self, query: str) -> Intents:
        """What the query wants and what it rules out."""

    def passages(self, query: str, n: int) -> list[str]:
        """Between one and n passages that would satisfy the query."""

    def formula(self, query: str) -> str:
        """The query in first-order logic."""

    def formulas(self, documents: Sequence[str]) -> list[str]:
        """Each document in first-order logic."""


class ParserDecomposer:
    """No language model: a query as the trained parser reads it, a document by its words."""

    name = "parser"

    def __init__(self, parser: QueryParser | None = None) -> None:
        """None takes the built-in parser, loaded when a query is first read."""
        self._parser = parser

    def intents(self, query: str) -> Intents:
        """The query without what it rules out, and that."""
        found = self._parsed(query)
        return Intents((found.topic or query,), found.excluded)

    def passages(self, query: str, n: int) -> list[str]:
        """One, however many were asked for: the query without what it rules out."""
        return [self.intents(query).positive[0]]

    def formula(self, query: str) -> str:
        """Words as predicates; denied ones and what the query rules out are negated."""
        found = self._parsed(query)
        return query_formula(found.topic or query, found.excluded)

    def formulas(self, documents: Sequence[str]) -> list[str]:
        """Words as predicates, denied ones negated."""
        return [text_formula(document) for document in documents]

    def _parsed(self, query: str) -> Constraint:
        if self._parser is None:
            self._parser = load_parser(None)
        return self._parser.parse([query])[0]
