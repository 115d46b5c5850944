"""The columns of text, author and labels are found by their names and values; a doubtful author is never chosen."""

import json
import random

import pandas
import pytest

from dptext.methods.data import look

ROWS, PEOPLE = 600, 150
FIRST, LAST, WORDS = (
    words.split()
    for words in (
        "Ann Bob Cara Dan Eva Finn Gil Hana Ivo Jo",
        "Lee Wu Smith Garcia Meyer Rossi Novak Silva",
        "the visit was long and they spoke to us about next steps so we went home very good bad price order",
    )
)

AUTHORS = {  # kind of value: names
    "code": "author_id authorId user_id userid USER_ID uid person_id participant_id subject_id respondent_id "
    "patient_id customerId client_id member_id reviewerID sender_id owner_id OwnerUserId requester_id account_id "
    "worker_id tweet_user_id user_hash autor_id nutzer_id Kundennummer kunden_id id_auteur id_utilisateur id_client "
    "id_usuario",
    "login": "author user username user_name userName handle screen_name login nickname writer speaker who blogger "
    "contributor creator owner reporter commenter created_by createdBy submitted_by submittedBy posted_by member "
    "twitter_handle login_name Autor Verfasser Benutzername auteur utilisateur nom_utilisateur usuario cliente by",
    "email": "email e-mail mail from_address contact_email E-Mail-Adresse user_email from sender "
    "Absender expéditeur correo_electronico remitente",
    "name": "author_name customer-name reviewerName fullName review_author OwnerDisplayName",
}
NO_AUTHORS = {
    "row": "id review_id ticket_id order_number",
    "thing": "product_id zip thread_id parent_id session_id version ip_address isbn listing_id in_reply_to_user_id "
    "updated_by assignee_id annotator_id device_model store_number",
    "name": "name product_name company city bookAuthor employer user_location name_id Assignee",
    "class": "language country status user_type priority user from author is_verified_user team",
    "email": "recipient_email to",
    "number": "rating price user_followers visitor_count age latitude author_count login_count",
    "date": "created_at updated_at date last_login",
    "url": "url userImage link",
    "month": "date",
    "title": "title subject email_subject headline",
}
TEXTS = (
    "text review review_text reviewText body content comment comments message post tweet full_text selftext notes "
    "description answer transcript feedback open_response email_body utterance Beschreibung Kommentar Nachricht "
    "commentaire texte comentario mensaje reseña story complaint"
)
LABELS = (
    "label Label class category topic intent stars star_rating Rating sentiment sentiment_label target overall score "
    "gold_label polarity emotion genre Kategorie Bewertung catégorie etiqueta"
)


