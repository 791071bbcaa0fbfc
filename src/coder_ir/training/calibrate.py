"""Fits what turns scores into probabilities, on data the encoder was not trained on."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from coder_ir.calibration import Calibration, Logistic
from coder_ir.encoders.folder import Manifest, file_sha256
from coder_ir.encoders.onnx import OnnxEncoder
from coder_ir.encoders.registry import load_verifier
from coder_ir.errors import InvalidValue, MissingExtra
from coder_ir.query import load_parser, read_queries
from coder_ir.searching import breaches, reading
from coder_ir.training.sources import item_group, read_contrast_items
from coder_ir.types import Scores

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
    read_risk: Curve | None = None  # of verified hits

    def table(self) -> str:
        """Text for a terminal."""
        read = f", {self.read_risk.error:.3f} for verified hits" if self.read_risk else ""
        return (
            f"risk: {self.risk.judgements} judgements, expected calibration error "
            f"{self.risk.error:.3f}{read}"
        )


def calibrate(folder: Path, *, written: Path) -> CalibrationReport:
    """Fit the risk of a hit for a model folder and store it there.

    Args:
        folder: the model folder.
        written: folder with contrast items the encoder never saw
            (`contrast.development.jsonl*`).
    """
    encoder = OnnxEncoder(folder)
    found = _judgements(encoder, written)
    fitted = Calibration(_fit(found.features, found.breaks))
    if found.logits is not None:
        read = _read(found, found.logits)
        fitted = replace(fitted, read_risk=_fit(read.features, read.breaks))
    _store(fitted, folder)
    return CalibrationReport(risk=_risk_curve(found), read_risk=_read_curve(found))


def cross_fitted_risks(encoder: OnnxEncoder, written: Path) -> tuple[Curve, Curve | None]:
    """Reliability of risk on the development topics, each fold predicted from the others.

    The second curve is that of verified hits.
    """
    found = _judgements(encoder, written)
    return _risk_curve(found), _read_curve(found)


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


def _read(found: _Judgements, logits: Scores) -> _Judgements:
    """The same pairs with compatibility as read."""
    features = found.features.copy()
    features[:, 1] = reading(features[:, 1], logits)
    return replace(found, features=features)


def _read_curve(found: _Judgements) -> Curve | None:
    """Reliability of the risk of verified hits."""
    return None if found.logits is None else _risk_curve(_read(found, found.logits))


def reliability(risks: Scores, breaks: NDArray[np.bool_]) -> Curve:
    """Ten bins of equal width, those that hold something."""
    place = np.minimum((risks * BINS).astype(int), BINS - 1)
    return Curve(
        tuple(
            Point(float(risks[own].mean()), float(breaks[own].mean()), int(own.sum()))
            for own in (place == number for number in range(BINS))
            if own.any()
        )
    )


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

    features: Scores  # topical, compatibility, breach
    breaks: NDArray[np.bool_]  # whether the passage breaks it
    fold: NDArray[np.int64]  # pairs on one topic share a fold
    logits: Scores | None = None  # the verifier's


def _judgements(encoder: OnnxEncoder, written: Path) -> _Judgements:
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
    texts = list(dict.fromkeys(row.text for row in rows))
    queries, constraints = read_queries(asked, encoder, load_parser(encoder))
    documents = encoder.encode(texts, kind="document")
    phrases = list(dict.fromkeys(p for c in constraints for p in c.excluded))
    spans = encoder.encode_space(phrases, space="topical", kind="query")
    line, column, place = (
        {text: i for i, text in enumerate(side)} for side in (asked, texts, phrases)
    )
    features, kept = [], []
    for row in rows:
        q, d = line[row.query], column[row.text]
        if not constraints[q].stated:
            continue
        own = spans[[place[phrase] for phrase in constraints[q].excluded]]
        likeness = (own @ documents.topical[d])[None, :].astype(np.float64)
        topical = float(queries.topical[q] @ documents.topical[d])
        compatibility = float(queries.compatibility[q] @ documents.compatibility[d])
        constraint = constraints[q]
        trust = constraint.trust
        breach = float(breaches(constraint.excluded, (), [row.text], likeness, trust=trust)[0])
        features.append([topical, compatibility, breach])
        kept.append(row)
    if not kept:
        raise InvalidValue(f"no development query in {written} is taken for one with a constraint")
    return _Judgements(
        features=np.array(features),
        breaks=np.array([row.part < 0 for row in kept]),
        fold=np.array([row.fold for row in kept]),
        logits=_logits(encoder, kept) if encoder.manifest.verifier else None,
    )


def _logits(encoder: OnnxEncoder, rows: Sequence[_Row]) -> Scores:
    """What the verifier says of each pair; the passages of a query are read together."""
    verifier = load_verifier(encoder)
    places: dict[str, list[int]] = defaultdict(list)
    for place, row in enumerate(rows):
        places[row.query].append(place)
    logits = np.zeros(len(rows))
    for query, own in places.items():
        logits[own] = verifier.read(query, [rows[place].text for place in own])
    return logits


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
