"""What privacy costs in lists: catalogue size x list length x epsilon. See README.md."""
