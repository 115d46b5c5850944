"""The walk of a release, whatever is done to the rows: here texts are turned around, and that is their privacy."""

import json
from pathlib import Path
from typing import ClassVar

import pytest

import dptext
from dptext.errors import DataError, ParameterError, RefusedError
from dptext.privacy.ledger import Ledger
from dptext.privacy.noise_key import NoiseKey
from dptext.privacy.unit import Relation, Trust, Unit
from dptext.text import blocks, documents
from dptext.text.files import file_digest
from dptext.text.release import Piece, is_released, rejects_path, release_file, statement_path
from text.secrecy import MARKER


def promise(**changes):
    statement = dptext.PrivacyStatement(
        guarantee=dptext.PureDP(1.0),
        unit=Unit.DOCUMENT,
        relation=Relation.SUBSTITUTION,
        neighbours="any two texts",
        trust=Trust.LOCAL,
        mechanism="turned around",
        parameters={"step": -1},
    )
    return statement.replace(**changes)


class Turned:
    """A `Run`; what it saw is kept for the tests."""

    made: ClassVar[list] = []

    def __init__(self, key, release_id):
        self.secret, self.release_id, self.rows, self.finished = key.secret(), release_id, [], 0
        Turned.made.append(self)

    def promise(self):
        return promise(release_id=self.release_id)

    def work(self, blocks, *, row):
        for place, block in blocks:
            self.rows.append((place, row, len(block.texts)))
            turned = [None if text is None else text[::-1] for text in block.texts]
            data = "".join(json.dumps(text) + "\n" for text in turned).encode()
            yield Piece(place, data, len(turned), {"letters": sum(len(each or "") for each in turned)}, block.rejects)
            row += len(turned)

    def finish(self, blocks, ends, out):
        self.finished += 1
        assert blocks.stat().st_size == ends[-1]
        out.write(b"made of " + blocks.read_bytes())

    def statement(self, facts):
        return promise(parameters={"step": -1, "letters": sum(each["letters"] for each in facts)})


@pytest.fixture
def work(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Turned, "made", [])
    for module in (blocks, documents):
        monkeypatch.setattr(module, "BLOCK_ROWS", 4)
    write("in.jsonl", [{"text": f"{MARKER} {n}", "id": n} for n in range(10)])
    return tmp_path


def write(name, rows):
    Path(name).write_text("".join(json.dumps(row) + "\n" for row in rows))


def release(out="out.txt", source="in.jsonl", **options):
    given = {"options": {"step": -1}, "key": NoiseKey(), "is_assembled": False, **options}
    return release_file(source, Path(out), Turned, **given)


def test_the_pieces_one_after_the_other_are_the_file(work):
    released = release(keep=["id"])
    (run,) = Turned.made
    assert run.rows == [(0, 1, 4), (1, 5, 4), (2, 9, 2)]
    assert [json.loads(line)[::-1] for line in Path("out.txt").read_text().splitlines()] == [
        f"{MARKER} {n}" for n in range(10)
    ]
    assert (released.rows, released.skipped, released.resumed) == (10, 0, 0)
    assert released.statement.parameters["letters"] == sum(each["letters"] for each in released.facts) == 100
    assert released.statement.exposed == ("the column 'id', as it was",)
    assert released.statement.data_sha256 == file_digest("out.txt")
    assert statement_path(Path("out.txt")).read_text() == released.statement.to_json() + "\n"
    assert run.finished == 0
    assert not [each for each in work.iterdir() if each.name.startswith(".")]


def test_a_file_may_be_made_of_the_pieces(work):
    released = release(is_assembled=True)
    assert Path("out.txt").read_text().startswith("made of ")
    assert released.statement.data_sha256 == file_digest("out.txt")
    assert Turned.made[0].finished == 1


def test_a_run_that_goes_on_has_the_same_secret_and_name_and_its_next_rows(work):
    def stop(_reader, rows):
        if rows == 8:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as caught:
        release(progress=stop)
    assert "8 rows are done and kept" in caught.value.__notes__[0]
    with pytest.raises(ParameterError, match="step changed"):
        release(options={"step": 1}, resume=True)
    released = release(resume=True)
    first, second = Turned.made
    assert (first.secret, first.release_id) == (second.secret, second.release_id)
    assert second.rows == [(2, 9, 2)]
    assert (released.rows, released.resumed, len(released.facts)) == (10, 8, 3)


def test_what_is_wrong_with_a_row_stops_the_run_before_anything_is_there(work):
    write("in.jsonl", [{"text": 7}])
    with pytest.raises(DataError, match="row 1"):
        release()
    assert sorted(each.name for each in work.iterdir()) == ["in.jsonl"]
    write("in.jsonl", [{"text": 7}, {"text": "a"}])
    released = release(on_error="skip")
    assert (released.rows, released.skipped) == (1, 1)
    assert rejects_path(Path("out.txt")).exists()
    assert "that rows which could not be read are missing" in released.statement.exposed


def test_a_ledger_is_asked_before_any_row_is_worked_on(work):
    Ledger.create("l.db", releases=1)
    release(ledger="l.db", ledger_key="id")
    assert Ledger("l.db").releases()[0].state == "released"
    with pytest.raises(RefusedError, match="10 of 10 values of 'id'"):
        release("again.txt", ledger="l.db", ledger_key="id")
    assert Turned.made[-1].rows == []
    assert not Path("again.txt").exists()


@pytest.mark.parametrize(("missing", "charged"), [(None, 1), ("", 2)])
def test_a_missing_text_is_charged_where_it_counts_as_one(work, missing, charged):
    Ledger.create("l.db", releases=1)
    write("in.jsonl", [{"text": "a"}, {"text": None}, {"text": None}])
    release(ledger="l.db", missing=missing)
    assert Ledger("l.db").releases()[0].units == charged


def test_a_release_is_known_again_by_its_parameters_columns_and_bytes(work):
    out = Path("out.txt")
    assert not is_released(out, "turned around", {"step": -1}, [])
    release(keep=["id"])
    assert is_released(out, "turned around", {"step": -1}, ["id"])
    for name, parameters, keep in (
        ("other", {"step": -1}, ["id"]),
        ("turned around", {"step": 1}, ["id"]),
        ("turned around", {"step": -1}, []),
    ):
        with pytest.raises(ParameterError, match="is of another run"):
            is_released(out, name, parameters, keep)
    out.write_text("changed")
    with pytest.raises(ParameterError, match="is of another run"):
        is_released(out, "turned around", {"step": -1}, ["id"])
