"""What privacy costs a bandit without contexts."""
