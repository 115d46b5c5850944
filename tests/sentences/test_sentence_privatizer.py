"""`SentencePrivatizer`: sources of the bank; see contracts/test_estimators.py for everything else."""

import pytest

import dptext
from dptext.errors import ParameterError, StorageError

PUBLIC = ["I like tea.", "She drinks tea.", "He pays his tax.", "Taxes are due.", "Dogs bark."]


def test_a_bank_its_folder_and_its_texts_are_equal(tmp_path):
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
    fitted = dptext.SentencePrivatizer(bank, epsilon=3.0, unit="document", max_sentences=2).fit()
    assert fitted.transform(["", "One. Two. Three."]).shape == (2,)
    assert fitted.statement_.guarantee == dptext.PureDP(3.0)
    assert fitted.mechanism_.selection.epsilon == 1.5


def test_invalid_banks_and_arguments_are_refused(tmp_path):
    bank = dptext.TextBank(PUBLIC, encoder="words", cache=False)
    for values, options, error, part in [
        (bank, {"encoder": "words"}, ParameterError, "a TextBank has an encoder: omit encoder"),
        (tmp_path / "nowhere.jsonl", {}, StorageError, "cannot open"),
        ("a\0b", {}, ParameterError, "bank must be a (valid )?path"),
        (bank, {"unit": "user", "epsilon": 8.0}, ParameterError, "unit must be one of"),
        (bank, {}, ParameterError, r"SentencePrivatizer needs epsilon=\.\.\."),
    ]:
        with pytest.raises(error, match=part):
            dptext.SentencePrivatizer(values, **options).fit()
