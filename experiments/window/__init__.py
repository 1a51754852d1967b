"""What it is worth that privacy expires, and that nothing is projected. See README.md."""
