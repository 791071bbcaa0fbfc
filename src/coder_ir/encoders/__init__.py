"""Texts to unit vectors in two spaces; one file a runtime."""

from coder_ir.encoders.onnx import OnnxEncoder, Runtime
from coder_ir.encoders.registry import load_encoder

__all__ = ["OnnxEncoder", "Runtime", "load_encoder"]
