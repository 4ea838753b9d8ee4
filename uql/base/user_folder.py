"""The folder of the user's data: the ledger, models, history, environments of adapters."""

from __future__ import annotations

import os
from pathlib import Path


def user_folder() -> Path:
    """$UQL_HOME, else the user's data folder of the system."""
    folder = os.environ.get("UQL_HOME")
    if folder:
        return Path(folder).expanduser()
    from platformdirs import user_data_path

    return user_data_path("uql", appauthor=False)
