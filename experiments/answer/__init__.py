"""What joint privacy costs in regret, problem by problem. See README.md."""
