"""Runs the suites of benchmarks and keeps one line of JSON for each (system, query, model, seed): `uql bench`."""
