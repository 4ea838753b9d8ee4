"""A query in lines, for small models: its grammar, which holds every name to those in scope, and its reading into a plan."""
