"""Binding by concern: scopes, the reading of quoted texts, parameters, types, expressions, sources, query blocks."""
