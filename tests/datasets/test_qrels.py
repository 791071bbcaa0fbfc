import json
from pathlib import Path

import pytest

from coder_ir.datasets.qrels import load_qrels
from coder_ir.errors import InvalidFile, NotFound
from coder_ir.types import Qrels

HEADER = "query-id\tcorpus-id\tscore\n"
GRADES = {"q1": {"d1": 2, "d2": -1}, "q2": {"d1": 0}}


def written(folder: Path, content: str | bytes) -> Path:
    path = folder / "test.tsv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


class TestForms:
    @pytest.mark.parametrize(
        "content",
        [
            f"{HEADER}q1\td1\t2\nq1\td2\t-1\nq2\td1\t0\n",
            "q1\td1\t2\nq1\td2\t-1\nq2\td1\t0\n",
            "q1 0 d1 2\nq1 0 d2 -1\nq2 0 d1 0\n",
            "q1\t0\td1\t2\nq1\t0\td2\t-1\nq2\t0\td1\t0\n",
            "q1  Q0   d1 2\nq1  Q0   d2 -1\nq2  Q0   d1 0\n",
            "q1 d1 2\nq1 d2 -1\nq2 d1 0\n",
            json.dumps(GRADES),
            json.dumps(GRADES, indent=1),
        ],
        ids=[
            "BEIR",
            "BEIR without header",
            "TREC",
            "TREC with tabs",
            "TREC in columns",
            "three words",
            "JSON",
            "JSON on several lines",
        ],
    )
    def test_every_form_holds_the_same_grades(self, tmp_path: Path, content: str):
        assert load_qrels(written(tmp_path, content)) == Qrels(GRADES)

    @pytest.mark.parametrize(
        "content",
        [
            "q\ta\tsatisfying\nq\tb\tneutral\nq\tc\tviolating\n",
            "q 0 a Satisfying\nq 0 b NEUTRAL\nq 0 c violating\n",
            '{"q": {"a": "satisfying", "b": "neutral", "c": "violating"}}',
        ],
        ids=["BEIR", "TREC", "JSON"],
    )
    def test_label_words_are_grades(self, tmp_path: Path, content: str):
        # The grades that SPEC.md gives the three labels.
        assert load_qrels(written(tmp_path, content)) == Qrels({"q": {"a": 2, "b": 1, "c": -1}})

    def test_ids_stay_text(self, tmp_path: Path):
        assert load_qrels(written(tmp_path, "007\t0042\t1\n")) == Qrels({"007": {"0042": 1}})

    def test_lines_of_a_query_may_lie_apart(self, tmp_path: Path):
        path = written(tmp_path, "q1\td1\t1\nq2\td1\t1\nq1\td2\t2\n")
        assert load_qrels(path) == Qrels({"q1": {"d1": 1, "d2": 2}, "q2": {"d1": 1}})

    def test_with_tabs_an_id_may_hold_a_space(self, tmp_path: Path):
        path = written(tmp_path, "the first\tmy notes\t1\n")
        assert load_qrels(path) == Qrels({"the first": {"my notes": 1}})

    def test_windows_line_ends_are_read(self, tmp_path: Path):
        path = written(tmp_path, f"{HEADER}q1\td1\t1\n".replace("\n", "\r\n"))
        assert load_qrels(path) == Qrels({"q1": {"d1": 1}})

    @pytest.mark.parametrize("start", ["q1\td1\t1", HEADER + "q1\td1\t1", '{"q1": {"d1": 1}}'])
    def test_a_byte_order_mark_is_no_part_of_the_content(self, tmp_path: Path, start: str):
        path = written(tmp_path, b"\xef\xbb\xbf" + start.encode())
        assert load_qrels(path) == Qrels({"q1": {"d1": 1}})

    def test_blank_lines_are_passed_over(self, tmp_path: Path):
        path = written(tmp_path, f"{HEADER}\nq1\td1\t1\n  \n\n")
        assert load_qrels(path) == Qrels({"q1": {"d1": 1}})

    def test_a_quotation_mark_is_an_ordinary_character(self, tmp_path: Path):
        path = written(tmp_path, 'q1\t"d1\t1\nq2\td2\t1\n')
        assert load_qrels(path) == Qrels({"q1": {'"d1': 1}, "q2": {"d2": 1}})

    def test_a_judgement_given_twice_alike_counts_once(self, tmp_path: Path):
        path = written(tmp_path, "q1\td1\t1\nq1\td1\t1\n")
        assert load_qrels(path) == Qrels({"q1": {"d1": 1}})


