"""States of words, so that two networks with different tokenisers can be compared.

A word is what stands between white space. Its state is the mean of the states of its tokens; the
first token of the whole sequence counts as a word of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from coder_ir.training.verifier.groups import Pair

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, slots=True)
class WordPlaces:
    """Which word each token of a batch belongs to, numbered through the batch.

    Words have the same numbers whatever tokeniser read the pairs and whichever text stood first:
    for each pair the first token, then the words of the query, then those of the passage.
    """

    numbers: torch.Tensor  # (pairs, tokens); -1: of no word
    words: int  # in the whole batch


@dataclass(frozen=True, slots=True)
class WordStates:
    """A state for each word of a batch."""

    states: torch.Tensor  # (words, dimensions)
    tokens: torch.Tensor  # (words,): how many tokens were averaged; 0: the word was cut off


def word_places(
    encodings: Sequence[Any], pairs: Sequence[Pair], *, passage_first: bool
) -> WordPlaces:
    """Place the tokens of encoded pairs; an encoding has `sequence_ids` and `offsets`."""
    import torch

    rows, first = [], 0
    for encoding, (query, passage) in zip(encodings, pairs, strict=True):
        asked, read = words_of(query), words_of(passage)
        sides = [(first + 1, asked), (first + 1 + asked.count, read)]
        if passage_first:
            sides.reverse()
        rows.append(torch.tensor([first, *_after_first_token(encoding, sides)]))
        first += 1 + asked.count + read.count
    numbers = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=-1)
    return WordPlaces(numbers, first)


def mean_by_word(hidden: torch.Tensor, places: WordPlaces) -> WordStates:
    """Average token states (pairs, tokens, dimensions) by word; a word without tokens is zero."""
    import torch

    numbers = places.numbers.view(-1)
    inside = numbers >= 0
    rows = hidden.reshape(-1, hidden.shape[-1])[inside].float()
    total = torch.zeros(places.words, rows.shape[1]).index_add(0, numbers[inside], rows)
    tokens = torch.zeros(places.words).index_add(0, numbers[inside], torch.ones(len(rows)))
    return WordStates(total / tokens.clamp(min=1)[:, None], tokens)


@dataclass(frozen=True, slots=True)
class Words:
    """The words of a text."""

    numbers: tuple[int, ...]  # one a character; white space has the number of the word before it
    count: int


@lru_cache(maxsize=200_000)
def words_of(text: str) -> Words:
    """Number the words of a text by its characters."""
    numbers, word, inside = [], -1, False
    for character in text:
        if character.isspace():
            inside = False
        elif not inside:
            word, inside = word + 1, True
        numbers.append(max(word, 0))
    return Words(tuple(numbers), word + 1)


def _after_first_token(encoding: Any, sides: Sequence[tuple[int, Words]]) -> Iterator[int]:
    """The word of every token but the first; `sides` are the two texts in the order read.

    A token belongs to the word of its last character, for some tokenisers put the space before a
    word into its first token.
    """
    tokens = zip(encoding.sequence_ids[1:], encoding.offsets[1:], strict=True)
    for side, (start, end) in tokens:
        if side is None or end <= start:
            yield -1
        else:
            first, words = sides[side]
            yield first + words.numbers[end - 1]
