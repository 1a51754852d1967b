"""Theorem 4.2 of Han et al., measured: how far DP-HDB's parameters are from the true ones."""
