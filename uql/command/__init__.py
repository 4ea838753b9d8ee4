"""The sub-commands of `uql`, a file each; those that run benchmarks stand with these."""

from __future__ import annotations

COMMANDS = {  # name → the module that holds its typer app, and one line of help in 80 columns
    "init": ("uql.command.init", "choose a model, make a test call, write uql.toml"),
    "keys": ("uql.command.keys", "store API keys, in the system's keyring or in a private file"),
    "doctor": ("uql.command.doctor", "what is installed, which models answer, what a call costs"),
    "shell": ("uql.command.shell", "an interactive shell with completion, prices and evidence"),
    "ui": ("uql.command.ui", "a web page on this machine: editor, plans, rows, charts"),
    "run": ("uql.command.run", "run a script, with variables and exit codes for CI"),
    "ask": ("uql.command.ask", "answer a question in words; shows the UQL that answers it"),
    "eval": ("uql.command.eval", "measure a prompt on labelled rows: precision, recall, cost"),
    "runs": ("uql.command.runs", "list past runs and their cost, or show one"),
    "resume": ("uql.command.resume", "continue a run that was interrupted or stopped at a limit"),
    "tables": ("uql.command.tables", "list tables; for semantic tables also query, key and cost"),
    "cache": ("uql.command.cache", "what the ledger (the cache of answers) holds; delete from it"),
    "config": ("uql.command.config", "show every setting and where its value comes from"),
    "models": ("uql.command.models", "download, list and test models"),
    "mcp": ("uql.command.mcp", "an MCP server for AI assistants: read-only, with cost caps"),
    "calibrate": ("uql.command.calibrate", "fit a model's probabilities to labelled rows"),
    "model": ("uql.command.model", "the semantic model of a database: write one, check it"),
    "adapters": ("uql.command.adapters", "other libraries that answer parts of a question"),
    "router": ("uql.command.router", "collect traces of adapters and train the router on them"),
    "oracle": ("uql.benchmarks.peers.serve_labels", "serve a table of labels as a model over OpenAI's protocol"),
    "plans": ("uql.benchmarks.nl.serve_plans", "serve hand-written plans as a planning model"),
    "bench": ("uql.benchmarks.runner.command", "run benchmark suites, print their tables, compare runs"),
    "completion": ("uql.command.completion", "shell completion for bash, zsh and fish"),
}
