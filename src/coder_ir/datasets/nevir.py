"""NevIR: pairs of near-identical passages, each the answer to one of two contrasting queries."""

import csv
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from coder_ir.datasets.documents import json_lines
from coder_ir.datasets.testset import TestSet
from coder_ir.errors import InvalidFile, NotFound
from coder_ir.types import SATISFYING, VIOLATING, Document, Qrels, Query


def load_nevir(path: Path) -> TestSet:
    """Rows with q1, q2, doc1, doc2; doc1 satisfies q1 and violates q2, doc2 the reverse.

    Reads jsonl, or CSV by the file's ending. Equal passages are one document of the pooled corpus.
    """
    if not path.is_file():
        raise NotFound(f"no NevIR file {path}")
    ids: dict[str, str] = {}  # text to document id
    queries, grades, pairs = [], {}, []
    for number, row in _rows(path):
        try:
            texts = [row["doc1"], row["doc2"]]
            asked = [Query(f"{row['id']}-q1", row["q1"]), Query(f"{row['id']}-q2", row["q2"])]
        except KeyError as error:
            raise InvalidFile(f"{path}:{number} has no field {error}") from error
        one, two = (ids.setdefault(text, f"d{len(ids)}") for text in texts)
        grades[asked[0].query_id] = {one: SATISFYING, two: VIOLATING}
        grades[asked[1].query_id] = {two: SATISFYING, one: VIOLATING}
        queries += asked
        pairs.append((asked[0].query_id, asked[1].query_id))
    documents = tuple(Document(doc_id, text) for text, doc_id in ids.items())
    return TestSet(documents, tuple(queries), Qrels(grades), tuple(pairs))


def _rows(path: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    if path.suffix == ".csv":
        with path.open(encoding="utf-8-sig", newline="") as lines:
            reader = csv.DictReader(lines)
            try:
                for row in reader:
                    if None in row or None in row.values():
                        raise InvalidFile(
                            f"{path}:{reader.line_num} has another number of cells than the header"
                        )
                    yield reader.line_num, row
            except UnicodeDecodeError as error:
                raise InvalidFile(f"{path} is not UTF-8 ({error}); save it as UTF-8") from error
    else:
        with path.open("rb") as lines:
            yield from json_lines(lines, str(path))
