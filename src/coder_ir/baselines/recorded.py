"""Decompositions kept in a file, so that what took a language model repeats without it."""

import lzma
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from coder_ir.baselines.decompose import Intents, Rules
from coder_ir.datasets.documents import json_lines
from coder_ir.errors import InvalidFile, NotFound

_LISTS, _TEXTS = ("positive", "negative"), ("query", "passage", "formula")


class Recorded:
    """Answers from a jsonl file, plain or .xz; a query that is not in it is read by rules."""

    def __init__(self, path: Path) -> None:
        """Read objects with `query`, `positive`, `negative`, `passage` and `formula`.

        An object with only a `note` says how the file was made.
        """
        self.name = f"recorded: {path.name.split('.')[0]}"
        self._rules = Rules()
        self._kept = _read(path)

    def __len__(self) -> int:
        """Number of queries that the file has."""
        return len(self._kept)

    def __contains__(self, query: str) -> bool:
        """Whether the file has a query."""
        return _key(query) in self._kept

    def intents(self, query: str) -> Intents:
        """What the file says."""
        row = self._kept.get(_key(query))
        if row is None:
            return self._rules.intents(query)
        return Intents(tuple(row["positive"]), tuple(row["negative"]))

    def passages(self, query: str, n: int) -> list[str]:
        """The file's one passage, however many were asked for."""
        row = self._kept.get(_key(query))
        return self._rules.passages(query, n) if row is None else [row["passage"]]

    def formula(self, text: str, *, is_query: bool) -> str:
        """A query's formula as the file has it; documents are read by rules."""
        row = self._kept.get(_key(text)) if is_query else None
        return self._rules.formula(text, is_query=is_query) if row is None else str(row["formula"])


def _key(query: str) -> str:
    return re.sub(r"\s+", " ", query).strip().lower()


def _read(path: Path) -> dict[str, dict[str, Any]]:
    if not path.is_file():
        raise NotFound(f"no file {path} with recorded decompositions")
    kept = {}
    with lzma.open(path) if path.suffix == ".xz" else path.open("rb") as lines:
        for number, row in json_lines(lines, str(path)):
            if set(row) == {"note"}:
                continue
            _check(row, f"{path}:{number}")
            kept[_key(row["query"])] = row
    return kept


def _check(row: Mapping[str, Any], place: str) -> None:
    for name in _TEXTS:
        if not isinstance(row.get(name), str) or not row[name].strip():
            raise InvalidFile(f"{place}: {name} must be a text, got {row.get(name)!r}")
    for name in _LISTS:
        found = row.get(name)
        if not isinstance(found, list) or not all(isinstance(one, str) for one in found):
            raise InvalidFile(f"{place}: {name} must be a list of texts, got {found!r}")
    if not row["positive"]:
        raise InvalidFile(f"{place}: positive must name what the query wants, got []")
