"""Every error a user can meet. The tree is drawn in `uql.base.errors`."""

from uql.base.errors import *  # noqa: F403
