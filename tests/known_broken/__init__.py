"""Known-broken mechanisms, which an audit must refute, and their sound counterparts, which it must not.

`PYTHONPATH=tests python -m known_broken` audits all of them and prints a table; `make audit` calls it.
"""
