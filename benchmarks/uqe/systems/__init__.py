"""The systems of the UQE suite, one a file. Each baseline is written plainly, apart from the engine that it is compared with."""
