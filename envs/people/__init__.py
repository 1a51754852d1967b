"""Problems in which people come back."""
