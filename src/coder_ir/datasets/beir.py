"""BEIR folders: corpus.jsonl, queries.jsonl and qrels/*.tsv."""

from pathlib import Path

from coder_ir.datasets.documents import json_lines, read_documents
from coder_ir.errors import InvalidFile, NotFound
from coder_ir.types import Document, Qrels, Query

_HEADER = ["query-id", "corpus-id", "score"]


def load_corpus(folder: Path) -> list[Document]:
    """The documents of `corpus.jsonl`."""
    return list(read_documents([str(folder / "corpus.jsonl")]))


def load_queries(path: Path) -> list[Query]:
    """Queries of a jsonl file with `_id` (or `id`, `query_id`) and `text` (or `query`)."""
    if not path.is_file():
        raise NotFound(f"no query file {path}")
    queries = []
    with path.open("rb") as lines:
        for number, row in json_lines(lines, str(path)):
            query_id = next((row[n] for n in ("_id", "id", "query_id") if n in row), None)
            text = next((row[n] for n in ("text", "query") if n in row), None)
            if query_id is None or not isinstance(text, str) or not text.strip():
                raise InvalidFile(f"{path}:{number} needs an _id and a text that is not empty")
            queries.append(Query(str(query_id), text))
    seen: set[str] = set()
    for query in queries:
        if query.query_id in seen:
            raise InvalidFile(f"{path} has the query id {query.query_id!r} twice")
        seen.add(query.query_id)
    return queries


def load_qrels(path: Path) -> Qrels:
    """Grades of a `query-id corpus-id score` TSV, with or without its header."""
    if not path.is_file():
        raise NotFound(f"no judgement file {path}")
    grades: dict[str, dict[str, int]] = {}
    try:
        lines = path.read_text(encoding="utf-8-sig").split("\n")
    except UnicodeDecodeError as error:
        raise InvalidFile(f"{path} is not UTF-8 ({error}); save it as UTF-8") from error
    for number, line in enumerate(lines, 1):
        cells = line.rstrip("\r").split("\t")
        if not line.strip() or (number == 1 and cells == _HEADER):
            continue
        try:
            query_id, doc_id, grade = cells
            grades.setdefault(query_id, {})[doc_id] = int(grade)
        except ValueError as error:
            raise InvalidFile(f"{path}:{number} is not query, document, grade: {cells}") from error
    return Qrels(grades)
