SELECT id, first_intent AS label FROM labels
