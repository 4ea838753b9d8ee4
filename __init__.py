"""`import uql` in a folder that holds a clone of this repository named `uql` finds this file: it loads the package inside.

Without it Python takes the clone for a namespace package, which has no names, and puts it before a copy installed with `pip install -e`.
"""

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

_HERE = Path(__file__).resolve().parent
if __name__ == "uql":
    _inside = _HERE / "uql"
    _spec = spec_from_file_location("uql", _inside / "__init__.py", submodule_search_locations=[str(_inside)])
    assert _spec is not None and _spec.loader is not None
    sys.modules["uql"] = module_from_spec(_spec)
    _spec.loader.exec_module(sys.modules["uql"])
