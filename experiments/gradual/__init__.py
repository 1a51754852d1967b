"""What is gradual expiration worth? See README.md."""
