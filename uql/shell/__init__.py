"""The interactive shell of `uql shell`: highlighting, completion, prices before statements, and what a result rests on."""
