"""What the gate costs and keeps: `python -m uql.benchmarks.gate [in-process] [sdk] [limits] [faults] [memory] [shared]`."""
