"""Names, addresses and numbers that remain in private texts, counted for the owner only."""

import dptext
from dptext.methods.examination import count_kept_pieces
from dptext.methods.results import KeptPieces
from dptext.reports.page import Report

BEFORE = ["Mr. Lee called +1 212 555 0187", "write to Dr. Ann Smith, ann@x.org", None, "", "ACME and Acme"]
AFTER = ["mr. LEE called <phone>", "write to dr. cat smith, <email>", None, "", "acme and cup"]


def test_pieces_that_stand_there_are_counted_by_kind():
    result = count_kept_pieces(BEFORE, AFTER, words=["acme"])
    assert result == [
        KeptPieces("listed", 2, 2, 0),
        KeptPieces("email", 1, 0, 0),
        KeptPieces("phone", 1, 0, 0),
    ]
    assert count_kept_pieces(BEFORE, [None] * 5)[0] == KeptPieces("email", 1, 0, 0)
    assert count_kept_pieces(["nothing here"], ["nothing here"]) == []


def test_the_page_of_the_owner_says_so_and_what_is_shared_does_not():
    vectors = dptext.load_vectors((["tea", "cup"], [[0.0], [1.0]]))
    statement = dptext.TEM(vectors, epsilon=3.0).document_statement(3)
    report = Report(title="", statement=statement, kept_pieces=count_kept_pieces(BEFORE, AFTER))
    assert report.has_owner_numbers and "0 of 1 (email)" in report.html()
    assert "(email)" not in report.card() and not report.shared().kept_pieces
