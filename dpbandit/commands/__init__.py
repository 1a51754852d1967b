"""The commands of `dpbandit`, one file for each."""
