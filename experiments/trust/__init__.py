"""What trust costs, and what returning costs."""
