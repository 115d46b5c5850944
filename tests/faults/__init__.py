"""Runs that are failed, killed or interrupted at every operation on files that they make: `python -m faults`."""
