"""The TrustPilot reviews of the paper (Hovy, Johannsen and Søgaard 2015), for those who have them.

They may not be passed on: nothing here downloads them, and no number of ours is about them. What is expected is a CSV
(plain, ``.gz`` or ``.zst``) whose header names

    text, rating (1 to 5), gender (M or F, male or female), age (in years), country (DK, FR, UK or GB, US)

and perhaps a column of languages and one of users, which are named to `read_reviews`. Reviews that lack one of these,
of other countries, or in another language than English are left out; 10,000 of each country are drawn, or as many of
each as the smallest has. Ages are in three bins: under 35, 35 to 45, over 45.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from papers.dptext.attributed import Attributed

from dptext import Document
from dptext.errors import DataError
from dptext.io.documents import read_documents
from dptext.privacy.randomness import RandomBits

AGES = ("under 35", "35-45", "over 45")
SEED = 2015
_COUNTRIES = {"DK": "Denmark", "FR": "France", "UK": "United Kingdom", "GB": "United Kingdom", "US": "United States"}
_GENDERS = {"M": "male", "F": "female", "MALE": "male", "FEMALE": "female"}
_RATINGS = ("1", "2", "3", "4", "5")
_ENGLISH = ("en", "eng", "english")


def read_reviews(
    path: Path,
    *,
    user: str | None = None,
    language: str | None = None,
    a_country: int = 10_000,
    country: str | None = None,
) -> Attributed:
    """The reviews of a file: stars to be learnt; ``gender``, ``age`` (one of `AGES`) and ``country`` to be hidden.

    Args:
        path: of the CSV.
        user: the column that names who wrote a review; None: everybody wrote one.
        language: the column of languages; None: all are taken for English.
        a_country: how many of each country, at most.
        country: the reviews of this one alone, as the ``country`` of `Reviews` names it; None: of all.

    Raises:
        DataError: a column is missing, or fewer than two countries (or not the one asked for) have a review that can be
            used.
        StorageError: the file cannot be read.
    """
    keep = ["gender", "age", "country", *([] if language is None else [language])]
    by_country: dict[str, list[tuple[Document, tuple[str, str, str, str]]]] = {}
    for document in read_documents(path, user=user, label="rating", keep=keep):
        if (columns := _columns(document, language)) is not None and country in (None, columns[3]):
            by_country.setdefault(columns[3], []).append((document, columns))
    target, minimum = (", ".join(_COUNTRIES), "two") if country is None else (country, "one")
    if len(by_country) < (2 if country is None else 1):
        raise DataError(
            f"{path.name}: {len(by_country)} of the countries {target} have an English review with a rating, a "
            f"gender and an age, expected at least {minimum}: are the columns named as the documentation says?"
        )
    entry = min(a_country, *(len(rows) for rows in by_country.values()))
    bits = RandomBits(seed=SEED)
    draws = [
        by_country[name][place]
        for name in sorted(by_country)
        for place in np.sort(bits.integers(len(by_country[name])).argsort()[:entry])
    ]
    ratings, genders, ages, countries = zip(*(columns for _, columns in draws), strict=True)
    users = [str(place) if document.user is None else document.user for place, (document, _) in enumerate(draws)]
    return Attributed(
        task="sentiment",
        texts=tuple(document.text or "" for document, _ in draws),
        people=np.unique(users, return_inverse=True)[1].astype(np.int64),
        labels=np.array(ratings),
        attributes={"gender": np.array(genders), "age": np.array(ages), "country": np.array(countries)},
    )


def age_bin(age: float) -> str:
    """Under 35, 35 to 45 (both counted in), over 45.

    >>> [age_bin(age) for age in (34, 35, 45, 46)]
    ['under 35', '35-45', '35-45', 'over 45']
    """
    return AGES[0] if age < 35 else AGES[1] if age <= 45 else AGES[2]


def _columns(document: Document, language: str | None) -> tuple[str, str, str, str] | None:
    """(stars, gender, age bin, country), where all are known and the text is English."""
    result = {name: str(value or "").strip() for name, value in (document.attributes or {}).items()}
    if language is not None and result[language].lower() not in _ENGLISH:
        return None
    stars = str(document.label or "").strip().removesuffix(".0")
    gender, country = _GENDERS.get(result["gender"].upper()), _COUNTRIES.get(result["country"].upper())
    try:
        age = float(result["age"])
    except ValueError:
        return None
    if not (document.text or "").strip() or stars not in _RATINGS or gender is None or country is None or not age > 0:
        return None
    return stars, gender, age_bin(age), country
