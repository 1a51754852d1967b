"""Printed rates beside measured exponents: one study for every table of rates. See README.md."""
