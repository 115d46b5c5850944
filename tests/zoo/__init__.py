"""Mechanisms that break their promise, each with a sound twin: what an audit must refute, and must not.

`PYTHONPATH=tests python -m zoo` audits all of them and prints a table; `make audit` calls it.
"""
