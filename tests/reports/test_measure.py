"""A report on files: what is in it when it is asked for, what is marked as the owner's, and no text of anybody."""

import json
import re

import numpy as np
import pytest

import dptext
from dptext.errors import DataError, ParameterError
from dptext.methods.examination import ReportConfig
from dptext.methods.files import chosen_rows, columns_of, count_rows, read_rows
from dptext.release.privatize import privatize_file
from dptext.release.release import write_statement
from repeated import same_draws

pytest.importorskip("matplotlib")
pytest.importorskip("sklearn")

SECRET = "Zebulon"
HOMES = ("Ouagadougou", "Antananarivo")  # no words of the vectors, which come out by chance
ROWS = 160


@pytest.fixture(scope="module")
def folder(tmp_path_factory, glove):
    """160 texts whose words tell the side they are of, private at epsilon 4; a column that stays at home."""
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
    vectors = dptext.load_vectors(str(folder / "small.txt"))
    mechanism = dptext.TEM(vectors, epsilon=4.0)
    with same_draws():
        privatize_file(folder / "in.jsonl", folder / "out.jsonl", mechanism, keep=("side", "group", "who"))
    return folder


@pytest.fixture(scope="module")
def everything(folder):
    return dptext.report(
        ask(
            folder,
            original=folder / "in.jsonl",
            label="side",
            attribute="side",
            group="group",
            attackers=("linear",),
        ),
        command="dptext report out.jsonl",
    )


def ask(folder, **more):
    return ReportConfig(**{"private": folder / "out.jsonl", "vectors": str(folder / "small.txt"), "seed": 1, **more})


def headings(report):
    return re.findall(r"<h2>(.*?)</h2>", report.html())


def test_a_page_with_the_originals_holds_all_of_it_and_marks_what_is_the_owners(everything):
    assert not everything.refuted
    assert [check.passed for check in everything.checks] == [True, True, True]
    assert {attack.attack.partition(" (")[0] for attack in everything.owner_attacks} == {"linkage", "word recovery"}
    assert {attack.attack for attack in everything.attacks} == {
        "word recovery (Bayes-optimal)",  # expected, at public frequencies: no text has a part in it
        "attribute inference of 'side' (linear)",
    }
    assert [entry.owner_only for entry in everything.utility] == [False, True, True]
    assert all(entry.is_useful for entry in everything.utility)
    assert [entry.name for entry in everything.fairness] == ["north", "south"] * 2
    assert 0 < everything.stays < 1
    assert headings(everything) == ["Recommendation", "Guarantee", "Attacks", "Utility", "Details"]
    assert "This page is for the owner of the data" in everything.html()


def test_the_card_holds_nothing_that_was_computed_from_the_originals(everything):
    card = everything.card()
    assert "attribute inference" in card
    assert "trained on private rows, tested on private rows" in card
    assert "expected of everyday words" in card
    for word in ("dptext report", "linkage", "nearest vector", "original rows", "came out unchanged", "--original"):
        assert word not in card
    assert "those numbers are the owner's" in card


def test_one_run_with_the_originals_gives_the_card_that_a_run_without_them_gives(everything, folder):
    """Every number of it, and the command, which needs no original: nothing is lost, and nothing of the owner added."""
    alone = dptext.report(
        ask(folder, label="side", attribute="side", group="group", attackers=("linear",)),
        command="dptext report out.jsonl",
    )

    def compared(card):
        card = re.sub(r"### Before and after\n.*?(?=\n##|\Z)", "", card, flags=re.DOTALL)  # drawn afresh
        return card.replace(
            "More was measured with the original texts; those numbers are the owner's and not on this card.\n\n", ""
        )

    assert compared(everything.card()) == compared(alone.card())
    assert everything.shared().utility == alone.utility
    assert not everything.shared().has_owner_numbers


def test_rows_that_came_out_as_they_were_are_counted_for_the_owner(everything):
    from dptext.methods.examination import count_unchanged
    from dptext.words.replacing import PLACEHOLDERS

    before = ["The doctor, on 3 May.", "Mail me@x.org!", "Fine.", "12!", None, "I DON'T know"]
    after = ["the doctor, on <number> may.", "mail <email>!", "good.", "<number>!", None, "i do n't know"]
    assert count_unchanged(before, after, placeholders=PLACEHOLDERS) == (3, 4)
    assert count_unchanged(before, after) == (1, 4)
    assert count_unchanged(before, ["a doctor, on <number> may.", *after[1:]], placeholders=PLACEHOLDERS) == (2, 4)
    assert everything.unchanged == (0, ROWS)
    assert "came out word for word" in everything.html()


