"""Antonym pairs from WordNet's database files, and the compact list of them in the package."""

import csv
import gzip
import io
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from coder_ir.errors import InvalidFile, NotFound

_PARTS = ("adj", "adv", "noun", "verb")
_COLUMNS = ("word", "antonym", "synonym", "antonym_synonym", "gloss", "antonym_gloss")


@dataclass(frozen=True, slots=True)
class AntonymPair:
    """Two words that WordNet calls antonyms, each with a synonym ("" if none) and a gloss."""

    word: str
    antonym: str
    synonym: str
    antonym_synonym: str
    gloss: str
    antonym_gloss: str


@dataclass(frozen=True, slots=True)
class _Synset:
    words: tuple[str, ...]
    gloss: str
    antonyms: tuple[tuple[int, str, int, int], ...]  # own word, part, target offset, target word


def extract_antonyms(folder: Path) -> list[AntonymPair]:
    """Every antonym pointer (`!`) of the database once, sorted by word and antonym."""
    synsets = {part: _read_part(folder / f"data.{part}") for part in _PARTS}
    letters = {"a": "adj", "s": "adj", "r": "adv", "n": "noun", "v": "verb"}
    pairs: dict[tuple[str, str, str], AntonymPair] = {}
    for part, table in synsets.items():
        for synset in table.values():
            for own, letter, offset, other in synset.antonyms:
                target = synsets[letters[letter]].get(offset)
                if target is None:
                    raise InvalidFile(f"data.{part} points to {offset:08d}, which is not there")
                ends = ((synset, own), (target, other))
                pair = _pair(*sorted(ends, key=lambda end: end[0].words[end[1]]))
                pairs[(pair.word, pair.antonym, f"{part} {pair.gloss}")] = pair
    return [pairs[key] for key in sorted(pairs)]


def _pair(one: tuple[_Synset, int], two: tuple[_Synset, int]) -> AntonymPair:
    (synset, own), (target, other) = one, two
    word, antonym = synset.words[own], target.words[other]
    synonym = next((w for w in synset.words if w != word), "")
    antonym_synonym = next((w for w in target.words if w != antonym), "")
    return AntonymPair(word, antonym, synonym, antonym_synonym, synset.gloss, target.gloss)


def _read_part(path: Path) -> dict[int, _Synset]:
    if not path.is_file():
        raise NotFound(f"no WordNet database file {path}; give the folder that holds data.adj")
    synsets = {}
    with path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            if line.startswith("  "):  # the licence at the top of each file
                continue
            try:
                offset, synset = _parse(line)
            except (ValueError, IndexError) as error:
                raise InvalidFile(f"{path}:{number} is not a WordNet data line: {error}") from error
            synsets[offset] = synset
    return synsets


def _parse(line: str) -> tuple[int, _Synset]:
    # offset lex_file type word_count(hex) (word lex_id)* pointer_count pointer* | gloss
    head, _, gloss = line.partition("|")
    fields = head.split()
    n_words = int(fields[3], 16)
    words = tuple(_plain(fields[4 + 2 * i]) for i in range(n_words))
    start = 4 + 2 * n_words
    antonyms = []
    for i in range(int(fields[start])):
        symbol, target, part, numbers = fields[start + 1 + 4 * i : start + 5 + 4 * i]
        if symbol == "!":
            antonyms.append((int(numbers[:2], 16) - 1, part, int(target), int(numbers[2:], 16) - 1))
    return int(fields[0]), _Synset(words, gloss.split(";")[0].strip(), tuple(antonyms))


def _plain(word: str) -> str:
    return word.partition("(")[0].replace("_", " ")  # (p), (a), (ip) mark an adjective's position


def save_antonyms(pairs: list[AntonymPair], path: Path) -> None:
    """Write the compact list: gzipped TSV, the same bytes for the same pairs."""
    text = io.StringIO()
    writer = csv.writer(text, delimiter="\t", lineterminator="\n")
    writer.writerow(_COLUMNS)
    writer.writerows([getattr(pair, column) for column in _COLUMNS] for pair in pairs)
    path.write_bytes(gzip.compress(text.getvalue().encode(), mtime=0))


def load_antonyms(path: Path | None = None) -> list[AntonymPair]:
    """The pairs of a compact list; without a path, the list inside the package."""
    if path is None:
        data = (resources.files("coder_ir") / "datasets" / "antonyms.tsv.gz").read_bytes()
    else:
        if not path.is_file():
            raise NotFound(f"no antonym list {path}")
        data = path.read_bytes()
    rows = csv.DictReader(io.StringIO(gzip.decompress(data).decode()), delimiter="\t")
    return [AntonymPair(**{column: row[column] for column in _COLUMNS}) for row in rows]
