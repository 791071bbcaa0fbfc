"""From what a user passes as `model=` to an encoder."""

from dataclasses import replace
from importlib import resources
from pathlib import Path

from coder_ir.calibration import Calibration
from coder_ir.encoders.combined import CombinedEncoder, SpaceEncoder
from coder_ir.encoders.folder import MANIFEST, Manifest
from coder_ir.encoders.onnx import OnnxEncoder, OnnxSpace, Runtime
from coder_ir.encoders.sentence_transformer import SentenceTransformerEncoder
from coder_ir.errors import InvalidValue
from coder_ir.types import Encoder, ModelStamp, Space

BUILT_IN = "built-in"


def built_in_folder() -> Path:
    """The model folder inside the package."""
    return Path(str(resources.files("coder_ir") / "model"))


def load_encoder(model: str, *, runtime: Runtime | None = None) -> Encoder:
    """`built-in`, a model folder, or `TOPICAL+COMPATIBILITY`, each with `@TOKENS` for a limit.

    Each side of the plus is `built-in`, a model folder (whose role it takes), or a
    sentence-transformers or Hugging Face name or folder (extra `train`).
    """
    runtime = runtime or Runtime()
    model, runtime = _with_limit(model, runtime)
    limit = f"@{runtime.max_length}" if runtime.max_length else ""
    if (folder := model_folder(model)) is not None:
        spec = BUILT_IN if model == BUILT_IN else str(folder.resolve())
        return OnnxEncoder(folder, runtime=runtime, spec=spec + limit)
    topical, plus, compatibility = model.partition("+")
    if not plus or not topical.strip() or not compatibility.strip():
        raise InvalidValue(
            f"model must be {BUILT_IN!r}, a folder with a {MANIFEST}, or 'TOPICAL+COMPATIBILITY' "
            f"(two encoders by name or folder), got {model!r}"
        )
    sides = topical.strip(), compatibility.strip()
    return CombinedEncoder(
        _side(sides[0], "topical", runtime),
        _side(sides[1], "compatibility", runtime),
        spec="+".join(_absolute(side) for side in sides) + limit,
    )


def load_space(
    model: str, space: Space, *, runtime: Runtime | None = None
) -> tuple[SpaceEncoder, ModelStamp]:
    """One space of what `load_encoder` takes, or an encoder that has only one, by name or folder.

    Nothing is loaded of the side of a plus that is not asked for.
    """
    named, runtime = _with_limit(model, runtime or Runtime())
    limit = f"@{runtime.max_length}" if runtime.max_length else ""
    topical, plus, compatibility = named.partition("+")
    side = (topical if space == "topical" else compatibility).strip() if plus else named.strip()
    if not side:
        raise InvalidValue(f"model {model!r} names no {space} encoder")
    spec = BUILT_IN if side == BUILT_IN else _absolute(side)
    encoder = _side(side, space, runtime)
    return encoder, ModelStamp(encoder.fingerprint, spec + limit)


def load_calibration(model: str) -> Calibration | None:
    """What was fitted on development data for a model folder; None for any other pair."""
    folder = model_folder(_with_limit(model, Runtime())[0])
    if folder is None:
        return None
    manifest = Manifest.load(folder)
    return Calibration.load(folder / manifest.calibration) if manifest.calibration else None


def _with_limit(model: str, runtime: Runtime) -> tuple[str, Runtime]:
    """Model and runtime with `@TOKENS` moved from the one to the other."""
    name, at, tokens = model.rpartition("@")
    if not at or not tokens.isdigit():
        return model, runtime
    if runtime.max_length not in (None, int(tokens)):
        raise InvalidValue(f"{model!r} and max_length={runtime.max_length} name two token limits")
    return name, replace(runtime, max_length=int(tokens))


def _side(name: str, space: Space, runtime: Runtime) -> SpaceEncoder:
    if (folder := model_folder(name)) is not None:
        return OnnxSpace(OnnxEncoder(folder, runtime=runtime), space)
    return SentenceTransformerEncoder(name, runtime=runtime)


def model_folder(name: str) -> Path | None:
    """Where a model by name or path lies; None for one that is no folder with a manifest."""
    folder = built_in_folder() if name == BUILT_IN else Path(name)
    return folder if name == BUILT_IN or (folder / MANIFEST).is_file() else None


def _absolute(name: str) -> str:
    return str(Path(name).resolve()) if Path(name).is_dir() else name
