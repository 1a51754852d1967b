"""What is summed: clipped functions of one user's round, with their sensitivities."""
