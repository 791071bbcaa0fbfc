"""The trained parser: a small network over the encoder's own token states."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import get_args

import numpy as np

from coder_ir.encoders.onnx import OnnxEncoder, session
from coder_ir.encoders.tokens import QueryTokens
from coder_ir.errors import InvalidValue
from coder_ir.mentions import sentence_spans
from coder_ir.query.constraint import constraint_of, merged
from coder_ir.query.operators import operator_marks
from coder_ir.query.spans import Tagged, marks_of, words
from coder_ir.types import (
    STATED,
    Constraint,
    Floats,
    Mark,
    Role,
    Scores,
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
        cuts = np.cumsum([len(TAGS), len(KINDS), 1])
        tags, kinds, weight, names = np.split(logits, cuts, axis=-1)
        return tags, kinds, weight[..., 0], names


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
            own_marks = marks_of(query, tagged.part(rows), words(query, span))
            if sentence.kind == "constraint" and not any(m.role != "cue" for m in own_marks):
                sentence = Sentence(span, "plain", 0.0)  # nothing is named that it could be about
            sentences.append(sentence)
            marks += own_marks if sentence.kind == "constraint" else []
        return Reading(tuple(sentences), tuple(marks))

    def _sentence(self, span: Span, kinds: Floats, weight: Floats) -> Sentence:
        """A sentence's kind, its tokens' votes weighed by the network."""
        shares = np.exp(np.clip(weight, -30, 30))
        logits: Scores = (shares[:, None] * kinds).sum(axis=0, dtype=np.float64) / shares.sum()
        others = np.log(np.exp(logits[1:] - logits[1:].max()).sum()) + logits[1:].max()
        scaled = self.parsing.scale * (logits[0] - others) + self.parsing.shift
        probability = float(1 / (1 + np.exp(-np.clip(scaled, -500, 500))))
        kind = KINDS[0] if probability >= STATED else KINDS[1 + int(np.argmax(logits[1:]))]
        return Sentence(span, kind, probability)


def _rows_of_sentences(
    query: str, offsets: Sequence[tuple[int, int]]
) -> Iterator[tuple[Span, list[int]]]:
    """Each sentence with the tokens in it; one that was not read is left out."""
    for span in sentence_spans(query):
        rows = [i for i, (start, _) in enumerate(offsets) if span.start <= start < span.end]
        if rows:
            yield span, rows