def test_the_count_is_that_of_the_run(folder):
    """At much noise, at little and at next to none."""
    from dptext.methods.examination import count_unchanged
    from dptext.words.replacing import PLACEHOLDERS

    vectors = dptext.load_vectors(str(folder / "small.txt"))
    texts = [f"{vectors.words[n]} {vectors.words[n + 1]}, 7." for n in range(30)] + [SECRET, "!!"]
    for epsilon in (0.5, 20.0, 400.0):
        release = dptext.privatize(texts, dptext.TEM(vectors, epsilon=epsilon))
        assert count_unchanged(texts, release.texts, placeholders=PLACEHOLDERS)[0] == release.tally.unchanged
    assert release.tally.unchanged > 20


def test_kept_columns_that_look_like_identifiers_are_named_without_a_value(folder, tmp_path):
    vectors = dptext.load_vectors(str(folder / "small.txt"))
    rows = [json.loads(line) for line in (folder / "in.jsonl").read_text().splitlines()]
    path = tmp_path / "in.jsonl"
    path.write_text("".join(json.dumps(row | {"author": f"{SECRET} {n}"}) + "\n" for n, row in enumerate(rows)))
    privatize_file(path, tmp_path / "out.jsonl", dptext.TEM(vectors, epsilon=4.0), keep=("side", "author"))
    report = dptext.report(ask(folder, private=tmp_path / "out.jsonl"))
    assert [entry.name for entry in report.identifying] == ["author"]
    for visible in (report.html(), report.card()):
        assert "author" in visible
        assert SECRET not in visible
        assert "side&#39; may" not in visible
    assert not report.has_owner_numbers


def test_no_text_of_the_data_is_on_page_or_card(everything):
    text = (everything.html() + everything.card()).lower()
    assert SECRET.lower() not in text


def test_a_page_of_the_release_alone_is_for_everybody(folder):
    report = dptext.report(ask(folder))
    assert not report.has_owner_numbers
    assert [(attack.attack, attack.score.high - attack.score.low < 1e-9) for attack in report.attacks] == [
        ("word recovery (Bayes-optimal)", True)
    ]
    assert "This page is for the owner" not in report.html()
    assert "What it is still good for" not in headings(report)
    assert "Is it equally good for everybody?" not in headings(report)


@pytest.mark.slow
def test_a_column_that_stayed_unpublished_columns_makes_numbers_the_owners_and_its_values_are_not_shown(folder):
    report = dptext.report(
        ask(
            folder,
            original=folder / "in.jsonl",
            label="side",
            group="home",
            attribute="home",
            attackers=("linear",),
            rows=140,
        )
    )
    assert all(gap.owner_only for gap in (*report.fairness, *report.gaps))
    assert {entry.name for entry in report.fairness} == {"group 1", "group 2"}
    assert {attack.attack for attack in report.attacks} == {"word recovery (Bayes-optimal)"}
    assert any("attribute inference of 'home'" in attack.attack for attack in report.owner_attacks)
    assert not any(home in report.html() for home in HOMES)
    assert any("140 of 160 rows were examined" in note for note in report.notes)


@pytest.mark.slow
def test_people_are_whole_in_a_fold(folder):
    report = dptext.report(ask(folder, label="side", user="who", folds=3))
    assert report.utility[0].score.count == ROWS // 2
    assert report.utility[0].score.of == "people"


@pytest.mark.slow
def test_equal_seeds_equal_numbers(folder):
    question = ask(folder, label="side", rows=100, seed=3)
    first, second = (dptext.report(question) for _ in range(2))
    assert first.utility == second.utility
    assert first.notes == second.notes
    assert first.samples != second.samples  # public sentences, drawn afresh each time


def test_a_changed_file_is_refuted_and_no_word_is_recovered_from_it(folder, tmp_path):
    statement = dptext.PrivacyStatement.from_json((folder / "out.jsonl.privacy.json").read_text())
    lines = (folder / "out.jsonl").read_text().splitlines(keepends=True)
    changed = tmp_path / "out.jsonl"
    changed.write_text("".join([*lines[:-1], lines[0]]))
    write_statement(tmp_path / "out.jsonl.privacy.json", statement)
    report = dptext.report(ask(folder, private=changed, original=folder / "in.jsonl"))
    assert report.refuted
    assert "NO: the guarantee was refuted" in report.html()
    assert any("Word recovery was not tried" in note for note in report.notes)


