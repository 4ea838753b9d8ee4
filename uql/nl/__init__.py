"""Questions in natural language: what plans them, checks them and runs them."""
