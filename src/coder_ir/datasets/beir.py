"""BEIR folders: corpus.jsonl, queries.jsonl and qrels/*.tsv."""

from pathlib import Path

from coder_ir.datasets.documents import json_lines, read_documents
from coder_ir.datasets.qrels import load_qrels
from coder_ir.datasets.testset import TestSet
from coder_ir.errors import InvalidFile, NotFound
from coder_ir.types import Document, Query


def load_beir(folder: Path, *, qrels: str = "qrels/test.tsv") -> TestSet:
    """A folder of a BEIR dataset; queries without a judgement are left out."""
    judged = load_qrels(folder / qrels)
    queries = [q for q in load_queries(folder / "queries.jsonl") if q.query_id in judged.grades]
    return TestSet(tuple(load_corpus(folder)), tuple(queries), judged)


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
