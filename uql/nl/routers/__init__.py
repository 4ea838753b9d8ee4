"""Routers: which adapter answers a sub-query best."""
