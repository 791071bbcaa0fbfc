"""Triplets in, a compatibility encoder and its model folder out (extra `train`)."""
