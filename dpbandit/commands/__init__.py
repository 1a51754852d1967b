"""The commands of `dpbandit`."""
