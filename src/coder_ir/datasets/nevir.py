"""NevIR: pairs of near-identical passages, each the answer to one of two contrasting queries."""

from dataclasses import dataclass
from pathlib import Path

from coder_ir.datasets.documents import json_lines
from coder_ir.errors import InvalidFile, NotFound
from coder_ir.types import SATISFYING, VIOLATING, Document, Qrels, Query


@dataclass(frozen=True, slots=True)
class ContrastSet:
    """Queries over a pooled corpus, each with one satisfying and one violating document."""

    documents: tuple[Document, ...]  # distinct texts
    queries: tuple[Query, ...]
    qrels: Qrels
    pairs: tuple[tuple[str, str], ...]  # query ids that belong together


def load_nevir(path: Path) -> ContrastSet:
    """Rows with q1, q2, doc1, doc2; doc1 satisfies q1 and violates q2, doc2 the reverse."""
    if not path.is_file():
        raise NotFound(f"no NevIR file {path}")
    ids: dict[str, str] = {}  # text to document id
    queries, grades, pairs = [], {}, []
    with path.open("rb") as lines:
        for number, row in json_lines(lines, str(path)):
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
    return ContrastSet(documents, tuple(queries), Qrels(grades), tuple(pairs))
