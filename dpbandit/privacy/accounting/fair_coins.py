"""What sign bits cost among fair coins: counts that one person moves by one, of heads of N coins.

**Fair coins.** She sends a bit for each of d coordinates, others send N fair coins for each::

    one of her bits   (N coins) against 1 + (N coins):   loss log (N + 1 - j) / j at j heads,

and d of them are independent. The counts of others are added by nature and need no law: adding a
constant to both worlds changes nothing, so this is exact, whatever the data and however many people
there are. Where bits are sent for the block of an arm, and coins for all others, two people who
play different arms differ in 2 d coordinates by a bit against a coin::

    a bit against a coin   1 + (N coins) against (N + 1 coins):   loss log 2 j / (N + 1).

**Randomised response** in random order (Warner 1965; Erlingsson et al. 2019). Everybody flips her
bit with probability p, that is, throws a fair coin in its place with probability 2 p. Whoever is
told which of the others' bits are coins, and the true ones, sees her bit among B coins, B ~ Bin(n -
1, 2 p), and her own bit as she sends it, flipped with probability p::

    P = (1 - p) (1 + B coins) + p (B coins)     against the mirror image, B told.

What is told only helps, so that its loss is an upper bound.
"""

_FAR = 40.0
"""Standard deviations of a count; what lies beyond, less than 1e-300, is an infinite loss."""
