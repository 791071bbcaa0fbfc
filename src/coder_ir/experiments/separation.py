"""Where the two scores put satisfying and violating documents, and what training moved."""

from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray

from coder_ir.datasets.testset import TestSet
from coder_ir.encoders import load_encoder
from coder_ir.experiments.figures import Separation, draw_scatter, draw_separation
from coder_ir.experiments.setup import Report, Setup
from coder_ir.experiments.systems import at_hand
from coder_ir.experiments.tables import Table, percent
from coder_ir.metrics import mean_with_interval
from coder_ir.types import NEUTRAL, SATISFYING, VIOLATING, Encoder

_DATA = ("antonym", "negation", "exclusion", "nevir-open", "excluir")
_PICTURES = "![Topical against compatibility](scatter.png) ![Margins](separation.png)"
_MOST = 400  # queries of a set, evenly spread
_LABELS = {SATISFYING: "satisfying", VIOLATING: "violating", NEUTRAL: "neutral"}
Points = dict[str, NDArray[np.float64]]  # label to (topical, compatibility), a row a judgement


@dataclass(frozen=True, slots=True)
class _Scores:
    """Judged pairs of one data set."""

    points: Points
    margins: Separation  # of compatibility as trained, and of the topical score it came from


def measure_separation(setup: Setup, report: Report) -> Table:
    """Margins between satisfying and violating documents under the trained and base encoder."""
    encoder = load_encoder(setup.model)
    found: dict[str, _Scores] = {}
    rows: list[tuple[str, ...]] = []
    figures = {}
    tests, absent = at_hand(_DATA, setup, cells=3, most=_MOST)
    for data, test in tests.items():
        report(f"separation: {data}")
        found[data] = _scores(encoder, test)
        for name, margins in asdict(found[data].margins).items():
            right = mean_with_interval([float(margin > 0) for margin in margins])
            figures[f"{data}, {name}"] = {
                "margin": float(np.mean(margins)),
                "right": asdict(right),
                "queries": len(margins),
            }
            rows.append((data, name, f"{np.mean(margins):+.3f}", percent(right), str(len(margins))))
    if found:
        setup.out.mkdir(parents=True, exist_ok=True)
        draw_scatter({d: s.points for d, s in found.items()}, setup.out / "scatter.png")
        draw_separation({d: s.margins for d, s in found.items()}, setup.out / "separation.png")
    return Table(
        name="separation",
        title="Score separation",
        columns=("data", "encoder", "mean margin", "satisfying above violating, % ↑", "queries"),
        rows=(*rows, *absent),
        notes=(
            "Margin: mean cosine of a query with its satisfying documents minus that with its "
            "violating ones; trained is E_C, base the encoder it was made from. Percent with 95% "
            f"bootstrap interval. {_PICTURES if found else ''}".strip(),
        ),
        figures=figures,
    )


def _scores(encoder: Encoder, test: TestSet) -> _Scores:
    queries = encoder.encode([query.text for query in test.queries], kind="query")
    judged = {doc_id for own in test.qrels.grades.values() for doc_id in own}
    documents = [document for document in test.documents if document.doc_id in judged]
    vectors = encoder.encode([document.content for document in documents], kind="document")
    place = {document.doc_id: row for row, document in enumerate(documents)}
    points: dict[int, list[tuple[float, float]]] = {grade: [] for grade in _LABELS}
    trained, base = [], []
    for row, query in enumerate(test.queries):
        own: dict[int, list[tuple[float, float]]] = {grade: [] for grade in _LABELS}
        for doc_id, grade in test.qrels.grades[query.query_id].items():
            topical = float(queries.topical[row] @ vectors.topical[place[doc_id]])
            compatibility = float(queries.compatibility[row] @ vectors.compatibility[place[doc_id]])
            own[grade].append((topical, compatibility))
        for grade, pairs in own.items():
            points[grade] += pairs
        if own[SATISFYING] and own[VIOLATING]:
            gap = np.mean(own[SATISFYING], axis=0) - np.mean(own[VIOLATING], axis=0)
            base.append(float(gap[0]))
            trained.append(float(gap[1]))
    shown = {_LABELS[grade]: np.array(pairs) for grade, pairs in points.items() if pairs}
    return _Scores(shown, Separation(trained=tuple(trained), base=tuple(base)))
