"""What environments, agents and the loop expect of each other, and what is public."""
