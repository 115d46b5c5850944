"""What the playground shows of a text: what could come out, what an attacker gets, how far neighbours overlap.

Pure functions over the mechanisms of the library; `dptext.playground.ways` is the way in. Nothing here is a release: no
statement is written, nothing is stored, and of all texts the last one alone is kept in memory.
"""
