"""Candidate pairs of a kind from the passages of a BEIR folder, for a person to review."""

import random
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import islice
from pathlib import Path

from coder_ir.datasets.diagnostics.antonym import antonym_candidates
from coder_ir.datasets.diagnostics.candidate import Candidate, Rule
from coder_ir.datasets.diagnostics.exclusion import exclusion_candidates
from coder_ir.datasets.diagnostics.negation import negation_candidates
from coder_ir.datasets.diagnostics.neutral import Neighbours, neutrals
from coder_ir.datasets.diagnostics.passages import read_passages
from coder_ir.datasets.diagnostics.quality import fault, repeats
from coder_ir.datasets.diagnostics.sheet import Pair
from coder_ir.errors import InvalidValue, NotFound

RULES: Mapping[str, Rule] = {
    "antonym": antonym_candidates,
    "negation": negation_candidates,
    "exclusion": exclusion_candidates,
}
_RARE_WORDS = 2  # that a topic needs to be found by


def build_pairs(folder: Path, kind: str, *, pairs: int, seed: int = 13) -> list[Pair]:
    """At most `pairs` candidates, each of source documents of its own; the same for equal seeds."""
    if kind not in RULES:
        raise InvalidValue(f"no kind {kind!r}; there are {', '.join(RULES)}")
    if pairs < 1:
        raise InvalidValue(f"pairs must be at least 1, got {pairs}")
    passages = read_passages(folder)
    neighbours = Neighbours(passages)
    random.Random(seed).shuffle(passages)
    found = list(islice(_pairs(RULES[kind](passages, seed), neighbours), pairs))
    if not found:
        raise NotFound(f"{folder} gave no {kind} pair; it needs passages of several sentences")
    return [replace(pair, pair_id=f"{kind}-{i:03}") for i, pair in enumerate(found, 1)]


def _pairs(candidates: Iterator[Candidate], neighbours: Neighbours) -> Iterator[Pair]:
    """The candidates without fault, with neutrals, that repeat nothing of those before."""
    found: list[Pair] = []
    taken: set[str] = set()
    words: Counter[str] = Counter()
    for candidate in candidates:
        own = (*candidate.sources, *candidate.alone)
        used = not taken.isdisjoint(own) or words[candidate.word] >= candidate.most
        if used or not _specific(candidate, neighbours) or fault(candidate):
            continue
        beside = neutrals(candidate, neighbours)
        if len(beside) < 2:
            continue
        pair = replace(candidate.pair, neutral1=beside[0], neutral2=beside[1])
        if not repeats(pair, found):
            found.append(pair)
            taken.update(own)
            words[candidate.word] += 1
            yield pair


def _specific(candidate: Candidate, neighbours: Neighbours) -> bool:
    """Whether the topic is one of few passages, so that a search for it finds these documents."""
    if not candidate.minimal:  # an exclusion's topic is broad on purpose
        return True
    rare = sum(map(neighbours.is_rare, candidate.topic))
    return rare >= _RARE_WORDS
