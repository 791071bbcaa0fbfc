"""Fits what turns scores into probabilities, on data the encoder was not trained on."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import log
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from coder_ir.calibration import Calibration, Logistic
from coder_ir.encoders.folder import Manifest, file_sha256
from coder_ir.encoders.onnx import OnnxEncoder
from coder_ir.encoders.registry import built_in_folder
from coder_ir.errors import InvalidValue, MissingExtra
from coder_ir.query import load_parser, read_queries
from coder_ir.searching import breaches
from coder_ir.training.sources import item_group, read_contrast_items
from coder_ir.types import Scores
from coder_ir.verifier import OnnxVerifier, VerifierManifest

FOLDS = 5
BINS = 10
_RISK_STRENGTH = 100.0  # inverse of the penalty on weights; high, for there are three of them


@dataclass(frozen=True, slots=True)
class Point:
    """One bin of a reliability curve."""

    risk: float  # mean prediction, in [0, 1]
    share: float  # that really violates, in [0, 1]
    passages: int


@dataclass(frozen=True, slots=True)
class Curve:
    """Predicted against observed; each prediction comes from a fit on other topics."""

    points: tuple[Point, ...]
    area: float  # chance that a violating passage has a higher risk than another

    @property
    def judgements(self) -> int:
        """Number of predictions."""
        return sum(point.passages for point in self.points)

    @property
    def error(self) -> float:
        """Expected calibration error: mean gap of the bins, weighted by size; 0 is best."""
        gaps = (point.passages * abs(point.risk - point.share) for point in self.points)
        return sum(gaps) / self.judgements


@dataclass(frozen=True, slots=True)
class CalibrationReport:
    """Held-out figures: each value was predicted by a fit that did not see its fold."""

    risk: Curve

    def table(self) -> str:
        """Text for a terminal."""
        return (
            f"risk: {self.risk.judgements} judgements, expected calibration error "
            f"{self.risk.error:.3f}, area under the ROC curve {self.risk.area:.3f}"
        )


def calibrate(folder: Path, *, written: Path) -> CalibrationReport:
    """Fit the risk of a hit for a model folder and store it there.

    Args:
        folder: the model folder.
        written: folder with contrast items the encoder never saw
            (`contrast.development.jsonl*`).
    """
    found = _judgements(OnnxEncoder(folder), written)
    _store(Calibration(_fit(found.features, found.breaks)), folder)
    return CalibrationReport(_risk_curve(found))


def calibrate_verifier(
    folder: Path, *, written: Path, encoder: OnnxEncoder | None = None
) -> CalibrationReport:
    """Fit the risk of what a verifier has read and store it in the verifier's folder.

    Args:
        folder: the verifier folder.
        written: folder with contrast items that the verifier never saw.
        encoder: whose parser tells which queries state a constraint; None: the built-in one.
    """
    found = _as_read(OnnxVerifier(folder), _rows(encoder or _built_in(), written))
    fitted = _fit(found.features, found.breaks)
    replace(VerifierManifest.load(folder), risk=fitted).save(folder)
    return CalibrationReport(_risk_curve(found))


def cross_fitted_risks(
    encoder: OnnxEncoder, verifier: OnnxVerifier, written: Path
) -> tuple[Curve, Curve]:
    """Reliability of risk on the development topics, each fold predicted from the others.

    The second curve is that of hits that the verifier has read.
    """
    rows = _rows(encoder, written)
    return _risk_curve(_judgements(encoder, written)), _risk_curve(_as_read(verifier, rows))


def _built_in() -> OnnxEncoder:
    return OnnxEncoder(built_in_folder())


def _store(fitted: Calibration, folder: Path) -> None:
    """A new file first, then the manifest that names it: killed between, the folder stays whole."""
    manifest = Manifest.load(folder)
    old = manifest.calibration
    partial = folder / "calibration.partial"
    fitted.save(partial)
    digest = file_sha256(partial)
    name = f"calibration-{digest[:8]}.json"
    partial.replace(folder / name)
    digests = {file: value for file, value in manifest.sha256.items() if file != old}
    replace(manifest, calibration=name, sha256={**digests, name: digest}).save(folder)
    if old and old != name:
        (folder / old).unlink(missing_ok=True)


def reliability(risks: Scores, breaks: NDArray[np.bool_]) -> Curve:
    """Ten bins of equal width, those that hold something."""
    place = np.minimum((risks * BINS).astype(int), BINS - 1)
    return Curve(
        tuple(
            Point(float(risks[own].mean()), float(breaks[own].mean()), int(own.sum()))
            for own in (place == number for number in range(BINS))
            if own.any()
        ),
        area=_area(risks, breaks),
    )


def _area(risks: Scores, breaks: NDArray[np.bool_]) -> float:
    """Of all pairs of a violating passage and another, those with the higher risk on the former."""
    bad, good = risks[breaks], np.sort(risks[~breaks])
    below = (np.searchsorted(good, bad, "left") + np.searchsorted(good, bad, "right")) / 2
    return float(below.mean() / len(good)) if len(bad) and len(good) else 0.5


@dataclass(frozen=True, slots=True)
class _Row:
    """A query and a passage as they stand in a development item."""

    query: str
    text: str
    part: int  # 1 satisfies, -1 breaks, 0 neither
    fold: int


@dataclass(frozen=True, slots=True)
class _Judgements:
    """Pairs of a query that states a constraint and a passage; one row each in every field."""

    features: Scores  # what the risk is fitted from
    breaks: NDArray[np.bool_]  # whether the passage breaks it
    fold: NDArray[np.int64]  # pairs on one topic share a fold

    @classmethod
    def of(cls, rows: Sequence[_Row], features: Sequence[Sequence[float]]) -> _Judgements:
        """The rows with their features, in the same order."""
        return cls(
            np.array(features),
            np.array([row.part < 0 for row in rows]),
            np.array([row.fold for row in rows]),
        )


def _rows(encoder: OnnxEncoder, written: Path) -> list[_Row]:
    """Pairs of the development items whose query states a constraint."""
    items = list(read_contrast_items(written, "contrast.development.jsonl*"))
    groups = {g: n for n, g in enumerate(dict.fromkeys(item_group(i) for i in items))}
    rows = [
        _Row(query, text, part, groups[item_group(item)] % FOLDS)
        for item in items
        for query, good, bad in ((item["qa"], "a", "b"), (item.get("qb"), "b", "a"))
        if query
        for text, part in ((item[good], 1), (item[bad], -1), (item.get("neutral"), 0))
        if text
    ]
    asked = list(dict.fromkeys(row.query for row in rows))
    _, constraints = read_queries(asked, encoder, load_parser(encoder))
    stated = {query for query, found in zip(asked, constraints, strict=True) if found.stated}
    if not stated:
        raise InvalidValue(f"no development query in {written} is taken for one with a constraint")
    return [row for row in rows if row.query in stated]


def _judgements(encoder: OnnxEncoder, written: Path) -> _Judgements:
    """Topical score, compatibility and breach of each pair."""
    rows = _rows(encoder, written)
    asked = list(dict.fromkeys(row.query for row in rows))
    texts = list(dict.fromkeys(row.text for row in rows))
    queries, constraints = read_queries(asked, encoder, load_parser(encoder))
    documents = encoder.encode(texts, kind="document")
    phrases = list(dict.fromkeys(p for c in constraints for p in c.excluded))
    spans = encoder.encode_space(phrases, space="topical", kind="query")
    line, column, place = (
        {text: i for i, text in enumerate(side)} for side in (asked, texts, phrases)
    )
    features = []
    for row in rows:
        q, d = line[row.query], column[row.text]
        excluded = constraints[q].excluded
        own = spans[[place[phrase] for phrase in excluded]]
        likeness = (own @ documents.topical[d])[None, :].astype(np.float64)
        breach = breaches(excluded, likeness, trust=constraints[q].trust)[0]
        topical = queries.topical[q] @ documents.topical[d]
        compatibility = queries.compatibility[q] @ documents.compatibility[d]
        features.append([float(topical), float(compatibility), float(breach)])
    return _Judgements.of(rows, features)


def _as_read(verifier: OnnxVerifier, rows: Sequence[_Row]) -> _Judgements:
    """The log-odds of violates and of silent against satisfies, as a verifier's risk takes them."""
    texts: dict[str, list[str]] = defaultdict(list)
    for row in rows:
        texts[row.query].append(row.text)
    found = {
        (query, text): reading
        for query, own in texts.items()
        for text, reading in zip(own, verifier.read(query, own), strict=True)
    }
    readings = [found[row.query, row.text] for row in rows]
    return _Judgements.of(
        rows, [[log(r.violates / r.satisfies), log(r.silent / r.satisfies)] for r in readings]
    )


def _risk_curve(found: _Judgements) -> Curve:
    """Reliability of `hit.risk`, each fold predicted from the others."""
    risks = _out_of_fold(found.features, found.breaks, found.fold)
    return reliability(risks, found.breaks)


def _out_of_fold(
    features: NDArray[np.floating],
    labels: NDArray[np.bool_],
    fold: NDArray[np.int64],
) -> Scores:
    predicted = np.zeros(len(labels))
    for part in range(FOLDS):
        fitted = _fit(features[fold != part], labels[fold != part])
        predicted[fold == part] = fitted.probability(features[fold == part])
    return predicted


def _fit(features: NDArray[np.floating], labels: NDArray[np.bool_]) -> Logistic:
    try:
        from sklearn.linear_model import LogisticRegression
    except ImportError as error:
        raise MissingExtra("Calibration", extra="train") from error
    if len(set(labels.tolist())) < 2:
        raise InvalidValue(f"calibration needs both labels in every fold, got {len(labels)} rows")
    fitted = LogisticRegression(C=_RISK_STRENGTH, max_iter=5000).fit(features, labels)
    weights = tuple(round(float(weight), 6) for weight in fitted.coef_[0])
    return Logistic(weights, round(float(fitted.intercept_[0]), 6))
