"""Reading items: passages on one subject, each labelled for each question that is asked of them.

A file holds items under lines `# topic: NAME | domain: NAME`. An item starts with `@ KIND`; its
passages are lines `a: `, `b: ` and so on, its questions lines `q: QUERY => a+ b- c0` and, for a
bare phrase that a searcher wants kept out, `x: PHRASE => a+ b- c0`. `+` satisfies, `-` violates,
`0` is silent on the point.
"""

import lzma
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Literal

from coder_ir.errors import InvalidFile, NotFound

Label = Literal["satisfies", "violates", "silent"]
_LABELS: dict[str, Label] = {"+": "satisfies", "-": "violates", "0": "silent"}
_TOPIC = re.compile(r"# topic: (?P<topic>[^|]+?) \| domain: (?P<domain>[^|]+)")
_PASSAGE = re.compile(r"(?P<letter>[a-d]): (?P<text>.+)")
_QUESTION = re.compile(r"(?P<kind>[qx]): (?P<text>.+?) => (?P<labels>[a-d][+0-](?: [a-d][+0-])*)")


@dataclass(frozen=True, slots=True)
class LabelledQuery:
    """A query, or a phrase to keep out, and what each passage says to it."""

    text: str
    is_phrase: bool
    labels: Mapping[str, Label]  # by the letter of the passage


@dataclass(frozen=True, slots=True)
class ReadingItem:
    """Passages on one subject and what is asked of them."""

    kind: str  # how the passages differ: replaced, taken-back, ...
    topic: str
    domain: str
    passages: Mapping[str, str]  # by letter
    queries: tuple[LabelledQuery, ...]


def read_items(path: Path) -> list[ReadingItem]:
    """The items of a file, plain or xz; one that contradicts itself is refused."""
    if not path.is_file():
        raise NotFound(f"no reading items {path}")
    opener = lzma.open if path.suffix == ".xz" else open
    with opener(path, "rt", encoding="utf-8") as lines:
        items = list(_items(path, (str(line) for line in lines)))
    for item in items:
        _check(path, item)
    return items


def _items(path: Path, lines: Iterator[str]) -> Iterator[ReadingItem]:
    topic = domain = ""
    kind: str | None = None  # of the item that is being read
    passages: dict[str, str] = {}
    queries: list[LabelledQuery] = []
    for number, line in enumerate(map(str.strip, chain(lines, ["@ "])), 1):
        heading = _TOPIC.fullmatch(line)
        if heading or line.startswith("@"):
            if kind is not None:
                yield ReadingItem(kind, topic, domain, passages, tuple(queries))
            kind, passages, queries = None, {}, []
        if heading:
            topic, domain = heading["topic"], heading["domain"]
        elif line.startswith("@"):
            kind = line[1:].strip()
        elif kind and (passage := _PASSAGE.fullmatch(line)):
            passages[passage["letter"]] = passage["text"]
        elif kind and (asked := _QUESTION.fullmatch(line)):
            queries.append(_labelled(asked))
        elif line:
            raise InvalidFile(f"{path}:{number}: no heading, item, passage or question: {line!r}")


def _labelled(asked: re.Match[str]) -> LabelledQuery:
    labels = {word[0]: _LABELS[word[1]] for word in asked["labels"].split()}
    return LabelledQuery(asked["text"], asked["kind"] == "x", labels)


def _check(path: Path, item: ReadingItem) -> None:
    """Every question labels every passage, and one passage keeps to it that another breaks."""
    place = f"{path}: item {next(iter(item.passages.values()), '')[:60]!r} of {item.topic!r}"
    if not item.queries:
        raise InvalidFile(f"{place} asks nothing")
    for query in item.queries:
        if set(query.labels) != set(item.passages):
            raise InvalidFile(
                f"{place} has passages {', '.join(item.passages)}; {query.text!r} labels "
                f"{', '.join(query.labels)}"
            )
        if not {"satisfies", "violates"} <= set(query.labels.values()):
            raise InvalidFile(f"{place}: {query.text!r} needs a passage with + and one with -")
