"""The sub-commands of `uql`, a file each; those that run benchmarks stand with these."""

from __future__ import annotations

COMMANDS = {  # name → the module that holds its typer app, and one line of help
    "shell": ("uql.command.shell", "an interactive shell, with completion, prices and reasons"),
    "run": ("uql.command.run", "run a script of statements, with variables and exit codes for CI"),
    "ask": ("uql.command.ask", "answer a question in words, by UQL that is shown"),
    "model": ("uql.command.model", "the semantic model of a database: write a first one, check it"),
    "models": ("uql.command.models", "fetch, list and test models"),
    "bench": ("uql.benchmarks.runner.command", "run suites of benchmarks, print their tables, compare two runs"),
    "oracle": ("uql.benchmarks.peers.serve_labels", "serve a table of labels as a model of OpenAI's protocol"),
    "plans": ("uql.benchmarks.nl.serve_plans", "serve plans written by hand as a model that plans"),
    "tables": ("uql.command.tables", "the tables of a database; of semantic ones their query, key and cost"),
    "runs": ("uql.command.runs", "list the runs of the ledger, show one"),
    "resume": ("uql.command.resume", "continue a run that was killed, interrupted, or stopped at a limit"),
    "cache": ("uql.command.cache", "what the ledger holds; forget a table, a model, the oldest, all"),
    "init": ("uql.command.init", "choose a model, try it, write uql.toml"),
    "keys": ("uql.command.keys", "keys of models, in a file that only you can read"),
    "doctor": ("uql.command.doctor", "what is installed, which models answer, what a call takes and costs"),
    "completion": ("uql.command.completion", "completion of commands and options for bash, zsh and fish"),
    "eval": ("uql.command.eval", "how right a text is by labelled rows, per model and wording"),
    "calibrate": ("uql.command.calibrate", "fit a model's probabilities of a condition to labelled rows"),
    "config": ("uql.command.config", "show every setting and where its value comes from"),
    "adapters": ("uql.command.adapters", "ways to answer a part of a question: list, install, remove"),
    "router": ("uql.command.router", "collect traces of adapters, train the router on them"),
    "mcp": ("uql.command.mcp", "an MCP server over stdio: tables, prices, plans, capped queries for an assistant"),
    "ui": ("uql.command.ui", "the web page: editor, plans, rows, reasons, charts"),
}
