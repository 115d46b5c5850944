"""Texts with a task to be learnt and attributes to be hidden: reviews of TrustPilot, or what stands in for them."""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from papers.blogs_posts import Posts, facts_of

__all__ = ["OTHER", "Attributed", "with_industry"]

OTHER = "all others"

Names = npt.NDArray[np.str_]


@dataclass(frozen=True, eq=False)
class Attributed:
    """Texts, whose they are, a label and attributes.

    Attributes:
        task: what the label is.
        texts: (n,).
        people: (n,) whose each is, counted from 0.
        labels: (n,) of the task.
        attributes: name to (n,) groups.
    """

    task: str
    texts: tuple[str, ...] = field(repr=False)
    people: npt.NDArray[np.int64] = field(repr=False)
    labels: Names = field(repr=False)
    attributes: dict[str, Names] = field(repr=False)

    @property
    def facts(self) -> dict[str, Any]:
        """What a table says of them, and a digest: rows of other texts are not mixed with theirs."""
        return facts_of(len(self.texts), self.people, self.labels, self.attributes, self.digest)

    @property
    def digest(self) -> str:
        """Of all that they are."""
        found = hashlib.sha256()
        for row in zip(self.texts, self.people.tolist(), self.labels, *self.attributes.values(), strict=True):
            found.update(repr(row).encode("utf-8", "surrogatepass"))
        return found.hexdigest()[:16]


def with_industry(posts: Posts, *, smallest: int) -> Attributed:
    """Posts with a third attribute, the stand-in for a country: the industry of who wrote it.

    Args:
        posts: of a task that is not the industry.
        smallest: bloggers that an industry must have; those of the others are one group, `OTHER`.
    """
    whose = Counter(industry for industry, _ in set(zip(posts.industry.tolist(), posts.people.tolist(), strict=True)))
    kept = [industry for industry, count in whose.items() if count >= smallest]
    groups = np.where(np.isin(posts.industry, kept), posts.industry, OTHER)
    return Attributed(posts.task, posts.texts, posts.people, posts.labels, posts.attributes | {"industry": groups})
