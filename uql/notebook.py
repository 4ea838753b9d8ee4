"""Magics and display of a notebook."""

from uql.api.notebook import (
    Magics as Magics,
)
from uql.api.notebook import (
    close as close,
)
from uql.api.notebook import (
    load_ipython_extension as load_ipython_extension,
)
from uql.api.notebook import (
    open_connection as open_connection,
)
from uql.api.notebook import (
    run as run,
)
from uql.api.notebook import (
    unload_ipython_extension as unload_ipython_extension,
)
from uql.api.notebook import (
    watched as watched,
)
