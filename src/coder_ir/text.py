"""Words and sentences of a text."""

import re
from functools import lru_cache

from coder_ir.types import Span

_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)?")
EMPTY_WORDS = frozenset(
    "a an the of in on at to for from by with and or nor any all some one ones that this those "
    "these it its their his her our my your is are was were be been being do does did has have "
    "had about into as than kind kinds type types thing things".split()
)


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
