"""Reports on texts and vectors: their contents, the numbers for the owner only, and no private text."""

import json
import re

import numpy as np
import pytest

import dptext
from dptext.errors import DataError, ParameterError
from dptext.methods.files import chosen_rows, columns_of, count_rows, read_rows
from dptext.privacy.randomness import RandomBits
from dptext.release.privatize import privatize_file
from dptext.release.release import write_statement
from dptext.release.run import TextFiles
from repeated import same_draws

pytest.importorskip("sklearn")

SECRET = "Zebulon"
HOMES = ("Ouagadougou", "Antananarivo")  # no words of the vectors
ROWS = 160
MORE = "More was measured with the original texts; those numbers are the owner's and not on this card.\n\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory, glove):
    """160 texts whose words depend on their side, private at epsilon 4; the column `home` is not released."""
    folder = tmp_path_factory.mktemp("report")
    words = glove.words[:400]
    lines = (f"{word} {' '.join(f'{x:.5f}' for x in glove[word])}" for word in words)
    (folder / "small.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    generator = np.random.default_rng(1)
    rows = []
    for n in range(ROWS):
        side, group = ("left", "right")[n % 2], ("north", "south")[n // 2 % 2]
        draws = generator.choice(np.arange(200) + 190 * (n % 2), size=8)
        text = f"{SECRET} {' '.join(words[position] for position in draws)}."
        rows.append({"text": text, "side": side, "group": group, "home": HOMES[n // 2 % 2], "who": n // 2})
    (folder / "in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    with same_draws():
        privatize_file(TextFiles(folder / "in.jsonl", keep=("side", "group", "who")), folder / "out.jsonl", tem(folder))
    return folder


def tem(folder, epsilon=4.0):
    return dptext.TEM(dptext.load_vectors(str(folder / "small.txt")), epsilon=epsilon)


def report(folder, **more):
    options = {"private": folder / "out.jsonl", "vectors": str(folder / "small.txt"), "seed": 1}
    return dptext.report(**options | more)


MODELS = {"label": "side", "attribute": "side", "attackers": ("linear",)}


@pytest.fixture(scope="module")
def everything(folder):
    return report(folder, original=folder / "in.jsonl", **MODELS)


def test_a_report_with_the_originals_has_every_number_and_marks_those_for_the_owner(everything):
    assert not everything.refuted
    assert [check.passed for check in everything.checks] == [True, True, True]
    assert {attack.attack.partition(" (")[0] for attack in everything.owner_attacks} == {"linkage", "word recovery"}
    assert {attack.attack for attack in everything.attacks} == {
        "word recovery (Bayes-optimal)",  # expected at public frequencies, without any text
        "attribute inference of 'side' (linear)",
    }
    assert [entry.owner_only for entry in everything.utility] == [False, True, True]
    assert all(entry.is_useful for entry in everything.utility)
    assert 0 < everything.stays < 1
    page, card = everything.html(), everything.card()
    assert re.findall(r"<h2>(.*?)</h2>", page) == ["Recommendation", "Guarantee", "Attacks", "Utility", "Details"]
    assert "This page is for the owner of the data" in page
    assert SECRET.lower() not in (page + card).lower()


def test_the_card_is_the_same_with_and_without_the_originals(everything, folder):
    alone, card = report(folder, **MODELS), everything.card()
    assert "trained on private rows, tested on private rows" in card and "expected of everyday words" in card
    for word in ("dptext report", "linkage", "nearest vector", "original rows", "--original"):
        assert word not in card

    assert MORE in card
    assert card.replace(MORE, "") == alone.card()
    assert everything.shared().utility == alone.utility
    assert not everything.shared().has_owner_numbers


def test_a_report_on_the_release_alone_is_for_everybody(folder):
    result = report(folder)
    assert not result.has_owner_numbers
    assert "This page is for the owner" not in result.html()
    [attack] = result.attacks
    assert attack.attack == "word recovery (Bayes-optimal)" and attack.score.high - attack.score.low < 1e-9


def test_kept_columns_that_look_like_identifiers_are_named_without_a_value(folder, tmp_path):
    rows = [json.loads(line) for line in (folder / "in.jsonl").read_text().splitlines()]
    path = tmp_path / "in.jsonl"
    path.write_text("".join(json.dumps(row | {"author": f"{SECRET} {n}"}) + "\n" for n, row in enumerate(rows)))
    privatize_file(TextFiles(path, keep=("side", "author")), tmp_path / "out.jsonl", tem(folder))
    result = report(folder, private=tmp_path / "out.jsonl")
    assert [entry.name for entry in result.identifying] == ["author"]
    for text in (result.html(), result.card()):
        assert "author" in text and SECRET not in text
    assert not result.has_owner_numbers


@pytest.mark.slow
def test_numbers_about_an_unreleased_column_are_for_the_owner_and_hide_its_values(folder):
    columns = {"label": "side", "attribute": "home", "attackers": ("linear",)}
    result = report(folder, original=folder / "in.jsonl", rows=140, **columns)
    assert {attack.attack for attack in result.attacks} == {"word recovery (Bayes-optimal)"}
    assert any("attribute inference of 'home'" in attack.attack for attack in result.owner_attacks)
    assert not any(home in result.html() for home in HOMES)
    assert any("140 of 160 rows were examined" in note for note in result.notes)


@pytest.mark.slow
def test_people_are_in_one_fold_and_a_seed_repeats_the_numbers(folder):
    score = report(folder, label="side", user="who").utility[0].score
    assert (score.count, score.of) == (ROWS // 2, "people")
    first, second = (report(folder, label="side", rows=100, seed=3) for _ in range(2))
    assert (first.utility, first.notes) == (second.utility, second.notes)


def test_a_changed_file_is_refuted_and_no_word_is_recovered_from_it(folder, tmp_path):
    statement = dptext.PrivacyStatement.from_json((folder / "out.jsonl.privacy.json").read_text())
    lines = (folder / "out.jsonl").read_text().splitlines(keepends=True)
    (tmp_path / "out.jsonl").write_text("".join([*lines[:-1], lines[0]]))
    write_statement(tmp_path / "out.jsonl.privacy.json", statement)
    result = report(folder, private=tmp_path / "out.jsonl", original=folder / "in.jsonl")
    assert result.refuted and "NO: the guarantee was refuted" in result.html()
    assert any("Word recovery was not tried" in note for note in result.notes)


@pytest.mark.slow
def test_a_report_on_vectors(folder, tmp_path):
    from dptext.representations.device import encode_file
    from dptext.representations.private_encoder import PrivateEncoder

    vectors = dptext.load_vectors(str(folder / "small.txt"))
    encoder = PrivateEncoder(vectors, dptext.PrivUnit(epsilon=8.0), dimension=8, projection="random").fit(None)
    out = tmp_path / "out.parquet"
    encode_file(TextFiles(folder / "in.jsonl", keep=("side", "who")), out, encoder.release_)
    options = {"private": out, "label": "side", "samples": 20_000, "rows": 120, "seed": 1}
    result = dptext.report(original=folder / "in.jsonl", attribute="side", attackers=("linear",), **options)
    assert not result.refuted
    models = ["trained on private rows, tested on private rows", "trained on original rows, tested on original rows"]
    assert [entry.name for entry in result.utility] == models
    assert any("were not linked to their texts" in note for note in result.notes)
    assert "became a vector of 8 numbers" in result.html() and SECRET not in result.html()


def test_unsuitable_files_and_columns_are_refused_without_any_text(folder, tmp_path):
    lines = (folder / "in.jsonl").read_text().splitlines(keepends=True)
    (folder / "short.jsonl").write_text("".join(lines[1:]))
    (folder / "shuffled.jsonl").write_text("".join(['{"text": "the, of"}\n', *lines[1:]]))
    for options, error, message in [
        ({"label": "none"}, DataError, "there is no column 'none'"),
        ({"label": "none", "original": folder / "in.jsonl"}, DataError, "neither has a column 'none'"),
        ({"rows": 3}, ParameterError, "rows must be at least 10"),
        ({"original": folder / "out.jsonl"}, ParameterError, "must be different"),
        ({"original": folder / "short.jsonl"}, DataError, r"must have as many rows as short.jsonl \(159\), got 160"),
        ({"original": folder / "shuffled.jsonl"}, DataError, "the private text does not have the layout"),
        ({"label": "who"}, ParameterError, "'who' must have at least two values that 10 people"),
    ]:
        with pytest.raises(error, match=message) as caught:
            report(folder, **options)
        assert SECRET not in str(caught.value)
    vectors = dptext.load_vectors((["cat", "dog"], [[0.0], [1.0]]))
    with pytest.raises(ParameterError, match=r"dptext\.privatize_file"):
        dptext.report(dptext.privatize(["cat"], dptext.TEM(vectors, epsilon=2.0)))
    dptext.Cooccurrence(vectors, epsilon=1.0, delta=1e-6).fit([dptext.Document("cat", user="u")]).save(tmp_path / "v")
    with pytest.raises(ParameterError, match="v is a folder of dptext: name a private file"):
        dptext.report(tmp_path / "v")


def test_chosen_rows_are_distinct_in_order_and_equally_likely(folder):
    path = folder / "in.jsonl"
    assert count_rows(path, text="text") == ROWS and "who" in columns_of(path)
    chosen = chosen_rows(ROWS, 20, RandomBits(1))
    assert chosen.tolist() == sorted(set(chosen.tolist())) and len(chosen) == 20
    assert chosen_rows(5, 20, RandomBits(1)).tolist() == [0, 1, 2, 3, 4]
    rows = read_rows(path, chosen, text="text", columns=["who"])
    assert rows.columns["who"] == [int(entry) // 2 for entry in chosen]
    assert SECRET not in repr(rows)
    # 4,000 samples of 5 of 20 rows: each row is in a quarter of them; off by 200 of 1000 has probability below 1e-12
    bits = RandomBits(5)
    counts = np.bincount(np.concatenate([chosen_rows(20, 5, bits) for _ in range(4000)]), minlength=20)
    assert abs(counts - 1000).max() < 200
