"""Run files of any retriever: TREC, MS MARCO's TSV, jsonl, or JSON as ranx and BEIR write it."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coder_ir.datasets.documents import json_lines
from coder_ir.errors import InvalidFile, NotFound

Rankings = dict[str, list[str]]
_CHUNK = 1 << 18  # bytes parsed at a time; small lists of words stay in the cache
_TREC, _MSMARCO = 6, 3  # columns
_QUERY_FIELDS = ("query_id", "qid", "_id")
_DOC_FIELDS = ("doc_id", "docid", "pid")


@dataclass(frozen=True, slots=True)
class _Part:
    """Some lines of one query."""

    query_id: str
    docs: Sequence[str]
    scores: NDArray[np.float64]


def load_run(path: Path, *, depth: int) -> Rankings:
    """The first `depth` documents of each query, best first, in trec_eval's order.

    Documents rank by descending score in single precision, as trec_eval keeps it, equal scores by
    descending id; ranks in the file are not read, but for MS MARCO's TSV, which has no scores.

    Args:
        path: lines `query Q0 document rank score tag` (TREC) or `query document rank` with tabs
            (MS MARCO), jsonl with `query_id`, `doc_id` and `score`, or one JSON object, query to
            document to score.
        depth: the deepest cut-off that will be asked for.
    """
    if not path.is_file():
        raise NotFound(f"no run file {path}")
    with path.open("rb") as file:
        start = file.read(1 << 16).lstrip(b"\xef\xbb\xbf \t\r\n")
    if not start:
        raise InvalidFile(f"{path} is empty; an empty run would score every query as unanswered")
    parts = _json_parts(path, start) if start[:1] == b"{" else _line_parts(path)
    rankings = _best(_joined(parts), depth, path)
    if not rankings:
        raise InvalidFile(f"{path} holds no queries; every one would score as unanswered")
    return rankings


def _joined(parts: Iterator[_Part]) -> Iterator[_Part]:
    """Parts that follow each other with one query, such as a chunk's end makes, as one."""
    for query_id, group in groupby(parts, key=lambda part: part.query_id):
        first, *more = group
        if more:
            docs = [doc_id for part in (first, *more) for doc_id in part.docs]
            first = _Part(query_id, docs, np.concatenate([p.scores for p in (first, *more)]))
        yield first


def _best(parts: Iterator[_Part], depth: int, path: Path) -> Rankings:
    """Cut each query's lines to the depth; queries whose lines lie apart are put together."""
    found: dict[str, list[tuple[float, str]]] = {}
    for part in parts:
        own = found.setdefault(part.query_id, [])
        with np.errstate(over="ignore"):
            scores = part.scores.astype(np.float32)
        if len(scores) > depth:
            least = np.partition(scores, len(scores) - depth)[len(scores) - depth]
            places: Sequence[int] = np.flatnonzero(scores >= least).tolist()
        else:
            places = range(len(scores))
        own += [(float(scores[i]), part.docs[i]) for i in places]
        if len(set(part.docs)) < len(part.docs):
            twice = next(d for i, d in enumerate(part.docs) if d in part.docs[:i])
            raise InvalidFile(f"{path} lists document {twice!r} twice for query {part.query_id!r}")
    rankings = {}
    for query_id, own in found.items():
        own.sort(reverse=True)
        rankings[query_id] = [doc_id for _, doc_id in own[:depth]]
        if len({doc_id for _, doc_id in own}) < len(own):
            raise InvalidFile(f"{path} lists a document twice for query {query_id!r}")
    return rankings


def _line_parts(path: Path) -> Iterator[_Part]:
    """Whole lines a chunk at a time; columns are cut out of one flat list of words."""
    first, columns = 1, 0
    with path.open("rb") as file:
        rest = b""
        while block := file.read(_CHUNK):
            block = rest + block
            end = block.rfind(b"\n") + 1
            block, rest = block[:end], block[end:]
            if block.strip():
                columns = columns or _columns(block, path)
                yield from _chunk_parts(block, columns, first, path)
            first += block.count(b"\n")
        if rest.strip():
            columns = columns or _columns(rest, path)
            yield from _chunk_parts(rest + b"\n", columns, first, path)


