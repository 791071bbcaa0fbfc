"""Neutral documents: on the topic of a pair, but neither satisfying nor violating its queries."""

import math
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace

from coder_ir.datasets.diagnostics.candidate import Candidate
from coder_ir.datasets.diagnostics.passages import Passage, content_words, joined, windows
from coder_ir.datasets.diagnostics.quality import alike, documents

_NEAREST = 30  # other passages to look into
_SAID = 0.5  # share of the topic words with which a sentence may say the claim itself
_CONCLUDING = re.compile(
    r"\b(?:conclu\w+|(?:our|these) (?:results|findings|data)|thus|therefore)\b"
)
_APART = 0.5  # Jaccard of words with the pair's documents, at most


class Neighbours:
    """Passages by their rare words."""

    def __init__(self, passages: Sequence[Passage]) -> None:
        """Count in how many passages each content word is."""
        self._by_id = {passage.doc_id: passage for passage in passages}
        self._holders: dict[str, list[str]] = defaultdict(list)
        for passage in passages:
            text = " ".join((passage.title, *passage.sentences))
            for word in sorted(content_words(text)):
                self._holders[word].append(passage.doc_id)

    def is_rare(self, word: str) -> bool:
        """Whether one passage in thirty has it, or three in a small corpus."""
        return 0 < len(self._holders.get(word, ())) <= max(3, len(self._by_id) / 30)

    def weight(self, word: str) -> float:
        """Inverse document frequency; 0 for a word of no passage."""
        held = len(self._holders.get(word, ()))
        return math.log(len(self._by_id) / held) if held else 0.0

    def nearest(self, words: frozenset[str], near: Passage) -> Iterator[Passage]:
        """Other passages, those first that share the rarest of the words and of the title."""
        scores: dict[str, float] = defaultdict(float)
        for word in sorted(words | content_words(near.title)):
            for doc_id in self._holders.get(word, ()):
                scores[doc_id] += self.weight(word) * (2 if word in words else 1)
        scores.pop(near.doc_id, None)
        ranked = sorted(scores, key=lambda doc_id: (-scores[doc_id], doc_id))
        return (self._by_id[doc_id] for doc_id in ranked[:_NEAREST])

    def passage(self, doc_id: str) -> Passage:
        """The passage of that id."""
        return self._by_id[doc_id]


def neutrals(candidate: Candidate, neighbours: Neighbours) -> list[str]:
    """At most two, the first from before the key sentence where the source has such a part."""
    own = neighbours.passage(candidate.sources[0])
    found: list[str] = []
    for passage in (_until_key(candidate, own), *neighbours.nearest(candidate.topic, own)):
        best = _best(candidate, passage, found)
        if best:
            found.append(best)
        if len(found) == 2:
            break
    return found


def _until_key(candidate: Candidate, own: Passage) -> Passage:
    """What the source says before its finding: what comes after may say it again."""
    used = [
        i for i, s in enumerate(own.sentences) if any(s in d for d in documents(candidate.pair))
    ]
    return replace(own, sentences=own.sentences[: min(used, default=0)])


def _best(candidate: Candidate, passage: Passage, taken: Sequence[str]) -> str:
    """The passage's part with most topic words that keeps clear of the claim; "" if none does."""
    best, most = "", 1 if candidate.minimal else 0
    others = (*documents(candidate.pair), *taken)
    for start, end in windows(passage.sentences):
        part = passage.sentences[start:end]
        text = joined(part)
        shared = len(content_words(text) & candidate.topic)
        if shared > most and _silent(candidate, part):
            if all(alike(text, other) < _APART for other in others):
                best, most = text, shared
    return best


def _silent(candidate: Candidate, sentences: Sequence[str]) -> bool:
    text = " ".join(sentences)
    if not candidate.needed.search(text) or candidate.refused.search(text):
        return False
    if not candidate.minimal:
        return True
    limit = _SAID * len(candidate.topic)
    return not any(
        _CONCLUDING.search(sentence) or len(content_words(sentence) & candidate.topic) > limit
        for sentence in sentences
    )
