"""Units, relations and trust: names that files and people use."""

import pickle

import pytest

from dptext.privacy.guarantee import Relation, Trust, Unit


@pytest.mark.parametrize(
    ("choices", "names"),
    [
        (Unit, ["word", "sentence", "example", "document", "user"]),
        (Relation, ["substitution", "add/remove"]),
        (Trust, ["local", "central"]),
    ],
)
def test_each_choice_has_the_name_that_files_carry(choices, names):
    assert [str(choice) for choice in choices] == names
    assert [choices(name) for name in names] == list(choices)


def test_a_choice_is_one_object_wherever_it_comes_from():
    for choice in [*Unit, *Relation, *Trust]:
        assert pickle.loads(pickle.dumps(choice)) is choice
        assert type(choice)(str(choice)) is choice


@pytest.mark.parametrize("choices", [Unit, Relation, Trust])
def test_a_name_that_does_not_exist_is_refused(choices):
    with pytest.raises(ValueError, match="person"):
        choices("person")
