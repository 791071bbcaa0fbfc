import json
from pathlib import Path

import pytest

from coder_ir.datasets import runs
from coder_ir.datasets.runs import load_run
from coder_ir.errors import InvalidFile, NotFound

TREC = """\
q1 Q0 d2 1 0.9 mine
q1 Q0 d1 2 0.5 mine
q2 Q0 d1 1 7.25 mine
"""
RANKED = {"q1": ["d2", "d1"], "q2": ["d1"]}
SCORES = {"q1": {"d1": 0.5, "d2": 0.9}, "q2": {"d1": 7.25}}
ROWS = [(q, d, s) for q, own in SCORES.items() for d, s in own.items()]


def written(folder: Path, content: str | bytes) -> Path:
    path = folder / "run"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def jsonl(query: str, document: str) -> str:
    return "".join(json.dumps({query: q, document: d, "score": s}) + "\n" for q, d, s in ROWS)


def trec(*rows: tuple[str, str, float]) -> str:
    return "".join(f"{query} Q0 {doc} 0 {score!r} mine\n" for query, doc, score in rows)


class TestForms:
    @pytest.mark.parametrize(
        "content",
        [
            TREC,
            TREC.replace(" ", "\t"),
            TREC.replace(" ", "  \t"),
            TREC.replace("\n", "\r\n"),
            "\ufeff" + TREC,
            f"\n{TREC}".replace("\n", "\n \n"),
            TREC.rstrip("\n"),
            "q1\td2\t1\nq1\td1\t2\nq2\td1\t1\n",
            "q1\td1\t20\r\nq1\td2\t3\r\nq2\td1\t1",
            jsonl("query_id", "doc_id"),
            jsonl("qid", "docid"),
            jsonl("_id", "pid"),
            "\ufeff" + jsonl("query_id", "doc_id") + "\n\n",
            json.dumps(SCORES),
            json.dumps(SCORES, indent=4),
            "\ufeff \n" + json.dumps(SCORES),
        ],
        ids=[
            "TREC",
            "TREC with tabs",
            "TREC with tabs and spaces",
            "TREC with CRLF",
            "TREC with byte order mark",
            "TREC with blank lines",
            "TREC without final newline",
            "MS MARCO",
            "MS MARCO out of order",
            "jsonl",
            "jsonl of qid, docid",
            "jsonl of _id, pid",
            "jsonl with byte order mark",
            "JSON of ranx and BEIR",
            "JSON on several lines",
            "JSON with byte order mark",
        ],
    )
    def test_every_form_holds_the_same_ranking(self, tmp_path: Path, content: str):
        assert load_run(written(tmp_path, content), depth=10) == RANKED

    @pytest.mark.parametrize("score", [-2, 3, 1e-4, 1e300], ids=str)
    def test_scores_of_json_may_be_any_finite_number(self, tmp_path: Path, score: float):
        path = written(tmp_path, json.dumps({"q1": {"d1": score, "d2": -5}}))
        assert load_run(path, depth=10) == {"q1": ["d1", "d2"]}

    def test_a_query_whose_dictionary_is_empty_has_no_documents(self, tmp_path: Path):
        path = written(tmp_path, '{"q1": {}, "q2": {"d1": 1}}')
        assert load_run(path, depth=10) == {"q1": [], "q2": ["d1"]}

    def test_a_long_json_on_one_line_is_not_taken_for_jsonl(self, tmp_path: Path):
        scores = {f"q{i}": {"d1": 1.0, "d2": 2.0} for i in range(5000)}
        path = written(tmp_path, json.dumps(scores))
        assert load_run(path, depth=1) == {query_id: ["d2"] for query_id in scores}

    @pytest.mark.parametrize("form", ["TREC", "JSON"])
    def test_ids_stay_text(self, tmp_path: Path, form: str):
        content = trec(("007", "0042", 1)) if form == "TREC" else '{"007": {"0042": 1}}'
        assert load_run(written(tmp_path, content), depth=10) == {"007": ["0042"]}

    def test_numbers_as_ids_of_jsonl_become_text(self, tmp_path: Path):
        path = written(tmp_path, '{"query_id": 7, "doc_id": 42, "score": 1}')
        assert load_run(path, depth=10) == {"7": ["42"]}


