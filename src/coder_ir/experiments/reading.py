"""What the verifier reads right, on data that it was not trained on."""

import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import product
from pathlib import Path

from coder_ir.encoders import Runtime
from coder_ir.encoders.registry import BUILT_IN
from coder_ir.experiments.setup import Report, Setup
from coder_ir.experiments.tables import Table, percent
from coder_ir.metrics import Estimate, mean_with_interval
from coder_ir.retriever import Retriever
from coder_ir.searching import SearchOptions
from coder_ir.training.reading_items import Label, ReadingItem, read_items
from coder_ir.training.sources import read_contrast_items
from coder_ir.types import Document, Hit, Ranking, Reading, Verifier
from coder_ir.verifier import load_verifier

_WORTH: Mapping[Label, int] = {"satisfies": 2, "silent": 1, "violates": 0}
_COLUMNS = ("satisfies over violates", "satisfies over silent", "silent over violates", "order")
_ALL = 900  # passages of the triples


@dataclass(frozen=True, slots=True)
class _Case:
    """A query and its labelled passages."""

    query: str
    passages: Sequence[tuple[str, Label]]
    group: str


_Scorer = Callable[[_Case], Sequence[float]]


def measure_reading(setup: Setup, report: Report) -> Table:
    """How often the verifier, and a search that uses it, put passages in the right order."""
    verifier = load_verifier()
    folder = setup.written.parent / "reading"
    triples = read_items(folder / "triples.txt.xz")
    cases = {
        "300 triples": _of_items(triples),
        "reading items, development": _of_items(read_items(folder / "development.txt.xz")),
        "contrast items, development": _of_contrasts(setup.written),
    }
    figures: dict[str, dict[str, Estimate]] = {}
    for name, own in cases.items():
        report(f"reading: {name}, {len(own)} queries")
        figures[name] = _scores(own, partial(_margins, verifier))
    for name in ("ours", "edits"):
        own = [case for case in cases["contrast items, development"] if case.group == name]
        figures[f"of them {name}"] = _scores(own, partial(_margins, verifier))
    report("reading: searches over the passages of the triples")
    figures |= _searched(triples, cases["300 triples"], setup)
    return Table(
        name="reading",
        title="What the verifier reads right",
        columns=("data", "queries", *_COLUMNS),
        rows=tuple(_row(name, found, cases) for name, found in figures.items()),
        notes=(
            "Share of pairs of passages in the right order, and of queries with all of them in "
            "order; percent, 95% bootstrap interval over queries. The verifier orders by the "
            "probability of satisfies minus that of violates. The triples (denies, silent, "
            "affirms) were written by two authors before any verifier was trained and are only "
            f"measured on; searches rank them among all {_ALL} passages. Lower risk: the one that "
            "satisfies has the lower risk.",
        ),
        figures={name: {m: asdict(e) for m, e in own.items()} for name, own in figures.items()},
    )


def _row(
    name: str, found: Mapping[str, Estimate], cases: Mapping[str, Sequence[_Case]]
) -> tuple[str, ...]:
    count = str(max(estimate.n for estimate in found.values()))
    return (name, count, *(percent(found[c]) if c in found else "–" for c in _COLUMNS))


def worded(text: str, *, is_phrase: bool) -> str:
    """A phrase to keep out as a verifier is asked about it."""
    return f"without {text}" if is_phrase else text


def _of_items(items: Iterable[ReadingItem]) -> list[_Case]:
    return [
        _Case(
            worded(query.text, is_phrase=query.is_phrase),
            [(item.passages[letter], label) for letter, label in query.labels.items()],
            item.kind,
        )
        for item in items
        for query in item.queries
    ]


def _of_contrasts(written: Path) -> list[_Case]:
    rows = read_contrast_items(written, "contrast.development.jsonl*")
    return [
        _Case(
            row[field],
            [(row[good], "satisfies"), (row[bad], "violates")],
            "ours" if row["source"] == "ours" else "edits",
        )
        for row in rows
        for field, good, bad in (("qa", "a", "b"), ("qb", "b", "a"))
        if row.get(field)
    ]


def _margins(verifier: Verifier, case: _Case) -> list[float]:
    """How much more a passage satisfies than violates."""
    readings = verifier.read(case.query, [text for text, _ in case.passages])
    return [_margin(reading) for reading in readings]


def _margin(reading: Reading) -> float:
    return reading.satisfies - reading.violates


def _scores(cases: Sequence[_Case], score_of: _Scorer) -> dict[str, Estimate]:
    """The mean over queries of each kind of pair."""
    values: dict[str, list[float]] = defaultdict(list)
    for case in cases:
        labels = [label for _, label in case.passages]
        for name, right in _right(labels, score_of(case)).items():
            values[name].append(right)
    return {name: mean_with_interval(values[name]) for name in _COLUMNS if values[name]}


def _right(labels: Sequence[Label], scores: Sequence[float]) -> dict[str, float]:
    """Share of pairs in the right order, by what the two passages are to the query."""
    pairs: dict[str, list[bool]] = defaultdict(list)
    for (one, high), (other, low) in product(zip(labels, scores, strict=True), repeat=2):
        if _WORTH[one] > _WORTH[other]:
            pairs[f"{one} over {other}"].append(high > low)
    found = {name: sum(right) / len(right) for name, right in pairs.items()}
    if len(pairs) > 1:
        found["order"] = float(all(all(right) for right in pairs.values()))
    return found


def _searched(
    items: Sequence[ReadingItem], cases: Sequence[_Case], setup: Setup
) -> dict[str, dict[str, Estimate]]:
    """The triples as a search ranks them among all of their passages."""
    texts = list(dict.fromkeys(text for item in items for text in item.passages.values()))
    figures: dict[str, dict[str, Estimate]] = {}
    with (
        tempfile.TemporaryDirectory() as folder,
        Retriever.open(folder, model=setup.model or BUILT_IN, runtime=Runtime()) as retriever,
    ):
        retriever.add(Document(text, text) for text in texts)
        queries = [case.query for case in cases]
        for policy in ("topical", "compatibility", "auto"):
            found = retriever.search_many(queries, SearchOptions(k=_ALL, n=_ALL, policy=policy))
            rankings = dict(zip(queries, found, strict=True))
            places = partial(_by_hit, rankings, lambda hit: -float(hit.rank), -99.0)
            figures[f"the triples, searched by {policy}"] = _scores(cases, places)
        risks = partial(_by_hit, rankings, lambda hit: -(hit.risk or 0.0), -1.0)
        figures["the same, lower risk"] = _scores(cases, risks)
    return figures


def _by_hit(
    rankings: Mapping[str, Ranking], value: Callable[[Hit], float], absent: float, case: _Case
) -> list[float]:
    """A value of each passage of a case, as its query's ranking has it."""
    values = {hit.doc_id: value(hit) for hit in rankings[case.query]}
    return [values.get(text, absent) for text, _ in case.passages]
