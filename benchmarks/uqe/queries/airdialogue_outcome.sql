SELECT id, status AS label FROM labels
