"""What private text and private vectors are still good for, beside the trivial baseline; fairness."""