@pytest.mark.slow
def test_vectors(folder, tmp_path):
    pytest.importorskip("pyarrow")
    from dptext.representations.device import encode_file
    from dptext.representations.private_encoder import PrivateEncoder
    from dptext.representations.privunit import PrivUnit

    vectors = dptext.load_vectors(str(folder / "small.txt"))
    device = PrivateEncoder(vectors, PrivUnit(epsilon=8.0), dimension=8, projection="random").fit(None).release_
    out = tmp_path / "out.parquet"
    encode_file(folder / "in.jsonl", out, device, keep=("side", "who"))
    report = dptext.report(
        ReportConfig(
            private=out,
            original=folder / "in.jsonl",
            label="side",
            attribute="side",
            attackers=("linear",),
            samples=20_000,
            rows=120,
            seed=1,
        )
    )
    assert not report.refuted
    assert [entry.name for entry in report.utility] == [
        "trained on private rows, tested on private rows",
        "trained on original rows, tested on original rows",
    ]
    assert not report.samples
    assert any("were not linked to their texts" in note for note in report.notes)
    assert "became a vector of 8 numbers" in report.html()
    assert SECRET not in report.html()
    # originals that are vectors of another length: a model of private ones cannot read them
    import pyarrow
    from pyarrow import parquet

    long = np.random.default_rng(3).normal(size=(ROWS, 20)).astype(np.float32)
    parquet.write_table(
        pyarrow.table({"vector": pyarrow.FixedSizeListArray.from_arrays(long.ravel(), 20)}), tmp_path / "long.parquet"
    )
    config = ReportConfig(private=out, original=tmp_path / "long.parquet", label="side", samples=20_000, seed=1)
    assert [entry.name for entry in dptext.report(config).utility] == [entry.name for entry in report.utility]


@pytest.mark.parametrize(
    ("asked", "error", "says"),
    [
        ({"label": "none"}, DataError, "expected a column 'none'"),
        ({"label": "none", "original": "in.jsonl"}, DataError, "neither has a column 'none'"),
        ({"group": "group"}, ParameterError, "group needs a label"),
        ({"rows": 3}, ParameterError, "rows must be at least 10"),
        ({"original": "out.jsonl"}, ParameterError, "must be different files"),
        ({"original": "short.jsonl"}, DataError, "must have as many rows as short.jsonl, 159, got 160"),
        ({"original": "shuffled.jsonl"}, DataError, "the private text does not have the layout"),
        ({"label": "who"}, ParameterError, "'who' must have at least two values that 10 people"),
        ({"label": "side", "group": "who"}, ParameterError, "at least two groups of 30 people"),
    ],
)
def test_what_cannot_be_is_said_without_any_text(folder, asked, error, says):
    lines = (folder / "in.jsonl").read_text().splitlines(keepends=True)
    (folder / "short.jsonl").write_text("".join(lines[1:]))
    (folder / "shuffled.jsonl").write_text("".join(['{"text": "the, of"}\n', *lines[1:]]))
    if "original" in asked:
        asked = {**asked, "original": folder / asked["original"]}
    with pytest.raises(error) as caught:
        dptext.report(ask(folder, **asked))
    assert says in str(caught.value)
    assert SECRET not in str(caught.value)


def test_rows_are_chosen_once_each_and_read_in_order(folder):
    from dptext.privacy.randomness import RandomBits

    path = folder / "in.jsonl"
    assert count_rows(path, text="text") == ROWS
    assert "who" in columns_of(path)
    chosen = chosen_rows(ROWS, 20, RandomBits(1))
    assert len(set(chosen.tolist())) == 20
    assert chosen.tolist() == sorted(chosen.tolist())
    assert chosen_rows(5, 20, RandomBits(1)).tolist() == [0, 1, 2, 3, 4]
    rows = read_rows(path, chosen, text="text", columns=["who"])
    assert rows.columns["who"] == [int(entry) // 2 for entry in chosen]
    assert SECRET not in repr(rows)


def test_every_row_is_as_likely_to_be_chosen():
    # 4,000 lots of 5 of 20 rows: each row is in a quarter of them; a count off by 200 of 1000 has chance below 1e-12
    from dptext.privacy.randomness import RandomBits

    bits = RandomBits(5)
    counts = np.bincount(np.concatenate([chosen_rows(20, 5, bits) for _ in range(4000)]), minlength=20)
    assert abs(counts - 1000).max() < 200


def test_a_release_in_memory_is_answered_with_what_makes_a_file():
    mechanism = dptext.TEM(dptext.load_vectors((["cat", "dog"], [[0.0], [1.0]])), epsilon=2.0)
    with pytest.raises(ParameterError, match=r"dptext\.privatize_file"):
        dptext.report(dptext.privatize(["cat"], mechanism))