def _columns(block: bytes, path: Path) -> int:
    line = next(filter(None, map(bytes.strip, block.split(b"\n", 50))), b"")
    count = len(line.removeprefix(b"\xef\xbb\xbf").split())
    if count not in (_TREC, _MSMARCO):
        raise InvalidFile(
            f"{path} is no run: its first line has {count} columns; TREC's `query Q0 document rank "
            f"score tag` has {_TREC}, MS MARCO's `query document rank` {_MSMARCO}"
        )
    return count


def _chunk_parts(block: bytes, columns: int, first: int, path: Path) -> Iterator[_Part]:
    try:
        words = block.decode("utf-8-sig" if first == 1 else "utf-8").split()
    except UnicodeDecodeError as error:
        raise InvalidFile(f"{path} is not UTF-8 ({error}); save it as UTF-8") from error
    if not words:
        return
    try:
        if columns == _TREC:
            scores = np.array(words[4::columns], dtype=np.float64)
        else:
            scores = -np.array(words[2::columns], dtype=np.float64)
    except ValueError:
        scores = np.zeros(0)
    lines = sum(map(bool, map(bytes.strip, block.split(b"\n"))))
    if len(words) != lines * columns or len(scores) != lines or not np.isfinite(scores).all():
        raise InvalidFile(_first_bad_line(block, columns, first, path))
    queries, docs = words[0::columns], words[2 if columns == _TREC else 1 :: columns]
    starts = [0, *(i for i in range(1, lines) if queries[i] != queries[i - 1]), lines]
    for low, high in pairwise(starts):
        yield _Part(queries[low], docs[low:high], scores[low:high])


def _first_bad_line(block: bytes, columns: int, first: int, path: Path) -> str:
    """What is wrong, and where."""
    for number, line in enumerate(block.split(b"\n"), first):
        words = line.decode("utf-8").split()
        if not words:
            continue
        shown = " ".join(words)[:80]
        if len(words) != columns:
            return f"{path}:{number} has {len(words)} columns, not {columns}: {shown!r}"
        try:
            value = float(words[4] if columns == _TREC else words[2])
        except ValueError:
            return f"{path}:{number} has a score or rank that is no number: {shown!r}"
        if not np.isfinite(value):
            return f"{path}:{number} has a score that is not finite: {shown!r}"
    return f"{path} cannot be read as a run from line {first} on"


def _json_parts(path: Path, start: bytes) -> Iterator[_Part]:
    """One object a line where the first line is one with a query; else one object in all."""
    try:
        head = json.loads(start.split(b"\n", 1)[0])
        lines = any(name in head for name in _QUERY_FIELDS)
    except ValueError:
        lines = False
    return _jsonl_parts(path) if lines else _object_parts(path)


def _jsonl_parts(path: Path) -> Iterator[_Part]:
    found: dict[str, dict[str, float]] = {}
    with path.open("rb") as file:
        for number, row in json_lines(file, str(path)):
            query_id = _field(row, _QUERY_FIELDS, f"{path}:{number}")
            doc_id = _field(row, _DOC_FIELDS, f"{path}:{number}")
            own = found.setdefault(query_id, {})
            if doc_id in own:
                raise InvalidFile(f"{path}:{number} lists document {doc_id!r} a second time")
            own[doc_id] = _score(row.get("score"), f"{path}:{number}")
    yield from _scored(found)


def _object_parts(path: Path) -> Iterator[_Part]:
    try:
        raw = json.loads(path.read_text(encoding="utf-8-sig"))
    except ValueError as error:
        raise InvalidFile(f"{path} is not JSON: {error}") from error
    if not isinstance(raw, dict) or not all(isinstance(own, dict) for own in raw.values()):
        raise InvalidFile(f"{path} should map queries to documents to scores")
    yield from _scored(
        {
            str(q): {str(d): _score(s, f"{path}, query {q!r}") for d, s in own.items()}
            for q, own in raw.items()
        }
    )


def _scored(found: Mapping[str, Mapping[str, float]]) -> Iterator[_Part]:
    for query_id, own in found.items():
        yield _Part(query_id, list(own), np.array(list(own.values()), dtype=np.float64))


def _field(row: Mapping[str, Any], names: Sequence[str], place: str) -> str:
    for name in names:
        if row.get(name) is not None:
            return str(row[name])
    raise InvalidFile(f"{place} has none of the fields {', '.join(names)}")


def _score(value: Any, place: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not np.isfinite(value):
        raise InvalidFile(f"{place}: a score is a finite number, got {value!r}")
    return float(value)
