"""Stage 2 data: sentence-level triplets, one small reader a public or written source."""

import csv
import hashlib
import json
import random
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import IO, Any

from coder_ir.errors import InvalidFile, NotFound
from coder_ir.types import Triplet

_FEVER_SECOND = ("v0.2/fever_symmetric_dev", "v0.2/fever_symmetric_test")
_KEPT_AWAY = frozenset({"conda-543"})  # its passage is in NevIR's test set (rows 1070-2, 1070-3)
Reader = Callable[[Path], Iterator[Triplet]]


def read_written(folder: Path) -> Iterator[Triplet]:
    """Contrast items: `qa` is satisfied by `a` and violated by `b`, `qb` the reverse."""
    for row in _jsonl(folder / "contrast.jsonl"):
        group = re.sub(r"^(conda-\d+)-\d+$", r"\1", row["id"])
        licence = "CC BY-SA" if "CC BY-SA" in row["source"] else "Apache-2.0"
        for query, good, bad in (
            (row["qa"], row["a"], row["b"]),
            (row.get("qb"), row["b"], row["a"]),
        ):
            if query:
                yield Triplet(query, good, bad, group, f"written: {row['source']}", licence)


def read_condaqa(folder: Path) -> Iterator[Triplet]:
    """Questions with a passage that answers yes (wanted) and an edit of it that answers no."""
    for row in _jsonl(folder / "dev_flip_triples.jsonl"):
        group = "conda-" + row["id"].split("-")[0]
        yield Triplet(
            row["question"], row["doc_yes"], row["doc_no"], group, "CondaQA dev", "Apache-2.0"
        )


def read_fever_symmetric(folder: Path) -> Iterator[Triplet]:
    """Claims with supporting and refuting evidence of the symmetric set."""
    evidence: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    groups: dict[str, str] = {}
    for name in ("v0.1/fever_symmetric_full", *_FEVER_SECOND):
        for row in _jsonl(folder / f"symmetric_{name}.jsonl"):
            claim = _untokenise(row["claim"])
            text = _untokenise(row.get("evidence_sentence") or row["evidence"])
            groups.setdefault(claim, f"fever-{_original(str(row['id']))}")
            if text not in evidence[claim][row["label"]]:
                evidence[claim][row["label"]].append(text)
    for claim, by_label in evidence.items():
        for good, bad in zip(by_label["SUPPORTS"], by_label["REFUTES"], strict=False):
            yield Triplet(claim, good, bad, groups[claim], "FeverSymmetric", "CC BY-SA 3.0")


def _original(row_id: str) -> str:
    """The FEVER id (six digits at most) that a generated one extends by 000000 and a number."""
    return row_id[:-7] if len(row_id) > 7 else row_id


def read_cad_nli(folder: Path) -> Iterator[Triplet]:
    """Hypotheses with a premise that entails and a minimally edited one that contradicts."""
    premises: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for part in ("train", "dev", "test"):
        for row in _tsv(folder / "revised_combined" / f"{part}.tsv"):
            premises[row["sentence2"]][row["gold_label"]].append(row["sentence1"])
    for number, (hypothesis, by_label) in enumerate(premises.items()):
        for good, bad in zip(by_label["entailment"], by_label["contradiction"], strict=False):
            yield Triplet(hypothesis, good, bad, f"cad-{number}", "CAD-NLI", "Apache-2.0")


def read_sem_anto_neg(folder: Path) -> Iterator[Triplet]:
    """Negated statements with their affirmative paraphrase and two near-opposites."""
    path = folder / "datasets" / "antonym-substitution" / "original" / "SemAntoNeg_v1.0.json"
    for row in _jsonl(path):
        good, group = row["sentences"][row["label"]], f"anto-{row['idx']}"
        for bad in row["sentences"]:
            if bad != good:
                yield Triplet(row["input"], good, bad, group, "SemAntoNeg", "CC BY-SA 4.0")


READERS: dict[str, Reader] = {
    "written": read_written,
    "CondaQA-dev": read_condaqa,
    "FeverSymmetric": read_fever_symmetric,
    "CAD-NLI": read_cad_nli,
    "CANNOT": read_sem_anto_neg,
}
"""Folder name to reader."""


def gather(root: Path, *, cap: int, seed: int) -> list[Triplet]:
    """Triplets of every known source folder under root.

    A public source gives at most `cap` (a seeded sample); written ones are all taken.
    """
    found: list[Triplet] = []
    for name, reader in READERS.items():
        if not (root / name).is_dir():
            continue
        triplets = [
            triplet
            for triplet in dict.fromkeys(reader(root / name))
            if triplet.group not in _KEPT_AWAY and triplet.satisfying != triplet.violating
        ]
        if name != "written" and len(triplets) > cap:
            triplets = random.Random(seed).sample(triplets, cap)
        found += triplets
    if not found:
        raise NotFound(f"no known source under {root}; expected folders named {', '.join(READERS)}")
    return _joined(found)


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


def save_triplets(triplets: Sequence[Triplet], path: Path) -> None:
    """One JSON object a line."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = (json.dumps(asdict(triplet), ensure_ascii=False) + "\n" for triplet in triplets)
    path.write_text("".join(lines), encoding="utf-8")


def load_triplets(path: Path) -> list[Triplet]:
    """What `save_triplets` wrote; a broken line is named."""
    triplets = []
    for number, row in enumerate(_jsonl(path), 1):
        try:
            triplets.append(Triplet(**row))
        except TypeError as error:
            raise InvalidFile(f"{path}:{number} is not a triplet: {error}") from error
    return triplets


def _jsonl(path: Path) -> Iterator[dict[str, Any]]:
    with _opened(path) as lines:
        for number, line in enumerate(lines, 1):
            try:
                yield json.loads(line)
            except ValueError as error:
                raise InvalidFile(f"{path}:{number} is not JSON: {error}") from error


def _tsv(path: Path) -> Iterator[dict[str, str]]:
    with _opened(path) as lines:
        yield from csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)


def _opened(path: Path) -> IO[str]:
    if not path.is_file():
        raise NotFound(f"no file {path}; the folder should hold the source as published")
    return path.open(encoding="utf-8", newline="")


_BRACKETS = {
    "-LRB-": "(",
    "-RRB-": ")",
    "-LSB-": "[",
    "-RSB-": "]",
    "``": '"',
    "''": '"',
    "--": "–",
}


def _untokenise(text: str) -> str:
    """Penn Treebank tokens back to ordinary spacing."""
    words = [_BRACKETS.get(word, word) for word in text.split()]
    text = re.sub(r" ([.,;:?!)\]]|n't\b|'s\b)", r"\1", " ".join(words))
    return re.sub(r"([(\[]) ", r"\1", text)
