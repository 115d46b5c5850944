"""A small synthetic corpus with its description, original texts and held-out texts, for tests of reports and audits."""

import json

import numpy as np

import dptext
from dptext.synthesis.release import Draw, PrivateFiles, synthesize_file

WORDS = {"drinks": ("tea", "cup", "cocoa", "milk"), "rules": ("tax", "law", "court", "vote")}
ALL = [word for words in WORDS.values() for word in words]
SECRET = "zebulon"


def vectors():
    """Four words of each side lie together; the names of the sides lie among theirs."""
    generator = np.random.default_rng(1)
    points = [generator.normal(size=4) / 3 + [3 * (label == "rules"), 1, 0, 0] for label in WORDS for _ in range(4)]
    return dptext.load_vectors(([*ALL, *WORDS], [*points, np.mean(points[:4], axis=0), np.mean(points[4:], axis=0)]))


ENCODER = dptext.MeanOfWords(vectors())


def write_rows(path, count, seed):
    """Texts of four words of one side, two per person; every text contains the secret."""
    generator = np.random.default_rng(seed)
    with path.open("w") as stream:
        for n in range(count):
            label = ("drinks", "rules")[n % 2]
            text = " ".join(generator.choice(WORDS[label], size=4)) + f" {SECRET}"
            row = {"text": text, "who": f"{SECRET}{seed}-{n // 2}", "topic": label, "stars": n % 3}
            stream.write(json.dumps(row) + "\n")


def write_pool(path):
    path.write_text("".join(f"{one} and {other} or {third}\n" for one in ALL for other in ALL for third in ALL))


def make(folder, name="made.jsonl", *, n=60, columns=("topic",), unit="user", rows=400, epsilon=4.0, **changes):
    """A corpus with its statement and description, beside in.jsonl, held.jsonl and pool.txt."""
    known = {"topic": list(WORDS), "stars": ["0", "1", "2"]}
    if not (folder / "in.jsonl").exists():
        write_rows(folder / "in.jsonl", rows, 1)
        write_rows(folder / "held.jsonl", rows // 2, 2)
        write_pool(folder / "pool.txt")
    synthesizer = dptext.Synthesizer(
        epsilon=epsilon,
        labels={column: known[column] for column in columns} or None,
        features=ENCODER,
        unit=unit,
        cache=False,
        **changes,
    )
    synthesize_file(
        PrivateFiles(paths=folder / "in.jsonl", user="who" if unit == "user" else None),
        folder / name,
        synthesizer,
        Draw(n=n, public=[folder / "pool.txt"], seed=1, cache=False),
    )
    return folder / name


def edit(path, **parameters):
    """Change the parameters of a statement, but not its digest of the data."""
    statement = json.loads(path.read_text())
    statement["parameters"].update(parameters)
    path.write_text(json.dumps(statement))
