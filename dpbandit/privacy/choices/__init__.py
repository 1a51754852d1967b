"""Released choices: selection, vertices, peeling, sparse vector."""
