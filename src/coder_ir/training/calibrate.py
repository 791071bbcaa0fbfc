"""Fits what turns scores into probabilities, on data the encoder was not trained on."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from coder_ir.calibration import Calibration, Logistic
from coder_ir.constraints import detect, mention, shape
from coder_ir.encoders.folder import Manifest, file_sha256
from coder_ir.encoders.onnx import OnnxEncoder
from coder_ir.errors import MissingExtra
from coder_ir.training.queries import LabelledQuery, read_queries, statements
from coder_ir.training.sentences import load_triplets
from coder_ir.training.sources import read_contrast_items
from coder_ir.types import Scores

CALIBRATION = "calibration.json"
FOLDS = 5
BINS = 10


@dataclass(frozen=True, slots=True)
class CalibrationReport:
    """Held-out figures: each value was predicted by a fit that did not see its fold."""

    queries: int
    exclusions_found: float  # share of queries that name what they rule out, at 0.5
    false_alarms: float  # share of queries without a constraint, at 0.5
    judgements: int
    risk_error: float  # expected calibration error over ten bins
    curve: tuple[tuple[float, float, int], ...]  # mean risk, share that violates, how many

    def table(self) -> str:
        """Text for a terminal."""
        return (
            f"detection: {self.queries} queries, {100 * self.exclusions_found:.1f}% of exclusions "
            f"found, {100 * self.false_alarms:.1f}% false alarms\n"
            f"risk: {self.judgements} judgements, expected calibration error {self.risk_error:.3f}"
        )


def calibrate(folder: Path, *, written: Path, triplets: Path, seed: int = 13) -> CalibrationReport:
    """Fit detector and risk for a model folder and store them in it.

    Args:
        folder: the model folder.
        written: folder with labelled queries and with contrast items the encoder never saw
            (`contrast.development.jsonl*`).
        triplets: the training triplets, whose claims serve as statements without a constraint.
        seed: of the folds and of the sample of statements.
    """
    encoder = OnnxEncoder(folder)
    asked = read_queries(written) + statements(load_triplets(triplets), seed=seed)
    detector, held_out = _fit_detector(encoder, asked, seed)
    features, breaks, groups = _judgements(encoder, written, detector)
    risk, risks = _fit_risk(features, breaks, groups)
    Calibration(detector, risk).save(folder / CALIBRATION)
    manifest = replace(Manifest.load(folder), calibration=CALIBRATION)
    manifest.sha256[CALIBRATION] = file_sha256(folder / CALIBRATION)
    manifest.save(folder)
    constrained = np.array([query.constrained for query in asked])
    excludes = np.array([query.excludes for query in asked])
    curve = reliability(risks, breaks)
    report = CalibrationReport(
        queries=len(asked),
        exclusions_found=float((held_out[excludes] >= 0.5).mean()),
        false_alarms=float((held_out[~constrained] >= 0.5).mean()),
        judgements=len(breaks),
        risk_error=calibration_error(curve),
        curve=curve,
    )
    (folder / "calibration-report.json").write_text(json.dumps(asdict(report)) + "\n")
    return report


def reliability(risks: Scores, breaks: NDArray[np.bool_]) -> tuple[tuple[float, float, int], ...]:
    """Mean prediction, observed share and size of each of ten equal bins that holds something."""
    place = np.minimum((risks * BINS).astype(int), BINS - 1)
    return tuple(
        (float(risks[place == b].mean()), float(breaks[place == b].mean()), int((place == b).sum()))
        for b in range(BINS)
        if (place == b).any()
    )


def calibration_error(curve: Sequence[tuple[float, float, int]]) -> float:
    """Mean gap between prediction and observed share, weighted by bin size; 0 is best."""
    total = sum(size for _, _, size in curve)
    return sum(size * abs(mean - share) for mean, share, size in curve) / total


def _fit_detector(
    encoder: OnnxEncoder, asked: Sequence[LabelledQuery], seed: int
) -> tuple[Logistic, Scores]:
    texts = [query.text for query in asked]
    vectors = encoder.encode_space(texts, space="topical", kind="query")
    features = np.concatenate([np.stack([shape(text) for text in texts]), vectors], axis=1)
    labels = np.array([query.constrained for query in asked])
    fold = np.random.default_rng(seed).permutation(len(asked)) % FOLDS
    return _fit(features, labels, strength=3.0), _out_of_fold(features, labels, fold, strength=3.0)


def _judgements(
    encoder: OnnxEncoder, written: Path, detector: Logistic
) -> tuple[Scores, NDArray[np.bool_], NDArray[np.int64]]:
    """Topical, compatibility and breach of unseen pairs; whether each violates; its topic."""
    items = list(read_contrast_items(written, "contrast.development.jsonl*"))
    rows = [
        (query, text, breaks, number)
        for number, item in enumerate(items)
        for query, good, bad in ((item["qa"], "a", "b"), (item.get("qb"), "b", "a"))
        if query
        for text, breaks in ((item[good], False), (item[bad], True), (item.get("neutral"), False))
        if text
    ]
    asked = list(dict.fromkeys(row[0] for row in rows))
    texts = list(dict.fromkeys(row[1] for row in rows))
    queries = encoder.encode(asked, kind="query")
    documents = encoder.encode(texts, kind="document")
    line, column = ({text: i for i, text in enumerate(side)} for side in (asked, texts))
    features = []
    for query, text, _, _ in rows:
        q, d = line[query], column[text]
        found = detect(query, queries.topical[q], detector)
        breach = max((mention(phrase, text) for phrase in found.excluded), default=0.0)
        features.append(
            [
                float(queries.topical[q] @ documents.topical[d]),
                float(queries.compatibility[q] @ documents.compatibility[d]),
                breach,
            ]
        )
    return (
        np.array(features),
        np.array([row[2] for row in rows]),
        np.array([row[3] for row in rows]),
    )


def _fit_risk(
    features: Scores, breaks: NDArray[np.bool_], groups: NDArray[np.int64]
) -> tuple[Logistic, Scores]:
    strength = 100.0
    return (
        _fit(features, breaks, strength=strength),
        _out_of_fold(features, breaks, groups % FOLDS, strength=strength),
    )


def _out_of_fold(
    features: NDArray[np.floating],
    labels: NDArray[np.bool_],
    fold: NDArray[np.int64],
    *,
    strength: float,
) -> Scores:
    predicted = np.zeros(len(labels))
    for part in range(FOLDS):
        fitted = _fit(features[fold != part], labels[fold != part], strength=strength)
        predicted[fold == part] = fitted.probability(features[fold == part])
    return predicted


def _fit(features: NDArray[np.floating], labels: NDArray[np.bool_], *, strength: float) -> Logistic:
    try:
        from sklearn.linear_model import LogisticRegression
    except ImportError as error:
        raise MissingExtra("Calibration", extra="train") from error
    fitted = LogisticRegression(C=strength, max_iter=5000).fit(features, labels)
    weights = tuple(round(float(weight), 6) for weight in fitted.coef_[0])
    return Logistic(weights, round(float(fitted.intercept_[0]), 6))
