"""Cuts a text that is longer than a model's limit into passages at sentence ends."""

import re
from bisect import bisect_left
from collections.abc import Sequence
from itertools import pairwise

from coder_ir.types import Span

_SENTENCE_END = re.compile(
    r"[.!?…][\"'”’)\]]*\s+|[。！？][\"'”’」』）)\]]*\s*|\n\s*\n|\n(?=\s*[-*•#\d])"
)
_OVERLAP = 0.1  # of the limit, at most, in whole sentences


def split_at_sentences(text: str, tokens: Sequence[tuple[int, int]], limit: int) -> list[Span]:
    """Spans of at most `limit` tokens that cover the text, each starting at a sentence.

    `tokens` holds the character range of each token, in order. The last sentences of a passage,
    up to a tenth of the limit, begin the next one too. A sentence longer than the limit is cut
    between words. A text within the limit is one span.
    """
    if len(tokens) <= limit:
        return [Span(0, len(text))]
    starts = [start for start, _ in tokens]
    # Sentences as token ranges; text before the first token of a sentence belongs to it.
    ends = sorted({bisect_left(starts, m.end()) for m in _SENTENCE_END.finditer(text)})
    bounds = [0, *(end for end in ends if 0 < end < len(tokens)), len(tokens)]
    pieces = _cut_long(text, tokens, bounds, limit)
    spans, first = [], 0
    while first < len(pieces):
        last = first
        while last + 1 < len(pieces) and pieces[last + 1][1] - pieces[first][0] <= limit:
            last += 1
        begin = 0 if first == 0 else starts[pieces[first][0]]
        end = len(text) if last == len(pieces) - 1 else starts[pieces[last][1]]
        spans.append(Span(begin, end))
        if last == len(pieces) - 1:
            break
        first = _overlap(pieces, first, last, limit)
    return spans


def _overlap(pieces: list[tuple[int, int]], first: int, last: int, limit: int) -> int:
    """Where the next passage starts: a few whole sentences back, always moving on."""
    following = last + 1
    room = min(limit * _OVERLAP, limit - (pieces[following][1] - pieces[following][0]))
    start = following
    while start - 1 > first and pieces[last][1] - pieces[start - 1][0] <= room:
        start -= 1
    return start


def _cut_long(
    text: str, tokens: Sequence[tuple[int, int]], bounds: list[int], limit: int
) -> list[tuple[int, int]]:
    """Token ranges of sentences, those past the limit cut where a word begins."""
    pieces = []
    for begin, end in pairwise(bounds):
        start = begin
        while end - start > limit:
            cut = start + limit
            while cut > start + max(1, limit // 2) and not text[tokens[cut][0] - 1].isspace():
                cut -= 1
            pieces.append((start, cut))
            start = cut
        pieces.append((start, end))
    return pieces
