"""The page of results that are kept, since they take hours, gigabytes or a model: `python -m uql.benchmarks.kept` writes tables-kept.md.

peers/results.jsonl        uql bench run peers -o benchmarks/peers/results.jsonl --resume
sampling/rivals.jsonl      python -m uql.benchmarks.sampling.rivals --results benchmarks/sampling/rivals.jsonl
promise/results.jsonl      python -m uql.benchmarks.promise --counted --cheap noisy --seeds 20 --results benchmarks/promise/results.jsonl
promise/held_out.jsonl     python -m uql.benchmarks.promise --held-out --cheap noisy --method uql --method lotus --method bargain
                           --results benchmarks/promise/held_out.jsonl
accuracy/results.jsonl     uql bench run accuracy -o benchmarks/accuracy/results.jsonl --resume
sampling/results.md        python -m uql.benchmarks.sampling
gate/transport.jsonl       python -m uql.benchmarks.gate.transport --rounds 2 --results benchmarks/gate/transport.jsonl
real_model.jsonl           uql bench run SUITE --models local --systems uql -o benchmarks/real_model.jsonl --resume;
                           of questions in words --systems dag,plans
nl/plainest.jsonl          uql bench run tatqa --systems plainest -o benchmarks/nl/plainest.jsonl --resume, and finmmr
"""

from __future__ import annotations

from itertools import chain
from pathlib import Path

from uql.benchmarks import real_model, rival_tables
from uql.benchmarks.gate import transport
from uql.benchmarks.peers.environments import RESULTS as PEERS
from uql.benchmarks.promise import __main__ as promise
from uql.benchmarks.runner import report
from uql.benchmarks.runner.records import read
from uql.benchmarks.sampling import rivals

HERE = Path(__file__).parent
PAGE = HERE / "tables-kept.md"
ACCURACY = HERE / "accuracy" / "results.jsonl"
SAMPLING = HERE / "sampling" / "results.md"
PLAINEST = HERE / "nl" / "plainest.jsonl"
TRANSPORT = "python -m uql.benchmarks.gate.transport --rounds 2 --results benchmarks/gate/transport.jsonl"
HEAD = """# Benchmarks that are kept

`python -m uql.benchmarks.kept` makes this page from results files in the repository; each part names the command that adds to its file, and
goes on where it was stopped. `make bench-offline` runs none of this: other engines take gigabytes, rivals and samples hours, a real model
minutes a data set."""
RIVALS = """## rivals

Methods that others published, re-implemented plainly (`benchmarks/sampling/rival_methods.py`, `benchmarks/promise/`), on the same rows,
embeddings and labels. Made by `python -m uql.benchmarks.sampling.rivals --results benchmarks/sampling/rivals.jsonl` and `python -m
uql.benchmarks.promise --counted --cheap noisy --seeds 20 --results benchmarks/promise/results.jsonl`; on the predicates that nothing
was tuned on, with 200 seeds, by `python -m uql.benchmarks.promise --held-out --cheap noisy --method uql --method lotus --method bargain
--results benchmarks/promise/held_out.jsonl`."""


def page() -> str:
    """The page of what the results files hold."""
    accuracy, peers = read(ACCURACY), read(PEERS)
    sets = [rival_tables.set_tables(promise.read(path)) for path in (promise.RESULTS, promise.HELD_OUT_RESULTS)]
    tables = [*rival_tables.count_tables(rivals.read()), *chain.from_iterable(sets)]
    parts = [HEAD]
    parts += [*report.suite_sections(accuracy), f"Made by `uql bench run accuracy`. {report.made_with(accuracy)}"]
    parts += [*_real_model(), RIVALS, *map(report.markdown_table, tables)]
    parts += [*report.suite_sections(peers), f"Made by `uql bench run peers`. {report.made_with(peers)}"]
    parts += [
        *report.suite_sections(read(PLAINEST)),
        "Made by `uql bench run tatqa --systems plainest`, and likewise finmmr.",
    ]
    parts += ["## gate", report.markdown_table(transport.table(transport.read())), f"Made by `{TRANSPORT}`."]
    return "\n\n".join([*parts, SAMPLING.read_text(encoding="utf-8").strip()]) + "\n"


def _real_model() -> list[str]:
    """The section of the local model, suite by suite."""
    records = read(real_model.RESULTS)
    made = "`uql bench run SUITE --models local --systems uql`, and where questions are in words `--systems dag,plans`"
    return [
        "## a real model",
        report.markdown_table(real_model.table(records)),
        f"Made by {made}. {report.made_with(records)}",
    ]


def main() -> None:
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
