"""What a device sends where the server is not trusted: one message of a mechanism of its own."""
