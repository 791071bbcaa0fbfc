"""A trained parser over a network by hand."""

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from coder_ir.query import TrainedParser
from tests.query.stubs import HandMadeEncoder, HandMadeNetwork, Said, parsing

ParserOf = Callable[..., TrainedParser]


@pytest.fixture
def parser_of(monkeypatch: pytest.MonkeyPatch) -> ParserOf:
    """Makes a parser whose network says of each word what it is told to."""

    def build(
        said: Mapping[str, Said], *, scale: float = 1.0, shift: float = 0.0, limit: int = 1000
    ) -> TrainedParser:
        encoder = HandMadeEncoder(parser=parsing(scale=scale, shift=shift), limit=limit)
        network = HandMadeNetwork(encoder, said)

        def session(path: Path) -> HandMadeNetwork:
            assert path == Path("by-hand/parser.onnx")
            return network

        monkeypatch.setattr("coder_ir.query.parser.session", session)
        return TrainedParser(encoder)

    return build
