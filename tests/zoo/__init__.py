"""Mechanisms that break their promise, each with a sound twin: what an audit must refute, and must not.

`python -m zoo` (in the folder tests) audits all of them and prints a table; `make audit` calls it.
"""
