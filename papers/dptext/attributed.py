"""Texts with a task to be learnt and attributes to be hidden: reviews of TrustPilot, or what stands in for them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
from papers.blogs_posts import Posts, WithAttributes

OTHER = "all others"

Names = npt.NDArray[np.str_]


@dataclass(frozen=True, eq=False)
class Attributed(WithAttributes):
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


def with_industry(posts: Posts, *, smallest: int) -> Attributed:
    """Posts with a third attribute, the stand-in for a country: the industry of who wrote it.

    Args:
        posts: of a task that is not the industry.
        smallest: bloggers that an industry must have; those of the others are one group, `OTHER`.
    """
    counter = Counter(industry for industry, _ in set(zip(posts.industry.tolist(), posts.people.tolist(), strict=True)))
    kept = [industry for industry, count in counter.items() if count >= smallest]
    groups = np.where(np.isin(posts.industry, kept), posts.industry, OTHER)
    return Attributed(posts.task, posts.texts, posts.people, posts.labels, posts.attributes | {"industry": groups})
