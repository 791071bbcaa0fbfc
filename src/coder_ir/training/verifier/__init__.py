"""Trains the verifier: a small cross-encoder that says what a passage is to a query."""
