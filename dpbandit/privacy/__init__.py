"""The privacy core: mechanisms are the only door through which data reaches the future."""
