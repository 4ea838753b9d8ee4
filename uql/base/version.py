"""The version of the package, part of what a run is known by."""

__version__ = "0.1.0"
