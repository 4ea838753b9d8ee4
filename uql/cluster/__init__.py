"""Tables of Parquet files that several processes read, each its share of the rows."""
