"""Queries marked with what they rule out: the text format, and noise for training.

A file holds one query a line, grouped under lines `# topic: NAME | domain: NAME`. A line is
`KIND|query`, its kind one of K (asks under a constraint), P (plain), C (claims), N (narrates).
Sentences of a longer query are separated by ` || `, each with its own `KIND: ` in front. Marks:
`{c without} {x nuts}` cue and what is ruled out, `{r ...}` what is required, `{i:gluten coeliac}` a
word that rules out what it does not name (`{i:raw-fish+alcohol pregnant}`: raw fish, alcohol).
"""

import lzma
import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

from coder_ir.errors import InvalidFile, NotFound
from coder_ir.text import sentence_spans
from coder_ir.types import Role, SentenceKind, Span

_TOPIC = re.compile(r"# topic: (?P<topic>[^|]+?) \| domain: (?P<domain>[^|]+)")
_LINE = re.compile(r"(?P<kind>[KPCN])\|(?P<text>.+)")
_SENTENCE = re.compile(r"(?P<kind>[KPCN]): (?P<text>.+)")
_MARK = re.compile(r"\{(?P<role>[cxr]|i:[a-z+-]+) (?P<text>[^{}|]+)\}")
_ROLES: dict[str, Role] = {"c": "cue", "x": "excluded", "r": "required", "i": "implied"}
_MOST_SLIPS = 0.3  # share of a query's longer words
_LACK = ("without", "with no", "no", "sans")  # before a thing they say the same
_LACKING = re.compile(r"\b(?:without|with no)\b(?= \w)", re.IGNORECASE)
_KINDS: dict[str, SentenceKind] = dict(zip("KPCN", get_args(SentenceKind), strict=True))


@dataclass(frozen=True, slots=True)
class Segment:
    """A run of characters with one role."""

    text: str
    role: Role | None = None
    names: tuple[str, ...] = ()  # what an implied role rules out


@dataclass(frozen=True, slots=True)
class MarkedSentence:
    """One sentence in segments."""

    kind: SentenceKind
    segments: tuple[Segment, ...]

    @property
    def text(self) -> str:
        """The sentence without marks."""
        return "".join(segment.text for segment in self.segments)


@dataclass(frozen=True, slots=True)
class MarkedQuery:
    """A query as an annotator marked it."""

    sentences: tuple[MarkedSentence, ...]
    topic: str
    domain: str

    @property
    def text(self) -> str:
        """The query without marks."""
        return " ".join(sentence.text for sentence in self.sentences)

    @property
    def constrained(self) -> bool:
        """Whether a sentence of it asks under a constraint."""
        return any(sentence.kind == "constraint" for sentence in self.sentences)

    def roles(self) -> list[tuple[Span, Segment]]:
        """The marked segments with their place in `text`."""
        found, at = [], 0
        for sentence in self.sentences:
            for segment in sentence.segments:
                if segment.role:
                    found.append((Span(at, at + len(segment.text)), segment))
                at += len(segment.text)
            at += 1  # the space between sentences
        return found

    def phrases(self, role: Role) -> list[str]:
        """The texts of one role, in order; of implied ones the names."""
        own = [segment for _, segment in self.roles() if segment.role == role]
        if role == "implied":
            return [name for segment in own for name in segment.names]
        return [segment.text for segment in own]

    def kinds(self) -> list[tuple[Span, SentenceKind]]:
        """Kinds of the sentences that a reader without marks would split the text into.

        One that covers several marked sentences asks under a constraint if one of them does; else
        it is what most of its characters are.
        """
        marked, at = [], 0
        for sentence in self.sentences:
            marked.append((at, at + len(sentence.text), sentence.kind))
            at += len(sentence.text) + 1
        found: list[tuple[Span, SentenceKind]] = []
        for span in sentence_spans(self.text):
            shares: dict[SentenceKind, int] = {}
            for start, end, kind in marked:
                shared = min(end, span.end) - max(start, span.start)
                if shared > 0:
                    shares[kind] = shares.get(kind, 0) + shared
            asks = shares.get("constraint", 0) and any(
                segment.role and span.start <= place.start < span.end
                for place, segment in self.roles()
            )
            rest = [kind for kind in shares if kind != "constraint"]
            most: SentenceKind = max(rest, key=lambda kind: shares[kind], default="plain")
            found.append((span, "constraint" if asks else most))
        return found


