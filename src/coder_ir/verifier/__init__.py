"""Cross-encoders that read a query and a passage together: satisfies, violates, silent."""

from coder_ir.verifier.folder import VerifierManifest
from coder_ir.verifier.onnx import OnnxVerifier
from coder_ir.verifier.registry import load_verifier

__all__ = ["OnnxVerifier", "VerifierManifest", "load_verifier"]
