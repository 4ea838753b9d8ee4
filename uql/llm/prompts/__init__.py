"""The words of every question: one file a kind, each with a version that is part of the ledger's key."""
