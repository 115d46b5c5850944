"""Exact samplers of noise and of random selections, each with its proof."""