def value(kind, row, draw):
    person, first, last = row["person"], FIRST[row["person"] % 10], LAST[row["person"] // 10 % 8]
    return {
        "code": lambda: f"A{person * 7919:07}X",
        "login": lambda: f"{first.lower()}{person}",
        "email": lambda: f"{first}.{person}@mail.example".lower(),
        "name": lambda: f"{first} {last}",
        "row": lambda: 70_000 + row["number"],
        "thing": lambda: 10_000 + 77 * draw.randrange(PEOPLE),
        "class": lambda: draw.choice(["web", "app", "phone"]),
        "number": lambda: int(draw.expovariate(0.01)),
        "date": lambda: f"2024-{1 + row['number'] % 12:02}-{1 + row['number'] % 28:02} 10:{draw.randrange(60):02}",
        "month": lambda: f"{1 + draw.randrange(12)},May,{2000 + draw.randrange(9)}",
        "url": lambda: f"https://example.org/{person}",
        "title": lambda: " ".join(draw.choices(WORDS, k=4)),
        "text": lambda: " ".join(draw.choices(WORDS, k=draw.randint(8, 30))),
    }[kind]()


def table(**kinds):
    draw = random.Random(3)
    rows = [{"number": number, "person": draw.randrange(PEOPLE)} for number in range(ROWS)]
    return [{name: value(kind, row, draw) for name, kind in kinds.items()} for row in rows]


def roles_of(rows):
    return look(rows, text=None, user=None, labels=None).roles


def test_author_columns_are_chosen_and_others_are_not():
    for kind, names in AUTHORS.items():
        for name in names.split():
            roles = roles_of(table(row="row", **{name: kind}, note="text", country="class"))
            assert roles.user == name
            assert [(column.name, column.is_certain, column.rows) for column in roles.candidates] == [
                (name, True, ROWS)
            ]
    for kind, names in NO_AUTHORS.items():
        for name in names.split():
            assert (roles_of(table(row="row", **{name: kind}, note="text")).user, name) == (None, name)


def test_columns_of_texts_and_labels_are_found_by_whole_words():
    for name in TEXTS.split():
        assert roles_of(table(id="row", title="title", **{name: "text"}, url="url")).text == name
    for name in LABELS.split():
        assert roles_of(table(id="row", country="class", text="text", **{name: "class"})).labels == (name,)
    for name in ("classroom", "label_count", "texture"):
        assert roles_of(table(text="text", **{name: "class"})).labels == ()


@pytest.mark.parametrize(
    ("columns", "candidates"),
    [
        ("id:row name:name email:email handle:login text:text", "email handle"),  # a bare name may name a thing
        ("ticket_id:row submitter:name requester_id:code description:text priority:class", "requester_id submitter"),
        ("reviewId:row userName:name userImage:url content:text score:class at:date", "userName"),
        ("from:email subject:title body:text", "from"),
        ("author_id:code id:row text:text lang:class created_at:date", "author_id"),
        ("Id:row OwnerUserId:code OwnerDisplayName:name Title:title Body:text", "OwnerUserId OwnerDisplayName"),
        ("From:name from_id:code text:text", "from_id From"),
        ("uid:row author:login text:text", "author uid"),  # an id per row may number the rows
        ("user:class member_no:code text:text", "member_no"),
        ("reviewer:name reviewer_mail:email text:text", "reviewer_mail reviewer"),
    ],
)
def test_ids_come_before_addresses_logins_and_names(columns, candidates):
    rows = table(**dict(column.split(":") for column in columns.split()))
    assert [column.name for column in roles_of(rows).candidates] == candidates.split()
    assert roles_of(rows).user == candidates.split()[0]


@pytest.mark.parametrize(
    ("columns", "name", "reason"),
    [
        ("codes:code zip:thing date:month note:text", "codes", "its values repeat like the ids of authors"),
        ("user:class note:text", "user", "named like an author, but its values repeat like categories"),
        ("kontakt:email note:text", "kontakt", "an address"),
        ("id:code note:text", "id", "its values repeat like the ids of authors"),
        ("name:name note:text", "name", "names, so namesakes are merged"),
    ],
)
def test_a_doubtful_column_is_a_candidate_that_the_page_asks_to_confirm(advise, columns, name, reason):
    rows = table(**dict(column.split(":") for column in columns.split()))
    advice = advise(rows, purpose="read", trust="central")
    roles, page = advice.data.roles, " ".join(str(advice).split())
    assert roles.user is None and advice.methods[0].commands[0].count("--unit document") == 1
    assert [(column.name, column.reason) for column in roles.candidates] == [(name, reason)]
    assert f"If {name} names the author of a text, run this again with --user" in page
    assert f"It may be {name} ({reason}; {roles.candidates[0].values} values in 600 rows)" in page
    assert json.loads(json.dumps(advice.as_dict()))["data"]["roles"]["candidates"][0]["reason"] == reason
    confirmed = advise(rows, user=name, purpose="read", trust="central")
    assert f"--user {name} " in " ".join(confirmed.methods[0].commands) and "run this again" not in str(confirmed)


def test_the_page_says_why_a_column_was_chosen_and_warns_of_several_values_per_person(advise):
    page = " ".join(str(advise(table(owner="name", owner_id="code", note="text"))).split())
    assert "owner_id (guessed: an id): " in page and "Other candidates: owner (names, so namesakes are merged" in page
    rows = [{"from": f"P{number % 50}@mail.example", "note": f"a text {number}"} for number in range(200)]
    rows += [{"from": f"p{number}@mail.example", "note": f"a text of 2024 {number}"} for number in range(7)]
    data = look(rows, text="note", user=None, labels=None)
    assert (data.people, data.recased) == (57, 7)
    assert "7 addresses differ from another only in upper and lower case" in " ".join(str(advise(rows)).split())
    with_names = [row | {"from": f"Ann <{row['from']}>"} for row in rows]
    assert "each spelling counts as a person" in roles_of(with_names).candidates[0].reason


def test_rows_without_an_author_are_counted_and_the_commands_leave_them_out(advise, tmp_path):
    rows = table(author="login", text="text")
    for number, missing in enumerate((None, "", "  ", float("nan"))):
        rows[number]["author"] = missing
    rows[9]["text"] = None
    pandas.DataFrame(rows).to_csv(tmp_path / "rows.csv", index=False)
    assert look(tmp_path / "rows.csv", text=None, user=None, labels=None).anonymous == 4
    advice = advise(rows, purpose="read", trust="central")
    assert (advice.data.anonymous, advice.data.empty, advice.data.rows) == (4, 1, ROWS)
    assert "600, 1 without a text, 4 without an author" in " ".join(str(advice).split())
    commands = [command for method in advice.methods for command in method.commands if "FILE.jsonl" in command]
    assert len(commands) == 6 and all("--on-error skip" in command.replace("\\\n   ", "") for command in commands)
    complete = advise(rows[10:], purpose="read", trust="central")
    assert not any("--on-error" in command for method in complete.methods for command in method.commands)
    assert complete.data.anonymous == 0 and "without an author" not in str(complete)
    assert advise([{"text": row["text"]} for row in rows]).data.anonymous == 0  # no column of authors
