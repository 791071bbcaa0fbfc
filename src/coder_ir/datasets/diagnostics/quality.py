"""Filters that every candidate passes before a person is asked to read it."""

import difflib
import re
from collections.abc import Iterable

from coder_ir.datasets.diagnostics.candidate import Candidate
from coder_ir.datasets.diagnostics.passages import content_words, is_whole, whole_sentences
from coder_ir.datasets.diagnostics.sheet import Pair
from coder_ir.text import words_of

_QUERY_WORDS = (5, 20)
_NEAR = 0.85  # Jaccard of words from which two texts are copies of each other
_APART = 0.75  # and from which two documents of one side are too alike
_MOST_CHANGED = 4  # words that differ between the two sides of a document
_HEADING = re.compile(r"(?:^|[.!?] )[A-Z]{4,}(?: [A-Z]{3,})*:")


def fault(candidate: Candidate) -> str:
    """What is wrong with it by itself, in words; "" where nothing is."""
    pair = candidate.pair
    found = (
        *(_query_fault(query, candidate.topic) for query in (pair.query_a, pair.query_b)),
        *(_document_fault(text, candidate.topic) for text in documents(pair)),
        _pair_fault(pair, candidate.minimal),
    )
    return next(filter(None, found), "")


def _query_fault(query: str, topic: frozenset[str]) -> str:
    low, high = _QUERY_WORDS
    if not low <= len(query.split()) <= high:
        return f"a query of {len(query.split())} words"
    if broken(query):
        return "a query with unbalanced brackets"
    return "" if content_words(query) & topic else "a query without its topic"


def _document_fault(text: str, topic: frozenset[str]) -> str:
    if _HEADING.search(text) or not all(map(is_whole, _pieces(text))):
        return "a broken sentence"
    return "" if content_words(text) & topic else "a document without the topic"


def _pair_fault(pair: Pair, minimal: bool) -> str:
    if pair.query_a == pair.query_b:
        return "equal queries"
    if any(alike(one, two) > _APART for one, two in ((pair.a1, pair.a2), (pair.b1, pair.b2))):
        return "two documents of a side that are alike"
    changes = [changed_words(pair.a1, pair.b1), changed_words(pair.a2, pair.b2)]
    if minimal and not all(0 < count <= _MOST_CHANGED for count in changes):
        return "more or less than one change between the sides"
    return ""


def repeats(pair: Pair, earlier: Iterable[Pair]) -> bool:
    """Whether a query or document of it is a near-copy of one that another pair has."""
    for other in earlier:
        if alike(pair.query_a, other.query_a) > _NEAR or alike(pair.query_a, other.query_b) > _NEAR:
            return True
        theirs = [text for text in (*documents(other), other.neutral1, other.neutral2) if text]
        ours = [text for text in (*documents(pair), pair.neutral1, pair.neutral2) if text]
        if any(alike(one, two) > _NEAR for one in ours for two in theirs):
            return True
    return False


def documents(pair: Pair) -> tuple[str, str, str, str]:
    """The four documents that satisfy one of the queries."""
    return pair.a1, pair.a2, pair.b1, pair.b2


def alike(one: str, two: str) -> float:
    """Jaccard similarity of the two sets of words, in [0, 1]."""
    ours, theirs = set(words_of(one)), set(words_of(two))
    return len(ours & theirs) / (len(ours | theirs) or 1)


def changed_words(one: str, two: str) -> int:
    """How many words of the longer side a word-by-word comparison marks as changed."""
    ours, theirs = one.split(), two.split()
    blocks = difflib.SequenceMatcher(None, ours, theirs, autojunk=False).get_opcodes()
    return sum(max(i2 - i1, j2 - j1) for tag, i1, i2, j1, j2 in blocks if tag != "equal")


def broken(text: str) -> bool:
    """Whether a bracket or quotation mark is open."""
    return any(text.count(a) != text.count(b) for a, b in ("()", "[]", "“”")) or bool(
        text.count('"') % 2
    )


def _pieces(text: str) -> list[str]:
    """The sentences of a document; the text itself where one was lost on the way."""
    found = list(whole_sentences(text))
    return found if sum(map(len, found)) + len(found) - 1 == len(text) else [text[0].lower()]
