"""A marimo notebook: a slider for the budget, and an interval that narrows as it moves. `marimo edit reviews_marimo.py` opens it."""

import marimo

app = marimo.App()


@app.cell
def _():
    import marimo as mo

    import uql
    from uql.api import notebook

    return mo, notebook, uql


@app.cell
def _(uql):
    import tempfile
    from pathlib import Path

    from uql.benchmarks.datasets.__main__ import main

    folder = Path(tempfile.mkdtemp())
    main(["reviews", str(folder / "shop.duckdb")])
    # Labels answer here in the place of a model, offline; write model="openai:NAME" or model="local" for a real one.
    con = uql.connect(str(folder / "shop.duckdb"), model=f"oracle:{folder / 'shop.toml'}", ledger=":memory:")
    return (con,)


@app.cell
def _(mo):
    budget = mo.ui.slider(steps=[32, 64, 128, 256, 512], value=128, label="calls of the model at most", show_value=True)
    budget  # noqa: B018 (marimo shows the last expression of a cell)
    return (budget,)


@app.cell
def _(budget, con, notebook):
    # A larger budget goes on with the rows of a smaller one: what was asked before is not paid for again.
    con.use(budget=budget.value)
    notebook.run('SELECT COUNT(*) AS n FROM reviews WHERE "the review is positive"', con)


if __name__ == "__main__":
    app.run()
