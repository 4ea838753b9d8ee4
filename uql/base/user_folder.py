"""The user's folders: data (the ledger, models, history, environments of adapters) and settings."""

from __future__ import annotations

import os
from pathlib import Path

from uql.base.errors import ConfigError


def user_folder() -> Path:
    """$UQL_HOME, else the user's data folder of the system. Raises: ConfigError (UQL510) where the user has no home."""
    folder = os.environ.get("UQL_HOME")
    if folder:
        return Path(folder).expanduser()
    from platformdirs import user_data_path

    try:
        return user_data_path("uql", appauthor=False)
    except RuntimeError:
        raise _no_home() from None


def settings_folder() -> Path:
    """The user's settings folder of the system. Raises: ConfigError (UQL510) where the user has no home."""
    from platformdirs import user_config_path

    try:
        return user_config_path("uql", appauthor=False)
    except RuntimeError:
        raise _no_home() from None


def _no_home() -> ConfigError:
    """As in a container that runs under a number which has no name."""
    return ConfigError(
        "the user has no home folder: HOME is not set, and the system has no entry for the user",
        code="UQL510",
        help="set HOME to a folder that can be written",
    )
