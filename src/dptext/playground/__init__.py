"""What the playground shows of a text: what could come out, what an attacker gets, how far neighbours overlap."""
