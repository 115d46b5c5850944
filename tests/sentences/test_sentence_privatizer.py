"""The scikit-learn transformer of a bank: where the bank comes from; contracts/test_estimators.py holds all else."""

import pytest

import dptext
from dptext.errors import ParameterError, StorageError

PUBLIC = ["I like tea.", "She drinks tea.", "He pays his tax.", "Taxes are due.", "Dogs bark."]


def test_a_bank_its_folder_and_the_texts_it_is_made_of_are_the_same(tmp_path):
    bank = dptext.TextBank(PUBLIC, encoder="words", cache=False)
    bank.save(tmp_path / "bank")
    file = tmp_path / "public.txt"
    file.write_text("\n".join(PUBLIC))
    for values, encoder in (
        (bank, None),
        (tmp_path / "bank", None),
        (str(file), "words"),
        (dptext.Pool(PUBLIC), "words"),
    ):
        fitted = dptext.SentencePrivatizer(values, encoder=encoder, epsilon=2.0, size=1, seed=4).fit()
        assert fitted.mechanism_.bank.fingerprint == bank.fingerprint
        texts = fitted.transform(["Tea. Tax!", "Dogs"]).tolist()
        assert texts == dptext.privatize(["Tea. Tax!", "Dogs"], fitted.mechanism_, seed=4).texts
        assert fitted.statement_.guarantee == dptext.PureDP(4.0)


def test_what_the_epsilon_is_for_is_handed_on():
    bank = dptext.TextBank(PUBLIC, encoder="words", cache=False)
    fitted = dptext.SentencePrivatizer(bank, epsilon=3.0, unit="document", max_sentences=2).fit()
    assert fitted.transform(["", "One. Two. Three."]).shape == (2,)
    assert fitted.statement_.guarantee == dptext.PureDP(3.0)
    assert fitted.mechanism_.selection.epsilon == 1.5


def test_what_is_no_bank_is_refused(tmp_path):
    bank = dptext.TextBank(PUBLIC, encoder="words", cache=False)
    with pytest.raises(ParameterError, match="a TextBank has its encoder: leave encoder out"):
        dptext.SentencePrivatizer(bank, encoder="words").fit()
    with pytest.raises(StorageError, match="cannot open"):
        dptext.SentencePrivatizer(tmp_path / "nowhere.jsonl").fit()
    with pytest.raises(ParameterError, match="bank must be a path"):
        dptext.SentencePrivatizer("a\0b").fit()
    with pytest.raises(ParameterError, match="unit must be one of"):
        dptext.SentencePrivatizer(bank, unit="user", epsilon=8.0).fit()
    with pytest.raises(ParameterError, match=r"SentencePrivatizer needs epsilon=\.\.\."):
        dptext.SentencePrivatizer(bank).fit()
