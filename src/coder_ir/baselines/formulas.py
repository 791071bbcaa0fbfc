"""Text to first-order logic by rule: a word is a predicate, a denied word a negated one."""

from collections.abc import Iterable, Sequence

from coder_ir.mentions import EMPTY_WORDS, marked_words, words_of

AND, NOT, EXISTS = "∧", "¬", "∃"
CONNECTIVES = frozenset(("∧", "∨", "⊕", "→", "↔", "∀", "∃"))
_MOST = 40  # predicates of a document


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
