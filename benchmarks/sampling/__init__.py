"""The sampling benchmark: the design note's tables, with targets beside them."""
