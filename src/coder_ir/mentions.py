"""What a passage says of a phrase: affirms it, denies it, or is silent."""

import re
from functools import lru_cache

from coder_ir.types import Span

_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)?")
_WORD_OR_COMMA = re.compile(rf"{_WORD.pattern}|,")
_CLAUSE_END = re.compile(r"[.!?;:\n]|\b(?:but|though|while)\b", re.IGNORECASE)
EMPTY_WORDS = frozenset(
    "a an the of in on at to for from by with and or nor any all some one ones that this those "
    "these it its their his her our my your is are was were be been being do does did has have "
    "had about into as than kind kinds type types thing things".split()
)
_DENIED_BEFORE = frozenset(
    "no non not never without none nor neither lacks lack lacking excluding except avoid "
    "avoids nothing zero don't doesn't didn't isn't aren't wasn't weren't can't cannot "
    "won't".split()
)
_DENIED_AFTER = frozenset(
    "not never isn't aren't wasn't weren't prohibited banned forbidden unavailable absent".split()
)
_BEFORE = 5  # words and commas a denial reaches over


def mention(phrase: str, text: str) -> float:
    """How much of a phrase a clause of the text affirms, in [0, 1].

    Counts the phrase's content words, forms of one word alike. A word with a denial close to it
    ("no parking", "parking is not allowed", "free of nuts", "nut-free") does not count.
    """
    wanted = _wanted(phrase)
    lowered = text.lower().replace("’", "'")
    if not any(stem in lowered for stem in wanted):  # most passages, and quickly told
        return 0.0
    return max((_affirmed(wanted, clause) for clause in _CLAUSE_END.split(text)), default=0.0)


@lru_cache(maxsize=1000)
def _wanted(phrase: str) -> frozenset[str]:
    """What a phrase is looked for by: its content words, or all of them where it has none."""
    words = words_of(phrase)
    content = [word for word in words if word not in EMPTY_WORDS]
    return frozenset(map(stem_of, content or words))


def _affirmed(wanted: frozenset[str], clause: str) -> float:
    words = _words_and_commas(clause)
    stems = [stem_of(word) for word in words]
    held = {
        stem
        for i, stem in enumerate(stems)
        if stem in wanted and not _denied(words, stems, i, wanted)
    }
    return len(held) / len(wanted)


def _words_and_commas(clause: str) -> list[str]:
    return [word.lower().replace("’", "'") for word in _WORD_OR_COMMA.findall(clause)]


def _denied(words: list[str], stems: list[str], i: int, wanted: frozenset[str]) -> bool:
    """Whether a denial reaches the word at i, over other words of the phrase too.

    It passes a comma only inside a list ("no nuts, seeds or grains"; not "no pets, free parking").
    """
    first = last = i
    while first and stems[first - 1] in wanted:
        first -= 1
    while last + 1 < len(words) and stems[last + 1] in wanted:
        last += 1
    after = words[last + 1 : last + 4]
    return bool(
        _denied_from_before(words, first)
        or _DENIED_AFTER & set(after[:2])
        or (after[:1] == ["free"] and after[1:3] != ["of", "charge"])
    )


def _denied_from_before(words: list[str], i: int) -> bool:
    """Whether a denial in front of it reaches the word at i."""
    before = words[max(0, i - _BEFORE) : i]
    if "," in before and before[-1] not in (",", "or", "nor"):
        before = before[len(before) - before[::-1].index(",") :]
    return bool(_DENIED_BEFORE & set(before) or before[-2:] in (["free", "of"], ["free", "from"]))


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


def words_of(text: str) -> list[str]:
    """Lower-cased words in order."""
    return [word.lower().replace("’", "'") for word in _WORD.findall(text)]


@lru_cache(maxsize=50_000)
def stem_of(word: str) -> str:
    """A word without its most common endings; crude, but the same for both sides."""
    word = word.removesuffix("'s")
    for ending in ("ies", "ing", "ied", "es", "ed", "s", "y", "e"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)]
    return word


# Not the dot of an initial (J. B. Priestley), nor that of Dr, St and the like.
_FULL_STOP = r"(?<=[.!?…])(?<!\b[A-Z]\.)(?<!\b[A-Z][b-df-hj-np-tv-xz]\.)(?<!\bMrs\.)"
_SENTENCE_END = re.compile(rf"{_FULL_STOP}\s+(?!\d)|\n+")


def sentence_spans(text: str) -> list[Span]:
    """The sentences of a text, in order, without the white space around them."""
    found, at = [], 0
    for end, start in [*(m.span() for m in _SENTENCE_END.finditer(text)), (len(text), len(text))]:
        part = text[at:end]
        if part.strip():
            lead = len(part) - len(part.lstrip())
            found.append(Span(at + lead, at + len(part.rstrip())))
        at = start
    return found


def split_sentences(text: str) -> list[str]:
    """The sentences of a text, as a reader would quote them."""
    return [text[span.start : span.end] for span in sentence_spans(text)]
