"""What privacy costs in lists."""
