"""Text to first-order logic by rule: a word is a predicate, a denied word a negated one."""

import re
from collections.abc import Iterable, Sequence

from coder_ir.text import EMPTY_WORDS, words_of

AND, NOT, EXISTS = "∧", "¬", "∃"
CONNECTIVES = frozenset(("∧", "∨", "⊕", "→", "↔", "∀", "∃"))
_MOST = 40  # predicates of a document
_WORD_OR_COMMA = re.compile(r"[^\W_]+(?:['’][^\W_]+)?|,")
_CLAUSE_END = re.compile(r"[.!?;:\n]|\b(?:but|though|while)\b", re.IGNORECASE)
_DENIED_BEFORE = frozenset(
    "no non not never without none nor neither lacks lack lacking excluding except avoid "
    "avoids nothing zero don't doesn't didn't isn't aren't wasn't weren't can't cannot "
    "won't".split()
)
_DENIED_AFTER = frozenset(
    "not never isn't aren't wasn't weren't prohibited banned forbidden unavailable absent".split()
)
_BEFORE = 5  # words and commas a denial reaches over


def text_formula(text: str) -> str:
    """Each clause as a conjunction about one thing, joined by ∧; no more than forty predicates."""
    clauses, left = [], _MOST
    for clause in marked_words(text):
        said = [(word, denied) for word, denied in clause if word not in EMPTY_WORDS][:left]
        left -= len(said)
        if said:
            clauses.append(_about(_predicate(*one) for one in said))
    return f" {AND} ".join(clauses) or _about(map(_predicate, words_of(text)))


def query_formula(topic: str, excluded: Sequence[str]) -> str:
    """What is asked for, each word a predicate, and what is ruled out, each phrase negated."""
    wanted = [part for clause in marked_words(topic) for part in clause]
    said = [_predicate(word, denied) for word, denied in wanted if word not in EMPTY_WORDS]
    gone = [_predicate("_".join(words_of(phrase)), True) for phrase in excluded]
    return _about([*said, *gone])


def _predicate(word: str, denied: bool = False) -> str:
    return f"{NOT * denied}{word.capitalize()}(x)"


def _about(predicates: Iterable[str]) -> str:
    return f"{EXISTS}x ({f' {AND} '.join(predicates)})"


def marked_words(text: str) -> list[list[tuple[str, bool]]]:
    """The words of each clause that are no denial, and whether one before reaches them.

    "The king was never crowned" denies the crowning, not the king.
    """
    clauses = []
    for clause in _CLAUSE_END.split(text):
        words = _words_and_commas(clause)
        marked = [
            (word, _denied_from_before(words, i))
            for i, word in enumerate(words)
            if word != "," and word not in _DENIED_BEFORE | _DENIED_AFTER
        ]
        if marked:
            clauses.append(marked)
    return clauses


def _words_and_commas(clause: str) -> list[str]:
    return [word.lower().replace("’", "'") for word in _WORD_OR_COMMA.findall(clause)]


def _denied_from_before(words: list[str], i: int) -> bool:
    """Whether a denial in front of it reaches the word at i."""
    before = words[max(0, i - _BEFORE) : i]
    if "," in before and before[-1] not in (",", "or", "nor"):
        before = before[len(before) - before[::-1].index(",") :]
    return bool(_DENIED_BEFORE & set(before) or before[-2:] in (["free", "of"], ["free", "from"]))
