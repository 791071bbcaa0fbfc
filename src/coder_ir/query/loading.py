"""The parser that goes with an encoder."""

from collections.abc import Iterator
from functools import cache

from coder_ir.encoders.combined import CombinedEncoder
from coder_ir.encoders.onnx import OnnxEncoder, OnnxSpace
from coder_ir.encoders.registry import built_in_folder
from coder_ir.query.parser import TrainedParser


def load_parser(encoder: object) -> TrainedParser:
    """The parser of the encoder's own model folder, or the built-in one for any other encoder."""
    for model in _models(encoder):
        if model.manifest.parser is not None:
            return TrainedParser(model)
    return _built_in()


@cache
def _built_in() -> TrainedParser:
    """Loaded once a process, for all encoders that have no parser of their own."""
    return TrainedParser(OnnxEncoder(built_in_folder()))


def _models(encoder: object) -> Iterator[OnnxEncoder]:
    """The model folders that are already loaded for an encoder."""
    if isinstance(encoder, OnnxEncoder):
        yield encoder
    elif isinstance(encoder, OnnxSpace):
        yield encoder.pair
    elif isinstance(encoder, CombinedEncoder):
        yield from _models(encoder.topical)
        yield from _models(encoder.compatibility)
