"""Diagnostic sets: pairs of opposite queries built by rule and reviewed by people."""

from coder_ir.datasets.diagnostics.load import load_diagnostics, testset_of

__all__ = ["load_diagnostics", "testset_of"]
