"""Groups from review sentences: who praises an aspect, who complains of it, who only names it."""

import random
from collections import defaultdict
from pathlib import Path

from coder_ir.training.reading_items import Label
from coder_ir.training.sources import read_jsonl
from coder_ir.training.verifier.groups import Group

MAMS = "mams"
_MOST = 40  # groups of one aspect
_NEUTRAL = 0.3  # share of the groups that get a neutral sentence too
_SHORTEST, _LONGEST = 3, 24  # characters of an aspect
_PRAISED = (
    "{} that is good",
    "place with good {}",
    "somewhere with great {}",
    "I want good {}",
    "without bad {}",
    "nowhere that {} disappoints",
    "{} should be excellent",
)
_BLAMED = (
    "bad {}",
    "complaints about the {}",
    "where was the {} disappointing",
    "reviews unhappy with the {}",
    "{} that is not good",
)
_LABELS: tuple[tuple[Label, ...], ...] = (
    ("satisfies", "violates", "silent"),
    ("violates", "satisfies", "silent"),
)


def review_file(folder: Path) -> Path:
    """The file of MAMS that is read."""
    return folder / "MAMS" / "aspects.jsonl"


def review_groups(folder: Path, rng: random.Random) -> list[Group]:
    """For each aspect, queries that want it good and bad over a sentence of either opinion."""
    sentences: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for row in read_jsonl(review_file(folder)):
        used = row["kind"] == "term" and row["split"] == "train"
        if used and _SHORTEST <= len(row["aspect"]) <= _LONGEST:
            sentences[row["aspect"].lower()][row["polarity"]].append(row["text"])
    groups = []
    for aspect, opinions in sentences.items():
        good, bad, neutral = (opinions[name] for name in ("positive", "negative", "neutral"))
        if not good or not bad:
            continue
        for _ in range(min(_MOST, max(len(good), len(bad)))):
            passages = [rng.choice(good), rng.choice(bad)]
            if neutral and rng.random() < _NEUTRAL:
                passages.append(rng.choice(neutral))
            if len(set(passages)) == len(passages):
                groups.append(_group(aspect, passages, rng))
    return groups


def _group(aspect: str, passages: list[str], rng: random.Random) -> Group:
    queries = tuple(rng.choice(words).format(aspect) for words in (_PRAISED, _BLAMED))
    labels = tuple(row[: len(passages)] for row in _LABELS)
    return Group(MAMS, queries, tuple(passages), labels, MAMS)
