"""Judgement files: TREC, BEIR's TSV, label words, or JSON."""

import json
from pathlib import Path

from coder_ir.errors import InvalidFile, NotFound
from coder_ir.types import NEUTRAL, SATISFYING, VIOLATING, Qrels

_HEADER = ["query-id", "corpus-id", "score"]
_LABELS = {"satisfying": SATISFYING, "neutral": NEUTRAL, "violating": VIOLATING}


def load_qrels(path: Path) -> Qrels:
    """Grades by query and document, whichever form the file has.

    Lines are `query 0 document grade` (TREC) or `query document grade` (BEIR, with or without its
    header); a grade is a whole number or one of satisfying, neutral, violating. A file that starts
    with a brace is JSON: query to document to grade.
    """
    if not path.is_file():
        raise NotFound(f"no judgement file {path}")
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidFile(f"{path} is not UTF-8 ({error}); save it as UTF-8") from error
    grades = _from_json(text, path) if text.lstrip().startswith("{") else _from_lines(text, path)
    if not grades:
        raise InvalidFile(f"{path} holds no judgements")
    return Qrels(grades)


def _from_lines(text: str, path: Path) -> dict[str, dict[str, int]]:
    grades: dict[str, dict[str, int]] = {}
    for number, line in enumerate(text.replace("\r\n", "\n").split("\n"), 1):
        cells = line.split("\t") if "\t" in line else line.split()
        if not line.strip() or (number == 1 and cells == _HEADER):
            continue
        if len(cells) not in (3, 4):
            raise InvalidFile(
                f"{path}:{number} should be query, document, grade (or query, 0, document, grade), "
                f"got {cells}"
            )
        query_id, doc_id, word = cells[0].strip(), cells[-2].strip(), cells[-1].strip()
        grade = _grade(word, f"{path}:{number}")
        own = grades.setdefault(query_id, {})
        if own.setdefault(doc_id, grade) != grade:
            raise InvalidFile(
                f"{path}:{number} grades document {doc_id!r} of query {query_id!r} {grade}, an "
                f"earlier line {own[doc_id]}"
            )
    return grades


def _from_json(text: str, path: Path) -> dict[str, dict[str, int]]:
    try:
        raw = json.loads(text)
        return {
            str(query_id): {str(d): _grade(str(g), f"{path}, {query_id}") for d, g in own.items()}
            for query_id, own in raw.items()
        }
    except (ValueError, AttributeError) as error:
        raise InvalidFile(f"{path} is not query to document to grade in JSON: {error}") from error


def _grade(word: str, place: str) -> int:
    try:
        return _LABELS.get(word.lower()) or int(word)
    except ValueError as error:
        raise InvalidFile(
            f"{place}: a grade is a whole number or {', '.join(_LABELS)}, got {word!r}"
        ) from error
