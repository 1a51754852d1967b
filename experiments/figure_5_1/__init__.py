"""Figure 5.1 of Han et al. as printed, as specified and as certified. See README.md."""
