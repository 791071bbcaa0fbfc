"""The model folder: ONNX graphs, tokenizer and `model.json`, every file pinned by its sha256."""

import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, Self, get_args

from coder_ir.errors import InvalidFile, ModelMismatch, NotFound
from coder_ir.types import Space

MANIFEST = "model.json"
FORMAT = 1
SCHEME = 2  # how texts are fed to the graphs: each alone; vectors of another scheme differ
Pooling = Literal["cls", "mean"]


@dataclass(frozen=True, slots=True)
class Role:
    """How one space is computed."""

    graph: str  # file of the ONNX graph; starts from the trunk's output where there is a trunk
    output: str  # the graph's output that holds this space's token vectors
    pooling: Pooling
    query_prefix: str
    document_prefix: str
    max_length: int  # tokens, special ones included
    dimensions: int


@dataclass(frozen=True, slots=True)
class Parsing:
    """How a query is parsed."""

    graph: str  # file of the ONNX graph; reads what the trunk made of the query
    names: tuple[str, ...]  # what a word can rule out without naming it, in the graph's order
    scale: float  # of the logit that a sentence asks under a constraint, fitted on held-out queries
    shift: float


@dataclass(frozen=True, slots=True)
class Manifest:
    """What `model.json` says."""

    name: str
    licence: str
    tokenizer: str
    topical: Role
    compatibility: Role
    sha256: dict[str, str]  # file name to hex digest
    trunk: str | None = None  # file of the graph with the layers that both roles share
    calibration: str | None = None  # file of what was fitted on development data
    parser: Parsing | None = None

    @property
    def fingerprint(self) -> str:
        """Digest of all that decides a vector."""
        parts = {
            key: value
            for key, value in asdict(self).items()
            if key not in ("name", "licence", "calibration", "parser")
        }
        parts["scheme"] = SCHEME
        parts["sha256"] = {k: v for k, v in self.sha256.items() if k not in self._beside}
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()

    @property
    def _beside(self) -> set[str]:
        """Files that no vector depends on."""
        return {
            *filter(None, [self.calibration]),
            *([self.parser.graph] if self.parser else []),
        }

    def role(self, space: Space) -> Role:
        """The role of a space."""
        return self.topical if space == "topical" else self.compatibility

    @property
    def graphs(self) -> list[str]:
        """Files of all graphs, each once."""
        names = (self.trunk, self.topical.graph, self.compatibility.graph)
        return list(dict.fromkeys(name for name in names if name))

    def save(self, folder: Path) -> None:
        """Write `model.json`, whole or not at all."""
        text = json.dumps({"format": FORMAT, **asdict(self)}, indent=2, ensure_ascii=False)
        partial = folder / f"{MANIFEST}.partial"
        partial.write_text(text + "\n", encoding="utf-8")
        partial.replace(folder / MANIFEST)

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Read and check `model.json`; the files it names are checked by `verify`."""
        path = folder / MANIFEST
        if not path.is_file():
            raise NotFound(f"{folder} is not a model folder: it has no {MANIFEST}")
        try:
            raw = json.loads(path.read_text(encoding="utf-8"))
            version = raw.pop("format", None)
            topical, compatibility = Role(**raw.pop("topical")), Role(**raw.pop("compatibility"))
            raw.pop("verifier", None)  # of version 0.1; a verifier has a folder of its own now
            parser = _parsing(raw.pop("parser", None))
            manifest = cls(topical=topical, compatibility=compatibility, parser=parser, **raw)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise InvalidFile(f"{path} is not a model description: {error}") from error
        if version != FORMAT:
            raise ModelMismatch(f"{path} has format {version!r}; this version reads {FORMAT}")
        for role in (topical, compatibility):
            if role.pooling not in get_args(Pooling):
                raise InvalidFile(f"{path}: pooling must be cls or mean, got {role.pooling!r}")
        return manifest

    def verify(self, folder: Path) -> None:
        """Compare every file with its digest."""
        needed = {self.tokenizer, *self.graphs, *self._beside}
        if missing := sorted(needed - set(self.sha256)):
            raise ModelMismatch(f"{folder / MANIFEST} gives no sha256 for {', '.join(missing)}")
        for name, expected in self.sha256.items():
            path = folder / name
            if not path.is_file():
                raise ModelMismatch(f"{path} is missing; {MANIFEST} names it")
            if (seen := file_sha256(path)) != expected:
                raise ModelMismatch(
                    f"{path} is damaged or was changed: its sha256 is {seen[:12]}…, "
                    f"{MANIFEST} says {expected[:12]}…; export or download the folder again"
                )


def _parsing(raw: dict[str, Any] | None) -> Parsing | None:
    return Parsing(**{**raw, "names": tuple(raw["names"])}) if raw else None


def file_sha256(path: Path) -> str:
    """Hex digest of a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
