"""Aggregates from the rows that were asked: which rows those are, the estimates with their intervals, and expressions over them."""
