"""Reviewed sheets as test sets: the ones in the package, or a person's own."""

import json
from collections.abc import Iterable, Sequence
from importlib import resources
from pathlib import Path

from coder_ir.datasets.diagnostics.sheet import KEEP, KINDS, Pair, read_sheet
from coder_ir.datasets.testset import TestSet
from coder_ir.errors import InvalidFile, InvalidValue, NotFound
from coder_ir.types import NEUTRAL, SATISFYING, VIOLATING, Document, Qrels, Query

FOLDER = "datasets/diagnostics"  # in the package


def load_diagnostics(kind: str) -> TestSet:
    """The reviewed set of a kind that ships with the package."""
    return load_reviewed(shipped_sheet(kind), kind=kind)


def shipped_sheet(kind: str) -> Path:
    """Where the package keeps the sheet of a kind; not every version has one."""
    if kind not in KINDS:
        raise InvalidValue(f"no kind {kind!r}; there are {', '.join(KINDS)}")
    path = Path(str(resources.files("coder_ir"))) / FOLDER / f"{kind}.csv.xz"
    if not path.is_file():
        raise NotFound(
            f"this version ships no reviewed {kind} set ({path.name}); make one with: "
            f"coder-ir data diagnostics --kind {kind} --source BEIR_FOLDER -o sheet.csv"
        )
    return path


def load_reviewed(path: Path, *, kind: str) -> TestSet:
    """The kept rows of a sheet, which are all of one kind."""
    if kind not in KINDS:
        raise InvalidValue(f"no kind {kind!r}; there are {', '.join(KINDS)}")
    kept = [pair for pair in read_sheet(path) if pair.decision == KEEP]
    if other := next((pair for pair in kept if pair.kind != kind), None):
        raise InvalidFile(f"{path}: pair {other.pair_id!r} is of kind {other.kind}, not {kind}")
    if not kept:
        raise InvalidFile(f"{path} has no row with the decision {KEEP!r}; review it first")
    return testset_of(kept)


def testset_of(pairs: Sequence[Pair]) -> TestSet:
    """Two queries a pair over the documents of all pairs; equal texts are one document."""
    ids: dict[str, str] = {}  # text to document id
    queries: list[Query] = []
    grades: dict[str, dict[str, int]] = {}
    couples: list[tuple[str, str]] = []
    for pair in pairs:
        ours, theirs, beside = (_ids(pair, names, ids) for names in _SIDES)
        if len({*ours, *theirs, *beside}) < len(ours) + len(theirs) + len(beside):
            raise InvalidFile(f"pair {pair.pair_id!r} has one text in two of its documents")
        neutral = dict.fromkeys(beside, NEUTRAL)
        asked = (f"{pair.pair_id}-qa", f"{pair.pair_id}-qb")
        queries += [Query(asked[0], pair.query_a), Query(asked[1], pair.query_b)]
        for query_id, good, bad in ((asked[0], ours, theirs), (asked[1], theirs, ours)):
            grades[query_id] = (
                dict.fromkeys(good, SATISFYING) | neutral | dict.fromkeys(bad, VIOLATING)
            )
        couples.append(asked)
    _judge_across(pairs, set(ids.values()), grades)
    documents = tuple(Document(doc_id, text) for text, doc_id in ids.items())
    return TestSet(documents, tuple(queries), Qrels(grades), tuple(couples))


def _judge_across(
    pairs: Iterable[Pair], known: set[str], grades: dict[str, dict[str, int]]
) -> None:
    """Add the passages of other pairs that a query rules out too."""
    for pair in pairs:
        for side, named in (("qa", pair.also_a), ("qb", pair.also_b)):
            own = grades[f"{pair.pair_id}-{side}"]
            for doc_id in named.split():
                if doc_id not in known or doc_id in own:
                    raise InvalidFile(
                        f"pair {pair.pair_id!r} names {doc_id!r}, which is no passage of another "
                        "pair, or is named twice"
                    )
                own[doc_id] = VIOLATING


_SIDES = (("a1", "a2"), ("b1", "b2"), ("neutral1", "neutral2"))


def _ids(pair: Pair, names: tuple[str, str], ids: dict[str, str]) -> list[str]:
    """Document ids of a side; a text seen for the first time is named after its place."""
    texts = [(name, getattr(pair, name)) for name in names]
    return [ids.setdefault(text, f"{pair.pair_id}-{name}") for name, text in texts if text]


def save_beir(found: TestSet, folder: Path) -> None:
    """Write corpus.jsonl, queries.jsonl and qrels/test.tsv with grades 2, 1 and -1."""
    if folder.is_file():
        raise InvalidValue(f"{folder} is a file; name a folder to write the set into")
    (folder / "qrels").mkdir(parents=True, exist_ok=True)
    rows = [{"_id": d.doc_id, "title": d.title, "text": d.text} for d in found.documents]
    asked = [{"_id": query.query_id, "text": query.text} for query in found.queries]
    for name, objects in (("corpus.jsonl", rows), ("queries.jsonl", asked)):
        lines = (json.dumps(row, ensure_ascii=False) + "\n" for row in objects)
        (folder / name).write_text("".join(lines), encoding="utf-8")
    judged = (
        f"{query_id}\t{doc_id}\t{grade}\n"
        for query_id, own in found.qrels.grades.items()
        for doc_id, grade in own.items()
    )
    header = "query-id\tcorpus-id\tscore\n"
    (folder / "qrels" / "test.tsv").write_text(header + "".join(judged), encoding="utf-8")
