"""The verifier folder: an ONNX cross-encoder, its tokenizer and `verifier.json`."""

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Self

from coder_ir.calibration import Logistic
from coder_ir.encoders.folder import file_sha256
from coder_ir.errors import InvalidFile, ModelMismatch, NotFound

MANIFEST = "verifier.json"
FORMAT = 1
GRAPH, TOKENIZER = "model.onnx", "tokenizer.json"
CLASSES = ("satisfies", "violates", "silent")
_ENTAILMENT = {"entailment": "satisfies", "contradiction": "violates", "neutral": "silent"}


@dataclass(frozen=True, slots=True)
class VerifierManifest:
    """What `verifier.json` says; a folder without one is taken for a reranker's."""

    name: str
    licence: str
    classes: tuple[str, ...] = ()  # in the order of the logits; empty: one logit, of relevance
    passage_first: bool = False  # whether the passage stands before the query in a pair
    max_length: int = 256  # tokens of a pair, special ones included
    risk: Logistic | None = None  # from the two log-ratios violates and silent to satisfies
    sha256: dict[str, str] = field(default_factory=dict)  # file name to hex digest

    def save(self, folder: Path) -> None:
        """Write `verifier.json`, whole or not at all."""
        text = json.dumps({"format": FORMAT, **asdict(self)}, indent=2, ensure_ascii=False)
        partial = folder / f"{MANIFEST}.partial"
        partial.write_text(text + "\n", encoding="utf-8")
        partial.replace(folder / MANIFEST)

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Read `verifier.json`, or what a cross-encoder's `config.json` says in its place."""
        for name in (GRAPH, TOKENIZER):
            if not (folder / name).is_file():
                raise NotFound(f"{folder} is not a verifier folder: it has no {name}")
        if (folder / MANIFEST).is_file():
            return cls._written(folder / MANIFEST)
        return cls(folder.name, "as its folder says", _classes_of(folder / "config.json"))

    @classmethod
    def _written(cls, path: Path) -> Self:
        try:
            raw = json.loads(path.read_text(encoding="utf-8"))
            version = raw.pop("format", None)
            risk = raw.pop("risk", None)
            fitted = (
                Logistic(tuple(map(float, risk["weights"])), float(risk["bias"])) if risk else None
            )
            manifest = cls(**{**raw, "classes": tuple(raw["classes"])}, risk=fitted)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise InvalidFile(f"{path} is not a verifier's description: {error}") from error
        if version != FORMAT:
            raise ModelMismatch(f"{path} has format {version!r}; this version reads {FORMAT}")
        if manifest.classes and sorted(manifest.classes) != sorted(CLASSES):
            raise InvalidFile(
                f"{path}: classes must be {', '.join(CLASSES)}, got {', '.join(manifest.classes)}"
            )
        return manifest

    def verify(self, folder: Path) -> None:
        """Compare every file with its digest."""
        for name, expected in self.sha256.items():
            path = folder / name
            if not path.is_file():
                raise ModelMismatch(f"{path} is missing; {MANIFEST} names it")
            if (seen := file_sha256(path)) != expected:
                raise ModelMismatch(
                    f"{path} is damaged or was changed: its sha256 is {seen[:12]}…, "
                    f"{MANIFEST} says {expected[:12]}…; export or download the folder again"
                )


def _classes_of(config: Path) -> tuple[str, ...]:
    """The classes that a transformers config names; none where it names one logit or nothing."""
    if not config.is_file():
        return ()
    try:
        labels: dict[str, Any] = json.loads(config.read_text(encoding="utf-8")).get("id2label", {})
    except (ValueError, AttributeError) as error:
        raise InvalidFile(f"{config} is not a model's config: {error}") from error
    names = [str(labels[number]).lower() for number in sorted(labels, key=int)]
    if len(names) < 2:
        return ()
    classes = tuple(_ENTAILMENT.get(name, name) for name in names)
    if sorted(classes) != sorted(CLASSES):
        raise InvalidFile(
            f"{config} names the classes {', '.join(names)}; a verifier has one logit, or "
            "satisfies, violates and silent, or entailment, contradiction and neutral"
        )
    return classes
