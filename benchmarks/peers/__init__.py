"""Other engines, each in an environment of its own, on the same rows, questions and simulated model."""
