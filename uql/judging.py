"""Probabilities of a model, calibrated by rows that a person judged."""

from uql.api.calibrate import calibrate as calibrate