class TestOrder:
    def test_the_score_ranks_and_not_the_rank_column(self, tmp_path: Path):
        path = written(tmp_path, "q Q0 low 1 0.1 x\nq Q0 high 2 0.9 x\n")
        assert load_run(path, depth=10) == {"q": ["high", "low"]}

    def test_equal_scores_rank_by_descending_id(self, tmp_path: Path):
        rows = [("q", doc_id, 0.5) for doc_id in ("d1", "d9", "é", "d10", "D1")]
        path = written(tmp_path, trec(*rows))
        assert load_run(path, depth=10) == {"q": ["é", "d9", "d10", "d1", "D1"]}

    def test_scores_equal_in_single_precision_are_tied_as_in_trec_eval(self, tmp_path: Path):
        path = written(tmp_path, trec(("q", "a", 30.000002), ("q", "b", 30.000001)))
        assert load_run(path, depth=10) == {"q": ["b", "a"]}

    @pytest.mark.parametrize("depth", [1, 2, 3, 4, 5])
    def test_a_cut_through_ties_keeps_the_highest_ids(self, tmp_path: Path, depth: int):
        scores = {"a": 0.5, "c": 0.5, "b": 0.5, "z": 0.1, "best": 0.9}
        path = written(tmp_path, trec(*(("q", d, s) for d, s in scores.items())))
        assert load_run(path, depth=depth) == {"q": ["best", "c", "b", "a", "z"][:depth]}

    def test_lines_of_a_query_may_lie_apart(self, tmp_path: Path):
        rows = [("q1", "a", 1), ("q2", "a", 1), ("q1", "b", 3), ("q2", "b", 0), ("q1", "c", 2)]
        path = written(tmp_path, trec(*rows))
        assert load_run(path, depth=2) == {"q1": ["b", "c"], "q2": ["a", "b"]}


class TestChunks:
    @pytest.mark.parametrize("chunk", [1, 7, 20, 21, 41, 1000])
    @pytest.mark.parametrize(
        "content",
        [TREC, "\ufeff" + TREC, TREC.replace("\n", "\r\n"), "\n\n" + TREC.rstrip()],
        ids=["plain", "byte order mark", "CRLF", "blank lines"],
    )
    def test_their_size_changes_nothing(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str, chunk: int
    ):
        monkeypatch.setattr(runs, "_CHUNK", chunk)
        assert load_run(written(tmp_path, content), depth=10) == RANKED

    @pytest.mark.parametrize("chunk", [10, 50, 1000])
    def test_a_bad_line_keeps_its_number(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chunk: int
    ):
        monkeypatch.setattr(runs, "_CHUNK", chunk)
        path = written(tmp_path, f"{TREC}\nq3 Q0 d1 1 much mine\n")
        with pytest.raises(InvalidFile, match=rf"{path}:5 has a score or rank that is no number"):
            load_run(path, depth=10)

    @pytest.mark.parametrize("chunk", [10, 30, 1000])
    def test_a_duplicate_below_the_depth_is_still_seen(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chunk: int
    ):
        monkeypatch.setattr(runs, "_CHUNK", chunk)
        rows = [("q", "a", 9), ("q", "b", 8), ("q", "c", 7), ("q", "b", 1)]
        with pytest.raises(InvalidFile, match="lists document 'b' twice for query 'q'"):
            load_run(written(tmp_path, trec(*rows)), depth=1)


