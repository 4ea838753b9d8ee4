"""The options of `con.ask`."""

from uql.nl.ask.session import Options as Options
