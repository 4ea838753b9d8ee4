"""Sets of rows with a stated precision and recall, by a cheap model and a dear one: what the statement costs, and whether it holds."""
