"""Does `recommend` choose well on problems that nobody tuned on? See README.md."""
