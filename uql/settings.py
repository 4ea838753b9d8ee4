"""The settings, as `uql.connect(...)` takes them."""

from uql.base.settings import Settings as Settings
