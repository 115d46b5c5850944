from dptext.text.tokens import PARAGRAPH_WORDS, count_words, paragraphs, sentences, units_of


def test_a_sentence_ends_where_the_rule_says():
    for text, expected in [
        ("", []),
        (" \n\t", []),
        ("No mark at all", ["No mark at all"]),
        ("One. Two! Three? Four", ["One.", "Two!", "Three?", "Four"]),
        ("great food . nice staff . ok", ["great food .", "nice staff .", "ok"]),
        ("He paid $3.50. Dr. No saw J. K. at 5 p.m. today.", ["He paid $3.50.", "Dr. No saw J. K. at 5 p.m. today."]),
        (
            "Stocks fell... and rose. Why?! (Who knows.) Done",
            ["Stocks fell... and rose.", "Why?!", "(Who knows.)", "Done"],
        ),
        ('He said "Go." Then he left.', ['He said "Go."', "Then he left."]),
        ("a heading\n\nits  text\nover lines", ["a heading", "its text over lines"]),
        ("今日は。元気？はい！", ["今日は。", "元気？", "はい！"]),
        ("What ... ?", ["What ... ?"]),
        ("...", ["..."]),
    ]:
        assert sentences(text) == expected


def test_no_text_takes_more_than_linear_time():
    for text in [
        "." * 200_000,
        "." + '"' * 200_000,
        ".)" * 100_000,
        "\n " * 100_000 + "x",
        ". " * 50_000,
        "a. " * 60_000,
    ]:
        assert len(sentences(text)) <= 1
        assert len(paragraphs(text)) <= 60_000 // PARAGRAPH_WORDS


def test_nothing_but_white_space_is_lost():
    text = "One.  Two!\n\nThree (four). Mr. Five\tsix... seven"
    assert " ".join(sentences(text)) == " ".join(text.split())


def test_a_paragraph_ends_at_a_blank_line_or_before_it_has_too_many_words():
    sentence = "word " * 19 + "end."
    for text, expected in [
        ("", []),
        (" one\ntwo \n \n\r\nthree\n\n", ["one\ntwo", "three"]),
        (" ".join([sentence] * 5), [" ".join([sentence] * 5)]),  # 100 words
        (" ".join([sentence] * 12), [" ".join([sentence] * count) for count in (5, 5, 2)]),
        (f"{'word ' * 150}end. {sentence}", [f"{'word ' * 150}end.", sentence]),  # a long sentence stays whole
        ("食事は。" * 40, ["食事は。 " * 24 + "食事は。", "食事は。 " * 14 + "食事は。"]),  # 4 words each
    ]:
        assert paragraphs(text) == units_of(text, "paragraph") == expected
        assert " ".join(paragraphs(text)).split() == text.split() or not text.isascii()
    assert units_of(" a. b. ", "document") == [" a. b. "]


def test_words_are_counted_in_scripts_with_and_without_spaces():
    for text, expected in {"": 0, "Two words.": 2, "naïve café": 2, "東京でtea": 4, "ไทย": 3, "привет мир": 2}.items():
        assert count_words(text) == expected
