"""Prediction with expert advice, and who chooses the losses."""
