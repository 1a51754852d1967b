"""Released sums: prefix sums, windows, fading sums, batches, calibrated to a target."""
