"""Prediction with expert advice, and adversaries that choose the losses."""
