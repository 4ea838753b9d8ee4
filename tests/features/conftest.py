"""Here features are made anew each time: they are what is tested."""

import pytest


@pytest.fixture(autouse=True)
def features_are_made_once() -> None:
    """Nothing is kept."""
