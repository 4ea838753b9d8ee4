"""Tables of a lake that several processes read, each its share of the rows."""
