"""Decompositions kept in a file, so that what took a language model repeats without it."""

import lzma
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from coder_ir.baselines.decompose import Intents, ParserDecomposer
from coder_ir.datasets.documents import json_lines
from coder_ir.errors import InvalidFile, NotFound

_LISTS, _TEXTS = ("positive", "negative"), ("query", "passage", "formula")


class Recorded:
    """Answers from a jsonl file, plain or .xz; a query that is not in it is left to our parser."""

    def __init__(self, path: Path) -> None:
        """Read objects with `query`, `positive`, `negative`, `passage` and `formula`.

        An object with only a `note` says how the file was made.
        """
        self.name = f"recorded: {path.name.split('.')[0]}"
        self._parsed = ParserDecomposer()
        self._kept = _read(path)

    def __len__(self) -> int:
        """Number of queries that the file has."""
        return len(self._kept)

    def missing(self, queries: Sequence[str]) -> list[str]:
        """The queries that the file has not, and that our parser reads."""
        return [query for query in queries if _key(query) not in self._kept]

    def intents(self, query: str) -> Intents:
        """What the file says."""
        row = self._kept.get(_key(query))
        if row is None:
            return self._parsed.intents(query)
        return Intents(tuple(row["positive"]), tuple(row["negative"]))

    def passages(self, query: str, n: int) -> list[str]:
        """The file's one passage, however many were asked for."""
        row = self._kept.get(_key(query))
        return self._parsed.passages(query, n) if row is None else [row["passage"]]

    def formula(self, query: str) -> str:
        """What the file says."""
        row = self._kept.get(_key(query))
        return self._parsed.formula(query) if row is None else str(row["formula"])

    def formulas(self, documents: Sequence[str]) -> list[str]:
        """By their words."""
        return self._parsed.formulas(documents)


def _key(query: str) -> str:
    return re.sub(r"\s+", " ", query).strip().lower()


def _read(path: Path) -> dict[str, dict[str, Any]]:
    if not path.is_file():
        raise NotFound(
            f"no file {path} with recorded decompositions; --decompose takes parser, llm or a file"
        )
    kept = {}
    try:
        with lzma.open(path) if path.suffix == ".xz" else path.open("rb") as lines:
            for number, row in json_lines(lines, str(path)):
                if set(row) == {"note"}:
                    continue
                _check(row, f"{path}:{number}")
                kept[_key(row["query"])] = row
    except (lzma.LZMAError, EOFError) as error:
        raise InvalidFile(f"{path} is damaged ({error}); get it anew") from error
    return kept


def _check(row: Mapping[str, Any], place: str) -> None:
    for name in _TEXTS:
        if not _is_text(row.get(name)):
            raise InvalidFile(f"{place}: {name} must be a text, got {row.get(name)!r}")
    for name in _LISTS:
        found = row.get(name)
        if not isinstance(found, list) or not all(_is_text(one) for one in found):
            raise InvalidFile(f"{place}: {name} must be a list of texts, got {found!r}")
    if not row["positive"]:
        raise InvalidFile(f"{place}: positive must name what the query wants, got []")


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())
