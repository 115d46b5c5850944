"""Documents grouped by the person who wrote them."""
