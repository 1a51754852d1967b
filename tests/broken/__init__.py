"""Agents broken on purpose, which the conformance tests must catch. Never shipped."""
