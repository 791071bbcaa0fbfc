"""The trained parser: a small network over the encoder's own token states."""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import exp, log
from typing import get_args

import numpy as np

from coder_ir.encoders.onnx import OnnxEncoder, session
from coder_ir.encoders.tokens import QueryTokens
from coder_ir.errors import InvalidValue
from coder_ir.query.constraint import constraint_of, merged
from coder_ir.query.operators import operator_marks
from coder_ir.query.spans import Tagged, marks_of, words
from coder_ir.text import sentence_spans
from coder_ir.types import (
    STATED,
    Constraint,
    Floats,
    Mark,
    Role,
    Sentence,
    SentenceKind,
    Span,
)

TAGS: tuple[Role | None, ...] = (None, *get_args(Role))
KINDS: tuple[SentenceKind, ...] = get_args(SentenceKind)


@dataclass(frozen=True, slots=True)
class Layout:
    """Columns of the network's output: tags, sentence kinds, their weight, implied names."""

    names: tuple[str, ...]

    @property
    def width(self) -> int:
        """Columns in all."""
        return len(TAGS) + len(KINDS) + 1 + len(self.names)

    def split(self, logits: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        """Tags, kinds, weight and names of each token."""
        kinds = len(TAGS)
        weight = kinds + len(KINDS)
        return (
            logits[..., :kinds],
            logits[..., kinds:weight],
            logits[..., weight],
            logits[..., weight + 1 :],
        )


@dataclass(frozen=True, slots=True)
class Reading:
    """What the network says of a query, before operators and options are added."""

    sentences: tuple[Sentence, ...]
    marks: tuple[Mark, ...]  # of sentences that ask under a constraint


class TrainedParser:
    """Reads the token states that encoding a query leaves behind."""

    def __init__(self, encoder: OnnxEncoder) -> None:
        """Load the parser of the encoder's model folder."""
        parsing = encoder.manifest.parser
        if parsing is None:
            raise InvalidValue(
                f"{encoder.spec!r} has no query parser; train one with: coder-ir train parser"
            )
        self.encoder = encoder
        self.parsing = parsing
        self._layout = Layout(parsing.names)
        self._session = session(encoder.folder / parsing.graph)

    def parse(self, queries: Sequence[str]) -> list[Constraint]:
        """What each query states; runs the encoder's first layers and no others."""
        tokens = self.encoder.query_tokens(queries)
        return [self.constraint(q, own) for q, own in zip(queries, tokens, strict=True)]

    def constraint(self, query: str, tokens: QueryTokens) -> Constraint:
        """What a query states, by its operators and its token states."""
        operators = operator_marks(query)
        found = self._reading(query, tokens)
        marks = merged(found.marks, operators)
        return constraint_of(query, marks, found.sentences, certain=bool(operators))

    def _reading(self, query: str, tokens: QueryTokens) -> Reading:
        """Sentences with their kinds, and the marks of those that ask under a constraint."""
        if not tokens.offsets:
            return Reading((), ())
        (logits,) = self._session.run(["logits"], {"hidden": tokens.states[None]})
        query = query[: tokens.offsets[-1][1]]  # what was cut off is not read
        tags, kinds, weight, names = self._layout.split(logits[0])
        tagged = Tagged(tokens.offsets, tags, names, self.parsing.names)
        sentences, marks = [], []
        for span, rows in _rows_of_sentences(query, tokens.offsets):
            sentence = self._sentence(span, kinds[rows], weight[rows])
            if sentence.kind == "constraint":
                own_marks = marks_of(query, tagged.part(rows), words(query, span))
                if any(mark.role != "cue" for mark in own_marks):
                    marks += own_marks
                else:  # nothing is named that it could be about
                    sentence = Sentence(span, "plain", 0.0)
            sentences.append(sentence)
        return Reading(tuple(sentences), tuple(marks))

    def _sentence(self, span: Span, kinds: Floats, weight: Floats) -> Sentence:
        """A sentence's kind, its tokens' votes weighed by the network."""
        shares = np.exp(np.clip(weight, -30, 30)).astype(np.float64)
        asks, *others = (shares @ kinds / shares.sum()).tolist()
        most = max(others)
        margin = asks - most - log(sum(exp(other - most) for other in others))
        scaled = self.parsing.scale * margin + self.parsing.shift
        probability = 1 / (1 + exp(-min(max(scaled, -500.0), 500.0)))
        kind = KINDS[0] if probability >= STATED else KINDS[1 + others.index(most)]
        return Sentence(span, kind, probability)


def _rows_of_sentences(
    query: str, offsets: Sequence[tuple[int, int]]
) -> Iterator[tuple[Span, slice]]:
    """Each sentence with the tokens in it; one that was not read is left out."""
    starts = [start for start, _ in offsets]
    for span in sentence_spans(query):
        first, last = bisect_left(starts, span.start), bisect_left(starts, span.end)
        if first < last:
            yield span, slice(first, last)
