"""Rows as vectors: embedders, a cache by content, and similarity to a condition."""