class TestRefused:
    @pytest.mark.parametrize(
        ("bad", "says"),
        [
            ("q1\td1", "should be query, document, grade"),
            ("q1 0 d1 1 extra", "should be query, document, grade"),
            ("q1\td1\tmuch", "got 'much'"),
            ("q1\td1\t1.5", "got '1.5'"),
            ("q1\td1\t", "got ''"),
        ],
        ids=["two cells", "five words", "no number", "fraction", "empty grade"],
    )
    def test_a_bad_line_is_named(self, tmp_path: Path, bad: str, says: str):
        path = written(tmp_path, f"{HEADER}q1\td1\t1\n{bad}\n")
        with pytest.raises(InvalidFile, match=says) as caught:
            load_qrels(path)
        assert f"{path}:3" in str(caught.value)

    def test_a_bad_first_line_is_not_taken_for_a_header(self, tmp_path: Path):
        with pytest.raises(InvalidFile, match=r"test\.tsv:1"):
            load_qrels(written(tmp_path, "q1\td1\t1.5\nq2\td2\t1\n"))

    def test_a_header_further_down_is_a_bad_line(self, tmp_path: Path):
        with pytest.raises(InvalidFile, match=r"test\.tsv:2.* got 'score'"):
            load_qrels(written(tmp_path, f"q1\td1\t1\n{HEADER}"))

    def test_an_unknown_grade_is_told_the_words_there_are(self, tmp_path: Path):
        with pytest.raises(InvalidFile, match="whole number or satisfying, neutral, violating"):
            load_qrels(written(tmp_path, "q1\td1\tgood\n"))

    def test_two_grades_of_one_document_are_refused(self, tmp_path: Path):
        path = written(tmp_path, "q1\td1\t1\nq2\td1\t2\nq1\td1\t-1\n")
        with pytest.raises(InvalidFile, match=r"test\.tsv:3 grades .*'d1' .*'q1' -1.* line 1"):
            load_qrels(path)

    @pytest.mark.parametrize(
        "content",
        ['{"q1": {"d1": 1}', '{"q1": ["d1"]}', '{"q1": 1}', '{"q1": {"d1": 1.5}}'],
        ids=["cut off", "list", "number", "fraction"],
    )
    def test_json_of_another_shape_is_refused(self, tmp_path: Path, content: str):
        with pytest.raises(InvalidFile, match=r"test\.tsv is not query to document to grade"):
            load_qrels(written(tmp_path, content))

    @pytest.mark.parametrize("content", ["", "\n \n", HEADER, "{}"])
    def test_a_file_without_judgements_is_refused(self, tmp_path: Path, content: str):
        with pytest.raises(InvalidFile, match=r"test\.tsv holds no judgements"):
            load_qrels(written(tmp_path, content))

    def test_a_file_that_is_not_utf8_is_named(self, tmp_path: Path):
        path = written(tmp_path, f"{HEADER}q1\tcaf".encode() + b"\xe9\t1\n")
        with pytest.raises(InvalidFile, match=r"test\.tsv.* is not UTF-8"):
            load_qrels(path)

    def test_a_missing_file_is_named(self, tmp_path: Path):
        with pytest.raises(NotFound, match=r"no judgement file .*test\.tsv"):
            load_qrels(tmp_path / "test.tsv")
