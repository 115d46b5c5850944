from dptext.text.tokens import sentences


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


def test_nothing_but_white_space_is_lost():
    text = "One.  Two!\n\nThree (four). Mr. Five\tsix... seven"
    assert " ".join(sentences(text)) == " ".join(text.split())
