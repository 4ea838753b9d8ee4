"""Scripts that run in the environments of adapters. They know the protocol of `uql.nl.adapters.process` and nothing else of UQL."""
