"""Low reviews that complain about the plot: a dbt model in Python, whose session is a connection of DuckDB's."""


def model(dbt, session):
    import uql

    dbt.config(materialized="table")
    low_stars = dbt.ref("low_stars")  # named in FROM below, as any data frame of the caller
    assert low_stars is not None
    con = uql.attach(session)  # the model and the limits are those of uql.toml, or of UQL_MODEL, UQL_MAX_COST …
    return con.uql('SELECT id, body FROM low_stars WHERE "the review complains about the plot" WITH (exact)').arrow()