class TestRefused:
    @pytest.mark.parametrize(
        ("bad", "says"),
        [
            ("q1 Q0 d3 3 0.1", "has 5 columns, not 6"),
            ("q1 Q0 d3 3 0.1 my run", "has 7 columns, not 6"),
            ("q1 Q0 d3 3 much mine", "has a score or rank that is no number"),
            ("q1 Q0 d3 3 nan mine", "has a score that is not finite"),
            ("q1 Q0 d3 3 inf mine", "has a score that is not finite"),
            ("q1 Q0 d3 3 -Infinity mine", "has a score that is not finite"),
        ],
        ids=["five", "seven", "word", "nan", "inf", "minus inf"],
    )
    def test_a_bad_line_is_named_and_shown(self, tmp_path: Path, bad: str, says: str):
        path = written(tmp_path, f"{TREC}\n{bad}\n{TREC}")
        with pytest.raises(InvalidFile, match=f"{path}:5 {says}: '{bad}'"):
            load_run(path, depth=10)

    @pytest.mark.parametrize("columns", [1, 2, 4, 5, 7])
    def test_a_first_line_of_no_known_form_is_told_the_forms(self, tmp_path: Path, columns: int):
        path = written(tmp_path, " ".join("1" * columns) + "\n")
        with pytest.raises(InvalidFile, match=f"has {columns} columns; TREC's .* MS MARCO's"):
            load_run(path, depth=10)

    @pytest.mark.parametrize(
        "content",
        [
            trec(("q", "a", 2), ("q", "a", 1)),
            trec(("q", "a", 2), ("p", "a", 1), ("q", "a", 1)),
            "q\ta\t1\nq\ta\t2\n",
            '{"query_id": "q", "doc_id": "a", "score": 1}\n' * 2,
        ],
        ids=["TREC", "TREC, lines apart", "MS MARCO", "jsonl"],
    )
    def test_a_document_listed_twice_for_a_query_is_refused(self, tmp_path: Path, content: str):
        with pytest.raises(InvalidFile, match=r"lists (a )?document .*(twice|a second time)"):
            load_run(written(tmp_path, content), depth=10)

    @pytest.mark.parametrize(
        ("bad", "says"),
        [
            ('{"query_id": "q", "doc_id": "b"}', "a score is a finite number, got None"),
            ('{"query_id": "q", "doc_id": "b", "score": "1"}', "finite number, got '1'"),
            ('{"query_id": "q", "doc_id": "b", "score": true}', "finite number, got True"),
            ('{"query_id": "q", "doc_id": "b", "score": NaN}', "NaN is not a JSON number"),
            ('{"query_id": "q", "score": 1}', "none of the fields doc_id, docid, pid"),
            ('{"query_id": null, "doc_id": "b", "score": 1}', "none of the fields query_id"),
            ('{"query_id": "q"', "is not JSON"),
        ],
        ids=["no score", "text", "bool", "nan", "no document", "null query", "cut off"],
    )
    def test_a_bad_line_of_jsonl_is_named(self, tmp_path: Path, bad: str, says: str):
        good = '{"query_id": "q", "doc_id": "a", "score": 1}'
        path = written(tmp_path, f"{good}\n{bad}\n")
        with pytest.raises(InvalidFile, match=says) as caught:
            load_run(path, depth=10)
        assert f"{path}:2" in str(caught.value)

    @pytest.mark.parametrize(
        ("content", "says"),
        [
            ('{"q": {"d": NaN}}', "query 'q': a score is a finite number, got nan"),
            ('{"q": {"d": -Infinity}}', "query 'q': a score is a finite number, got -inf"),
            ('{"q": {"d": "1"}}', "query 'q': a score is a finite number, got '1'"),
            ('{"q": ["d"]}', "should map queries to documents to scores"),
            ('{"q": {"d": 1}', "is not JSON"),
        ],
        ids=["nan", "inf", "text", "list", "cut off"],
    )
    def test_json_of_another_shape_is_refused(self, tmp_path: Path, content: str, says: str):
        with pytest.raises(InvalidFile, match=says):
            load_run(written(tmp_path, content), depth=10)

    @pytest.mark.parametrize("content", ["", "\n \r\n", "\ufeff", "{}"], ids=repr)
    def test_a_run_without_queries_is_refused(self, tmp_path: Path, content: str):
        with pytest.raises(InvalidFile, match=r"run (is empty|holds no queries)"):
            load_run(written(tmp_path, content), depth=10)

    @pytest.mark.parametrize(
        "content",
        [
            b"q1 Q0 caf\xe9 1 0.5 x\n",
            b'{"query_id": "q", "doc_id": "caf\xe9", "score": 1}',
            b'{"q": {"caf\xe9": 1}}',
        ],
        ids=["TREC", "jsonl", "JSON"],
    )
    def test_a_file_that_is_not_utf8_is_named(self, tmp_path: Path, content: bytes):
        path = written(tmp_path, content)
        with pytest.raises(InvalidFile, match=f"{path}.*(not UTF-8|utf-8)"):
            load_run(path, depth=10)

    def test_a_missing_file_is_named(self, tmp_path: Path):
        with pytest.raises(NotFound, match=r"no run file .*run"):
            load_run(tmp_path / "run", depth=10)
