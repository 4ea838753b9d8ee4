"""Questions over clips, recordings and documents with known contents."""
