"""The TrustPilot reviews of the paper (Hovy, Johannsen and Søgaard 2015), which may not be redistributed.

The file is a CSV (plain, ``.gz`` or ``.zst``) of English reviews, each by another author, whose header has the columns

    text, rating (1 to 5), gender (M or F, male or female), age (in years), country (DK, FR, UK or GB, US)

Reviews without one of these and reviews of other countries are left out. 10,000 of each country are drawn, or as many
as the country with the fewest reviews has. Age groups are under 35, 35 to 45, and over 45.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from papers.blogs import Posts

from dptext import Document
from dptext.errors import DataError
from dptext.io.documents import read_documents
from dptext.privacy.randomness import RandomBits

AGES = ("under 35", "35-45", "over 45")
SEED = 2015
_COUNTRIES = {"DK": "Denmark", "FR": "France", "UK": "United Kingdom", "GB": "United Kingdom", "US": "United States"}
_GENDERS = {"M": "male", "F": "female", "MALE": "male", "FEMALE": "female"}


def read_reviews(path: Path, *, per_country: int = 10_000, country: str | None = None) -> Posts:
    """Return reviews with stars as labels and the attributes ``gender``, ``age`` (one of `AGES`) and ``country``.

    ``country`` names a single one to read.
    """
    by_country: dict[str, list[tuple[str, ...]]] = {}
    for document in read_documents(path, label="rating", keep=["gender", "age", "country"]):
        row = _row(document)
        if row is not None and country in (None, row[-1]):
            by_country.setdefault(row[-1], []).append(row)
    minimum = 2 if country is None else 1
    if len(by_country) < minimum:
        raise DataError(
            f"{path.name}: {len(by_country)} countries have a review with rating, gender and age, expected at least "
            f"{minimum} of {country or ', '.join(_COUNTRIES)}: check the names of the columns"
        )
    count = min(per_country, *(len(rows) for rows in by_country.values()))
    bits = RandomBits(seed=SEED)
    chosen = [
        by_country[name][place]
        for name in sorted(by_country)
        for place in np.sort(bits.integers(len(by_country[name])).argsort()[:count])
    ]
    texts, ratings, genders, ages, countries = zip(*chosen, strict=True)
    attributes = {"gender": np.array(genders), "age": np.array(ages), "country": np.array(countries)}
    people = np.unique([str(place) for place in range(len(texts))], return_inverse=True)[1].astype(np.int64)
    return Posts("sentiment", tuple(texts), people, np.array(ratings), attributes)


def _row(document: Document) -> tuple[str, ...] | None:
    """Return (text, stars, gender, age group, country) if all are known."""
    columns = {name: str(value or "").strip() for name, value in (document.attributes or {}).items()}
    stars = str(document.label or "").strip().removesuffix(".0")
    gender, country = _GENDERS.get(columns["gender"].upper()), _COUNTRIES.get(columns["country"].upper())
    try:
        age = float(columns["age"])
    except ValueError:
        return None
    text = document.text or ""
    if not text.strip() or stars not in ("1", "2", "3", "4", "5") or gender is None or country is None or not age > 0:
        return None
    return text, stars, gender, AGES[0] if age < 35 else AGES[1] if age <= 45 else AGES[2], country
