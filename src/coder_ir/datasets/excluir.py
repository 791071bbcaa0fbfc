"""ExcluIR: questions that rule one document out, over a corpus of short encyclopedia passages."""

import json
from pathlib import Path
from typing import Any

from coder_ir.datasets.testset import TestSet
from coder_ir.errors import InvalidFile, NotFound
from coder_ir.types import SATISFYING, VIOLATING, Document, Qrels, Query

CORPUS, QUERIES = "corpus.json", "test_manual_final.json"
# The published file has the latter names, the authors' own scripts the former.
_QUESTIONS = ("ExcluQ", "RQ_rewrite")
_PLACES = ("index", "corpus_sub_index")


def load_excluir(folder: Path) -> TestSet:
    """`corpus.json`, a list of passages; `test_manual_final.json`, questions with two places.

    The first is the place of the excluded passage, the second that of the wanted one.
    """
    corpus, rows = (_array(folder / name) for name in (CORPUS, QUERIES))
    documents = tuple(Document(f"d{i}", _text(item, folder, i)) for i, item in enumerate(corpus))
    queries, grades = [], {}
    for number, row in enumerate(rows):
        place = f"{folder / QUERIES}, entry {number}"
        try:
            question = next(row[name] for name in _QUESTIONS if name in row)
            places = next(row[name] for name in _PLACES if name in row)
            excluded, wanted = (f"d{int(i)}" for i in places)
        except (StopIteration, KeyError, TypeError, ValueError) as error:
            raise InvalidFile(
                f"{place} needs {' or '.join(_QUESTIONS)}, and {' or '.join(_PLACES)} of two, "
                f"got {row!r:.120}"
            ) from error
        known = len(documents)
        if not all(0 <= int(doc_id[1:]) < known for doc_id in (excluded, wanted)):
            raise InvalidFile(f"{place} points past the {known} passages: {places}")
        query = Query(f"q{number}", question)
        queries.append(query)
        grades[query.query_id] = {wanted: SATISFYING, excluded: VIOLATING}
    return TestSet(documents, tuple(queries), Qrels(grades))


def _array(path: Path) -> list[Any]:
    if not path.is_file():
        raise NotFound(f"no ExcluIR file {path}")
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise InvalidFile(f"{path} is not JSON: {error}") from error
    if not isinstance(found, list):
        raise InvalidFile(f"{path} should hold a list, got {type(found).__name__}")
    return found


def _text(item: Any, folder: Path, place: int) -> str:
    """A passage is a text, or an object with one."""
    text = item.get("text") if isinstance(item, dict) else item
    if not isinstance(text, str):
        raise InvalidFile(f"{folder / CORPUS}, entry {place} is no passage: {item!r:.80}")
    return text
