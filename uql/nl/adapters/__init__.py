"""Adapters: the ways in which a sub-query can be answered, one file each, with one interface."""
