"""What privacy costs in money."""
