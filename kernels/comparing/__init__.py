"""Conditions on two rows, told from an attribute of each."""
