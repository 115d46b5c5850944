"""Summaries on Spark: the numbers of one machine, charged to a ledger."""

import pytest

import dptext
from dptext.errors import DataError, ParameterError
from dptext.ledger.ledger import Ledger
from dptext.spark.frames import PrivateFrame
from dptext.summary.describe import SummaryPlan, describe_files

SCHEMA = "text string, who string, date date"
TOPICS = {"tea": "tea and a cup of coffee", "law": "tax law in court", "sports": "the team won the game"}


def plan(**settings):
    return SummaryPlan(
        **{"epsilon": 4.0, "topics": TOPICS, "phrases": 3, "time": "date", "bins": "2004..2006", **settings}
    )


@pytest.fixture(scope="module")
def frame(spark):
    texts = ["a cup of tea", "our team won", "the law", None]
    rows = [(texts[number % 4], f"u{number % 90}", f"200{4 + number % 3}-05-01") for number in range(360)]
    return spark.createDataFrame(rows, "text string, who string, date string").selectExpr(
        "text", "who", "to_date(date) AS date"
    )


def documents(frame):
    rows = frame.collect()
    return [dptext.Document(row.text, user=row.who, attributes={"date": row.date.isoformat()}) for row in rows]


def test_it_is_the_summary_of_one_machine(frame, tmp_path):
    settings = {"topics": TOPICS, "phrases": 3, "time": "date", "bins": "2004..2006"}
    one = dptext.describe(documents(frame), epsilon=4.0, seed=3, **settings)
    many, skipped = describe_files(PrivateFrame(frame, user="who"), tmp_path / "summary", plan(), seed=3)
    assert many.as_dict() == one.as_dict()
    assert skipped == 0


def test_a_folder_is_charged_to_a_ledger(frame, tmp_path):
    ledger = Ledger.create(tmp_path / "book.db", epsilon=5.0, delta=1e-5)
    out = tmp_path / "summary"
    summary, _ = describe_files(PrivateFrame(frame, user="who"), out, plan(), ledger=ledger.path)
    assert ledger.state(summary.statement.release_id) == "released"
    assert dptext.TextSummary.load(out).as_dict() == summary.as_dict()


def test_wrong_input_is_an_error_before_any_work(frame, tmp_path):
    missing = frame.selectExpr("text", "NULLIF(who, 'u1') AS who", "date")
    with pytest.raises(ParameterError, match="one column 'when'"):
        describe_files(PrivateFrame(frame, user="who"), tmp_path / "summary", plan(time="when"))
    with pytest.raises(DataError, match="no usable value"):
        describe_files(PrivateFrame(missing, user="who"), tmp_path / "summary", plan())
    assert not (tmp_path / "summary").exists()
