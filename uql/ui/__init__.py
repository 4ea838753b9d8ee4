"""The web page of `uql ui`: an editor, the plan with its price, rows as they come, why a row says what it says. On this machine only."""
