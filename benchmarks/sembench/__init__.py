"""SemBench (github.com/SemBench/SemBench, cf08139): the movie queries and the MMQA ones whose data is at hand."""
