"""What the tests of query parsing share: queries written with marks, and a network by hand."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import numpy as np

from coder_ir.encoders.folder import Parsing
from coder_ir.encoders.tokens import QueryTokens
from coder_ir.query.parser import KINDS, TAGS
from coder_ir.types import Floats, Mark, Role, SentenceKind, Span, VectorPair

NAMES = ("gluten", "meat", "fish")
_ROLES: dict[str, Role] = {"c": "cue", "x": "excluded", "r": "required", "i": "implied"}
_MARK = re.compile(r"\{(?P<letter>[cxri])(?::(?P<names>[a-z+]+))? (?P<text>[^{}]+)\}")
_TOKEN = re.compile(r"\w+|[^\w\s]")
_SURE = 20.0  # a logit beside which the others do not count


def marked(text: str) -> tuple[str, list[Mark]]:
    """`cake {c without} {x nuts}`, `{r ...}`, `{i:meat+fish vegan}`: the query and its marks."""
    query, marks, at = "", [], 0
    for match in _MARK.finditer(text):
        query += text[at : match.start()]
        span = Span(len(query), len(query) + len(match["text"]))
        names = tuple((match["names"] or "").split("+")) if match["names"] else ()
        marks.append(Mark(span, _ROLES[match["letter"]], match["text"], names))
        query += match["text"]
        at = match.end()
    return query + text[at:], marks


def tag_logits(role: Role | None, sure: float = _SURE) -> list[float]:
    """Logits that say which role a token has."""
    return [sure if tag == role else 0.0 for tag in TAGS]


@dataclass(frozen=True)
class Said:
    """What the network by hand says of a word wherever it stands."""

    role: Role | None = None
    kinds: Sequence[float] = (0.0, _SURE, 0.0, 0.0)  # logits, those of a plain sentence
    weight: float = 0.0
    names: Sequence[str] = ()

    @property
    def row(self) -> list[float]:
        """Logits in the order of the network's output."""
        names = [_SURE if name in self.names else -_SURE for name in NAMES]
        return [*tag_logits(self.role), *self.kinds, self.weight, *names]


def kind_logits(kind: SentenceKind) -> tuple[float, ...]:
    """Logits that leave no doubt about a sentence's kind."""
    return tuple(_SURE if other == kind else 0.0 for other in KINDS)


def asks(role: Role | None = None, *, names: Sequence[str] = ()) -> Said:
    """A word whose sentence asks under a constraint, for all the word can say."""
    return Said(role, kind_logits("constraint"), names=names)


class HandMadeEncoder:
    """A word is a token, its state a number; reads `limit` words of a query and counts calls."""

    def __init__(self, *, parser: Parsing | None = None, limit: int = 1000) -> None:
        self.manifest = SimpleNamespace(parser=parser)
        self.spec = self.fingerprint = "by hand"
        self.folder = Path("by-hand")
        self.limit = limit
        self.vocabulary: list[str] = []
        self.calls: list[str] = []

    reads_queries_once = True  # both roles read a query alike

    def query_tokens(self, texts: Sequence[str]) -> list[QueryTokens]:
        self.calls.append("query_tokens")
        return [self._tokens(text) for text in texts]

    def encode_queries(self, texts: Sequence[str]) -> tuple[VectorPair, list[QueryTokens]]:
        self.calls.append("encode_queries")
        return self._vectors(texts), [self._tokens(text) for text in texts]

    def encode(self, texts: Sequence[str], *, kind: str) -> VectorPair:
        self.calls.append(f"encode {kind}")
        return self._vectors(texts)

    def _vectors(self, texts: Sequence[str]) -> VectorPair:
        rows = np.array([[1, len(text)] for text in texts], dtype=np.float32)
        return VectorPair(rows, -rows)

    def _tokens(self, text: str) -> QueryTokens:
        words = list(_TOKEN.finditer(text))[: self.limit]
        numbers = [self._number(word[0]) for word in words]
        offsets = tuple((word.start(), word.end()) for word in words)
        return QueryTokens(np.array(numbers, dtype=np.float32).reshape(-1, 1), offsets)

    def _number(self, word: str) -> float:
        if word not in self.vocabulary:
            self.vocabulary.append(word)
        return float(self.vocabulary.index(word))


class HandMadeNetwork:
    """Looks up what is said of each word."""

    def __init__(self, encoder: HandMadeEncoder, said: Mapping[str, Said]) -> None:
        self.encoder = encoder
        self.said = said
        self.runs = 0

    def run(self, outputs: list[str], feed: dict[str, Floats]) -> list[Floats]:
        assert outputs == ["logits"]
        self.runs += 1
        (states,) = feed["hidden"]
        return [np.array([[self._row(float(state)) for (state,) in states]], dtype=np.float32)]

    def _row(self, state: float) -> list[float]:
        return self.said.get(self.encoder.vocabulary[int(state)], Said()).row


def parsing(*, scale: float = 1.0, shift: float = 0.0) -> Parsing:
    """A parser's description."""
    return Parsing("parser.onnx", NAMES, scale, shift)
