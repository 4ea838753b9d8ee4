"""A checkout as the package: `compiler/`, `kernels/`, `sampling/` and `benchmarks/` stand beside `uql/` there, not in it.

`pip install -e .` maps them. This does so where Python runs in a clone beside a plain installation: the clone's folder `uql` comes
before the installed one in the search path.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_file_location
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).parents[2]


class CheckoutFinder:
    """Finds the sub-packages of `uql` that stand beside it."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        """The sub-package of this name; None for any other module.

        Args:
            name: of the module, dotted.
            path: of the package; not used.
            target: a module that is loaded again; not used.
        """
        if name not in ("uql.compiler", "uql.kernels", "uql.sampling", "uql.benchmarks"):
            return None
        folder = ROOT / name.removeprefix("uql.")
        return spec_from_file_location(name, folder / "__init__.py", submodule_search_locations=[str(folder)])
