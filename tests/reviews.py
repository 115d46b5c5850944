"""A table of reviews with what real tables contain: gaps, namesakes, seven languages, and one huge text.

``python -m reviews FOLDER`` (in tests/) writes it in full, with a public pool.
"""

import json
import sys
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from dptext.io.documents import read_documents

ROWS = 12_000
KINDS = ("csv", "xlsx", "parquet", "jsonl")
RATINGS = "1,2,3,4,5"
_AUTHORS = 3_563 / ROWS
_WITHOUT_TEXT, _WITHOUT_AUTHOR = 60 / ROWS, 80 / ROWS
_LONGEST = 1_100_000  # characters
_LONGEST_IN_EXCEL = 32_767
_LONG, _SHORT = 223, 60  # words of a review
_IN_ENGLISH = 0.7
_FIRST = (
    "Ana",
    "Ben",
    "Carla",
    "David",
    "Elena",
    "Farid",
    "Grace",
    "Hiro",
    "Ines",
    "Jonas",
    "Kim",
    "Lucia",
    "Marek",
    "Nadia",
    "Omar",
    "Paula",
)
_LAST = (
    "Abe",
    "Brandt",
    "Castro",
    "Dubois",
    "Eriksen",
    "Fischer",
    "Garcia",
    "Haddad",
    "Ivanova",
    "Jansen",
    "Kowalski",
    "Lopez",
    "Meyer",
    "Novak",
)
_INITIALS = 13
_SENTENCES = {
    "de": ("Das Hotel war sauber und ruhig.", "Der Kellner brachte uns kalte Suppe.", "Wir kommen gern wieder.",
           "Leider war die Lieferung zu spät.", "Der Preis ist angemessen.", "Es war zu laut."),
    "fr": ("Le service était rapide et aimable.", "La chambre donnait sur une cour bruyante.", "Je ne reviendrai pas.",
           "Le film était trop long à mon goût.", "Tout était parfait, merci à l'équipe.", "La soupe manquait de sel."),
    "es": ("La comida llegó fría y tarde.", "El personal fue muy atento.", "Volveremos el próximo verano.",
           "La canción es demasiado lenta.", "El libro me gustó más que la película.", "Nadie contestó al teléfono."),
    "ru": ("Номер был чистым и тихим.", "Нам пришлось долго ждать заказ.", "Очень вкусный суп.",
           "Музыка играла слишком громко.", "Мы обязательно вернёмся.", "Книга показалась мне скучной."),
    "ja": ("部屋はとても静かでした。", "料理が冷めていて残念です。", "店員さんが親切でした。",
           "また来年も泊まりたいです。", "映画は少し長すぎました。", "駅から近くて便利です。"),
    "ar": ("كانت الغرفة نظيفة وهادئة.", "وصل الطعام باردا ومتأخرا.", "الموظفون لطفاء جدا.",
           "لن أعود إلى هذا المكان.", "الفيلم طويل أكثر من اللازم.", "السعر مناسب والموقع جيد."),
}  # fmt: skip


def utterances() -> list[tuple[str, str]]:
    """Return (text, intent) of the bundled public sample (CC0)."""
    path = files("dptext.cli") / "sample" / "snips-train.jsonl.gz"
    return [(str(row.text), str(row.label)) for row in read_documents(str(path), label="intent")]


