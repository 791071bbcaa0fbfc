"""Measurements behind every figure in the documentation; each writes its own table."""
