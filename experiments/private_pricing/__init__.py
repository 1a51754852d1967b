"""How regret of private pricing grows with T, beside the rates that were proved. See README.md."""