def reviews(rows: int = ROWS) -> dict[str, list[Any]]:
    """Return the columns of a table with this number of rows; English texts are of every second utterance."""
    generator = np.random.default_rng(37)
    by_intent: dict[str, list[str]] = {}
    for text, intent in utterances()[::2]:
        by_intent.setdefault(intent, []).append(text)
    intents = sorted(by_intent)
    authors = _authors(rows, generator)
    table: dict[str, list[Any]] = {
        name: [] for name in ("review_id", "author_id", "author", "email", "created_at", "rating", "text", "language")
    }
    for number, author in enumerate(authors.tolist()):
        intent = int(generator.integers(len(intents)))
        language = "en" if generator.random() < _IN_ENGLISH else str(generator.choice(list(_SENTENCES)))
        sentences = by_intent[intents[intent]] if language == "en" else _SENTENCES[language]
        first, rest = author % len(_FIRST), author // len(_FIRST)
        initial = chr(ord("A") + rest // len(_LAST) % _INITIALS)  # so few that some people have the same name
        name = f"{_FIRST[first]} {initial}. {_LAST[rest % len(_LAST)]}"
        row = {
            "review_id": f"r{number:06d}",
            "author_id": f"u{author:05d}",
            "author": name,
            "email": f"{_FIRST[first].lower()}.{author}@example.org",
            "created_at": f"2024-{1 + number % 12:02d}-{1 + number % 28:02d}T{number % 24:02d}:30:00",
            "rating": 1 + intent % 5 if generator.random() < 0.8 else int(generator.integers(1, 6)),
            "text": _review(sentences, _LONG if number % 2 else _SHORT, generator),
            "language": language,
        }
        for column, value in row.items():
            table[column].append(value)
    gaps = generator.permutation(rows)
    without_text, without_author = (max(1, round(share * rows)) for share in (_WITHOUT_TEXT, _WITHOUT_AUTHOR))
    for place in gaps[:without_text].tolist():
        table["text"][place] = None
    for place in gaps[without_text : without_text + without_author].tolist():
        for column in ("author_id", "author", "email"):
            table[column][place] = None
    longest = " ".join(by_intent[intents[0]])
    table["text"][int(gaps[-1])] = (longest + " ") * (_LONGEST // len(longest)) + longest[: _LONGEST % len(longest)]
    return table


def _authors(rows: int, generator: np.random.Generator) -> Any:
    """Return the author of each row: each has one row, and few have many."""
    count = max(1, round(rows * _AUTHORS))
    weights = 1.0 / np.arange(1, count + 1)
    others = generator.choice(count, size=rows - count, p=weights / weights.sum())
    return generator.permutation(np.concatenate([np.arange(count), others]))


def _review(sentences: Sequence[str], words: int, generator: np.random.Generator) -> str:
    """Join sentences to about this number of words (in Japanese, a sentence counts as nine)."""
    target, count, chosen = words * generator.uniform(0.6, 1.4), 0, []
    while count < target:
        chosen.append(str(sentences[int(generator.integers(len(sentences)))]))
        count += max(len(chosen[-1].split()), 9 if len(chosen[-1].split()) == 1 else 0)
    return " ".join(chosen)


def write_reviews(folder: Path, rows: int = ROWS, kinds: Sequence[str] = KINDS) -> list[Path]:
    """Write the table as reviews.csv, reviews.xlsx, ... and a public pool of the other utterances as pool.jsonl."""
    table = reviews(rows)
    paths = [folder / f"reviews.{kind}" for kind in kinds]
    for path in paths:
        _WRITERS[path.suffix](path, table)
    pool = [json.dumps({"text": text, "intent": intent}, ensure_ascii=False) for text, intent in utterances()[1::2]]
    (folder / "pool.jsonl").write_text("\n".join(pool) + "\n", encoding="utf-8")
    return paths


def _write_jsonl(path: Path, table: dict[str, list[Any]]) -> None:
    rows = (dict(zip(table, row, strict=True)) for row in zip(*table.values(), strict=True))
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")


def _write_excel(path: Path, table: dict[str, list[Any]]) -> None:
    from openpyxl import Workbook

    book = Workbook(write_only=True)
    sheet = book.create_sheet("reviews")
    sheet.append(list(table))
    for row in zip(*table.values(), strict=True):
        sheet.append([value[:_LONGEST_IN_EXCEL] if isinstance(value, str) else value for value in row])
    book.save(path)


_WRITERS = {
    ".csv": lambda path, table: pa.csv.write_csv(pa.table(table), path),
    ".parquet": lambda path, table: pa.parquet.write_table(pa.table(table), path),
    ".jsonl": _write_jsonl,
    ".xlsx": _write_excel,
}


if __name__ == "__main__":
    write_reviews(Path(sys.argv[1]))
