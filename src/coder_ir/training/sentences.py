"""Stage 2 data: sentence-level triplets of all sources, kept clear of benchmarks and split."""

import hashlib
import json
import random
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path

from coder_ir.errors import InvalidFile, NotFound
from coder_ir.text import split_sentences
from coder_ir.training.sources import READERS, read_jsonl
from coder_ir.types import Triplet

_KEPT_AWAY = frozenset({"conda-543"})  # its passage is in NevIR's test set (rows 1070-2, 1070-3)
HELD_OUT = 0.08  # share of groups; recipes/written is split by the same rule
_RUN = 8  # words in a row that two texts share only if one was taken from the other


def gather(*roots: Path, cap: int, seed: int, away: Iterable[str] = ()) -> list[Triplet]:
    """Triplets of every known source folder under the roots, each once.

    A public source gives at most `cap` a reader (a seeded sample); written ones are all taken.
    No triplet has a text that shares eight words in a row with a text of `away`.
    """
    found: list[Triplet] = []
    runs = _Runs(away)
    for name, readers in READERS.items():
        for reader in readers:
            read = (t for root in roots if (root / name).is_dir() for t in reader(root / name))
            triplets = [
                triplet
                for triplet in dict.fromkeys(read)
                if triplet.group not in _KEPT_AWAY
                and triplet.satisfying != triplet.violating
                and not runs.share_one_with(triplet)
            ]
            if name != "written" and len(triplets) > cap:
                triplets = random.Random(seed).sample(triplets, cap)
            found += triplets
    if not found:
        places, names = ", ".join(map(str, roots)), ", ".join(READERS)
        raise NotFound(f"no known source under {places}; expected folders named {names}")
    return _joined(found)


class _Runs:
    """The runs of eight lower-cased words in some texts, each kept as the hash of word numbers."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._numbers: dict[str, int] = {}
        self._runs: set[int] = set()
        self._asked: dict[str, bool] = {}
        for text in texts:
            numbers = [
                self._numbers.setdefault(word, len(self._numbers) + 1) for word in _words(text)
            ]
            self._runs.update(_hashes(numbers))

    def share_one_with(self, triplet: Triplet) -> bool:
        return any(
            self._in(text) for text in (triplet.query, triplet.satisfying, triplet.violating)
        )

    def _in(self, text: str) -> bool:
        if text not in self._asked:
            numbers = [self._numbers.get(word, 0) for word in _words(text)]  # 0: in no text
            self._asked[text] = not self._runs.isdisjoint(_hashes(numbers))
        return self._asked[text]


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


def _hashes(numbers: Sequence[int]) -> Iterable[int]:
    # Whole numbers hash the same in every process, unlike words.
    return (hash(tuple(numbers[i : i + _RUN])) for i in range(len(numbers) - _RUN + 1))


def _joined(triplets: Sequence[Triplet]) -> list[Triplet]:
    """The triplets with groups that share a passage made one, named after the first of them."""
    parent: dict[str, str] = {}

    def root(group: str) -> str:
        while parent.setdefault(group, group) != group:
            group = parent[group]
        return group

    owner: dict[str, str] = {}
    for triplet in triplets:
        for text in (triplet.satisfying, triplet.violating):
            one, two = sorted((root(owner.setdefault(text, triplet.group)), root(triplet.group)))
            parent[two] = one
    return [replace(triplet, group=root(triplet.group)) for triplet in triplets]


def texts_in(files: Iterable[Path]) -> Iterator[str]:
    """Every text in jsonl files, whatever its key: what training must keep away from."""
    for file in files:
        for row in read_jsonl(file):
            yield from (value for value in row.values() if isinstance(value, str))


def split_by_group(
    triplets: Iterable[Triplet], *, share: float
) -> tuple[list[Triplet], list[Triplet]]:
    """Train and development parts; a group is wholly in one, chosen by its name's hash."""
    train: list[Triplet] = []
    development: list[Triplet] = []
    for triplet in triplets:
        draw = int(hashlib.sha256(triplet.group.encode()).hexdigest()[:8], 16) / 0xFFFFFFFF
        (development if draw < share else train).append(triplet)
    return train, development


def whole_groups(triplets: Sequence[Triplet], most: int) -> list[Triplet]:
    """Every n-th group, until there are `most` triplets or a few more."""
    groups: dict[str, list[Triplet]] = {}
    for triplet in triplets:
        groups.setdefault(triplet.group, []).append(triplet)
    every = max(1, len(triplets) // most)
    taken: list[Triplet] = []
    for group in list(groups.values())[::every]:
        if len(taken) >= most:
            break
        taken += group
    return taken


def cropped(triplets: Sequence[Triplet]) -> list[Triplet]:
    """Triplets over passages that share sentences, each passage cut to what it alone says.

    One whose passages share none, or of which one says nothing that the other does not, has no
    crop.
    """
    pairs = dict.fromkeys((triplet.satisfying, triplet.violating) for triplet in triplets)
    cuts = {pair: own_words([(0, 1)], dict(enumerate(pair))) for pair in pairs}
    return [
        replace(triplet, satisfying=good, violating=bad)
        for triplet in triplets
        for good, bad in (cuts[triplet.satisfying, triplet.violating].values(),)
        if good and bad and good != triplet.satisfying and bad != triplet.violating
    ]


def save_triplets(triplets: Sequence[Triplet], path: Path) -> None:
    """One JSON object a line."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = (json.dumps(asdict(triplet), ensure_ascii=False) + "\n" for triplet in triplets)
    path.write_text("".join(lines), encoding="utf-8")


def load_triplets(path: Path) -> list[Triplet]:
    """What `save_triplets` wrote; a broken line is named."""
    triplets = []
    for number, row in enumerate(read_jsonl(path), 1):
        try:
            triplets.append(Triplet(**row))
        except TypeError as error:
            raise InvalidFile(f"{path}:{number} is not a triplet: {error}") from error
    return triplets


def own_words(pairs: Sequence[tuple[int, int]], words: Mapping[int, str]) -> dict[int, str]:
    """Of each near-copy the sentences that one of its copies lacks; "" where none lacks any."""
    sentences = {i: split_sentences(words[i]) for pair in pairs for i in pair}
    held = {i: set(parts) for i, parts in sentences.items()}
    copies: dict[int, list[int]] = {i: [] for i in sentences}
    for i, j in pairs:
        copies[i].append(j)
        copies[j].append(i)
    return {
        i: " ".join(part for part in parts if any(part not in held[j] for j in copies[i]))
        for i, parts in sentences.items()
    }