def read_marked(path: Path) -> list[MarkedQuery]:
    """The queries of a file, plain or xz."""
    if not path.is_file():
        raise NotFound(f"no marked queries {path}")
    opener = lzma.open if path.suffix == ".xz" else open
    found, topic, domain = [], "", ""
    with opener(path, "rt", encoding="utf-8") as lines:
        for number, raw in enumerate(lines, 1):
            line = str(raw).rstrip("\n")
            if not line.strip():
                continue
            if heading := _TOPIC.fullmatch(line):
                topic, domain = heading["topic"], heading["domain"]
                continue
            try:
                found.append(MarkedQuery(tuple(_sentences(line)), topic, domain))
            except ValueError as error:
                raise InvalidFile(f"{path}:{number}: {error}: {line[:80]!r}") from error
    return found


def read_marked_part(folder: Path, name: str) -> list[MarkedQuery]:
    """The queries of one file of a folder: `train`, `development` or `heldout`."""
    paths = sorted(folder.glob(f"{name}.txt*"))
    if not paths:
        raise NotFound(f"no {name}.txt or {name}.txt.xz in {folder}")
    return [query for path in paths for query in read_marked(path)]


def unmarked(text: str) -> MarkedQuery:
    """An ordinary query as one sentence that states no constraint."""
    return MarkedQuery((MarkedSentence("plain", (Segment(text),)),), topic="", domain="")


def _sentences(line: str) -> Iterator[MarkedSentence]:
    match = _LINE.fullmatch(line)
    if match is None:
        raise ValueError("a line is KIND|query or # topic: NAME | domain: NAME")
    parts = match["text"].split(" || ")
    for part in parts:
        own = _SENTENCE.fullmatch(part)
        if own is None and len(parts) > 1:
            raise ValueError("each of several sentences starts with its kind")
        kind, text = (own["kind"], own["text"]) if own else (match["kind"], part)
        yield MarkedSentence(_KINDS[kind], tuple(_segments(text)))


def _segments(text: str) -> Iterator[Segment]:
    at = 0
    for match in _MARK.finditer(text):
        if match.start() > at:
            yield Segment(_plain(text[at : match.start()]))
        letter, _, names = match["role"].partition(":")
        named = tuple(name.replace("-", " ") for name in names.split("+") if name)
        yield Segment(match["text"], _ROLES[letter], named)
        at = match.end()
    if at < len(text):
        yield Segment(_plain(text[at:]))


def _plain(text: str) -> str:
    if set(text) & set("{}|"):
        raise ValueError("a mark is not closed or stands in another")
    return text


def noisy(query: MarkedQuery, rng: random.Random) -> MarkedQuery:
    """The query as a hurried person types it: case, marks and letters go, roles stay."""
    lower, bare = rng.random() < 0.6, rng.random() < 0.5
    # Of every word alike: a slip must not tell what the word is for.
    chance = rng.random() * _MOST_SLIPS if rng.random() < 0.5 else 0.0

    def typed(segment: Segment) -> Segment:
        text = segment.text.lower() if lower else segment.text
        if bare:
            text = re.sub(r"['’]", "", text) if rng.random() < 0.7 else text
        text = re.sub(
            r"[A-Za-z]{4,}", lambda m: _slip(m[0], rng) if rng.random() < chance else m[0], text
        )
        return Segment(text, segment.role, segment.names)

    sentences = [
        MarkedSentence(s.kind, tuple(typed(segment) for segment in s.segments))
        for s in query.sentences
    ]
    if bare and len(sentences) == 1:
        sentences = [_unpunctuated(sentences[0])]
    return MarkedQuery(tuple(sentences), query.topic, query.domain)


def reworded(query: MarkedQuery, rng: random.Random) -> MarkedQuery:
    """The query with another word for *without*, whether or not it announces a constraint there.

    A title changes as a request does, so that none of these words tells what a query is.
    """
    word = rng.choice(_LACK)

    def changed(segment: Segment) -> Segment:
        if segment.role == "cue" and segment.text.lower() in _LACK:
            return Segment(word, "cue")
        if segment.role is None:
            return Segment(_LACKING.sub(word, segment.text))
        return segment

    sentences = [
        MarkedSentence(s.kind, tuple(changed(segment) for segment in s.segments))
        for s in query.sentences
    ]
    return MarkedQuery(tuple(sentences), query.topic, query.domain)


def _slip(word: str, rng: random.Random) -> str:
    """One letter lost, doubled or swapped with the next, past the first."""
    at = rng.randrange(1, len(word) - 1)
    kind = rng.randrange(3)
    if kind == 0:
        return word[:at] + word[at + 1 :]
    if kind == 1:
        return word[:at] + word[at] + word[at:]
    return word[:at] + word[at + 1] + word[at] + word[at + 2 :]


def _unpunctuated(sentence: MarkedSentence) -> MarkedSentence:
    *head, last = sentence.segments
    stripped = last.text.rstrip(".?!")
    kept = [Segment(stripped, last.role, last.names)] if stripped else []
    return MarkedSentence(sentence.kind, (*head, *kept) or sentence.segments)
