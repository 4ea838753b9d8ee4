"""The numbers of the gate, printed beside their targets.

python -m uql.benchmarks.gate            all
python -m uql.benchmarks.gate limits     one of: in-process, sdk, transport, limits, faults, memory, shared
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable

from uql.benchmarks.gate import faults, in_process, limits, memory, sdk, shared, transport

PARTS: dict[str, Callable[[], bool]] = {
    "in-process": in_process.main,
    "sdk": sdk.main,
    "transport": transport.main,
    "limits": limits.main,
    "faults": faults.main,
    "memory": memory.main,
    "shared": shared.main,
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], metavar="part", help=", ".join(PARTS))
    given = parser.parse_args().parts or list(PARTS)
    good = [PARTS[part]() for part in given]
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
