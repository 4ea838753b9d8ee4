"""Do stated intervals, recalls and precisions hold? Trials over many seeds, on made-up proxies and on real embeddings."""
