"""Value to noisy value: one distribution or selection a file, each with its proof."""
