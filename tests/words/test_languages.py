"""Texts in other languages than the vectors: nothing of them passes through, in any script."""

import unicodedata

import pytest

import dptext
from dptext.words.replacing import count_foreign_words, words_that_can_come_out

TEXTS = {
    "French": "L’été dernier, l'infirmière a dit qu'aujourd’hui « c'est fini » : 3,50 € à Orléans !",
    "Arabic": "قال الطبيبُ إنّ المريضة تعيش في القاهرة، وعمرها ٤٢ سنة؛ هل هذا صحيح؟",
    "Hindi": "डॉक्टर ने कहा कि मरीज़ दिल्ली में रहती है। उसकी उम्र ४२ साल है।",
    "Japanese": "医者は、患者が東京に住んでいると言った。年齢は42歳です。",
    "Swedish": "Läkaren ljög för Åsa den 3 maj – tror jag.",
    "Thai": "หมอบอกว่าผู้ป่วยอาศัยอยู่ในกรุงเทพฯ",
    "emoji": "Lovely 😀👩🏽‍⚕️ day in 🇫🇷🇯🇵 ❤️‍🔥!! 🏳️‍🌈",
    "mixed": "Dr. Müller sagte: «да» 然后他走了 👋🏾 @mueller x@y.de 5%",
}


@pytest.fixture(scope="module")
def english(glove):
    return dptext.TEM(dptext.load_vectors(glove, limit=2_000), epsilon=4.0)


@pytest.mark.parametrize("language", TEXTS)
def test_nothing_of_a_foreign_text_passes_through(english, language):
    for form in ["NFC", "NFD"]:
        text = unicodedata.normalize(form, TEXTS[language])
        (private,) = dptext.privatize([text], english, seed=1).texts
        assert count_foreign_words(private, words_that_can_come_out(english.vectors.vocabulary)) == 0
        # every letter of another script, every digit and every emoji is gone
        kept = [letter for letter in private if letter in text and not letter.isascii()]
        assert all(unicodedata.category(letter)[0] in "PSZ" for letter in kept)
        assert not any(unicodedata.category(letter) == "So" for letter in kept)
        assert not any(letter.isdigit() for letter in private if letter in text)
