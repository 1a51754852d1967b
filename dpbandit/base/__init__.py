"""What everything stands on: inputs, arrays, random streams, files, progress, provenance."""
