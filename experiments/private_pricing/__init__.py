"""How regret of private pricing grows with T."""
