"""Questions in natural language: the papers' data sets, metrics and tables, and plans written by hand."""
