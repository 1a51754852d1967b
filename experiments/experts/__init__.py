"""What privacy costs when one of many experts never errs. See README.md."""
