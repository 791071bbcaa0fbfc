"""The built-in model, loaded once."""

import pytest

from coder_ir.encoders.onnx import OnnxEncoder, Runtime
from coder_ir.encoders.registry import built_in_folder


@pytest.fixture(scope="session")
def built_in() -> OnnxEncoder:
    return OnnxEncoder(built_in_folder(), runtime=Runtime(threads=1))
