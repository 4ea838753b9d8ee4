"""Magics and display of a notebook."""

from uql.api.notebook import *  # noqa: F403
