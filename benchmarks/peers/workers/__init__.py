"""Programs that run in the environments of other engines: nothing of this project is imported in them."""
