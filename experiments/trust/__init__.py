"""What trust costs, and what returning costs. See README.md."""
