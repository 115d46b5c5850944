"""Texts that people can read, made from public ones after one noisy release about all people."""
