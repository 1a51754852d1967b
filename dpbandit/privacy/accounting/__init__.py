"""What noise costs: spends, ledgers, and the curves that certify them."""
