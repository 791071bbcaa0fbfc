"""`coder-ir eval`: what it prints, where, and how it exits."""

import csv
from pathlib import Path

import pytest

from coder_ir.experiments.figures import pyplot
from coder_ir.metrics import DEFAULT
from tests.conftest import Command

QRELS = "".join(f"q{i}\tgood\t2\nq{i}\tbad\t-1\n" for i in range(8))
GOOD = "".join(f"q{i} Q0 good 1 2 x\nq{i} Q0 bad 2 1 x\n" for i in range(8))
BAD = "".join(f"q{i} Q0 bad 1 2 x\nq{i} Q0 good 2 1 x\n" for i in range(8))
PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Every test runs in it and names its files without a path."""
    monkeypatch.chdir(tmp_path)
    for name, content in {"good": GOOD, "bad": BAD, "qrels": QRELS}.items():
        (tmp_path / name).write_text(content, encoding="utf-8")
    return tmp_path


class TestTable:
    def test_it_shows_every_default_measure_with_its_direction(self, cli: Command):
        done = cli("eval", "good", "qrels")
        assert done.code == 0
        header = done.out.splitlines()[0].split()
        assert header[1::2] == list(DEFAULT)
        assert dict(zip(header[1::2], header[2::2], strict=True)).items() >= {
            ("V@1", "↓"),
            ("FVR@10", "↑"),
            ("nDCG@10", "↑"),
        }

    def test_rates_are_in_percent_and_the_first_violation_in_ranks(self, cli: Command):
        done = cli("eval", "bad", "qrels", "-m", "V@1", "-m", "FVR@10", "-m", "RR@10")
        assert done.out.splitlines()[1].split() == ["bad", "100.0", "1.00", "50.0"]
        assert "8 judged queries; rates in percent, FVR in ranks." in done.err

    def test_runs_stand_one_a_line_and_a_significant_difference_has_a_star(self, cli: Command):
        done = cli("eval", "bad", "good", "qrels", "-m", "V@1", "-m", "V@2")
        assert [line.split() for line in done.out.splitlines()[1:]] == [
            ["bad", "100.0", "100.0"],
            ["good", "0.0*", "100.0"],
        ]
        assert "* differs from bad" in done.err

    def test_a_query_stands_on_each_line_when_asked(self, cli: Command, folder: Path):
        (folder / "two").write_text("q0 Q0 bad 1 1 x\nq1 Q0 good 1 1 x\n")
        done = cli("eval", "two", "qrels", "-m", "FVR@10", "--per-query")
        lines = [line.split() for line in done.out.splitlines()[1:]]
        assert lines[:2] == [["two", "q0", "1.00"], ["two", "q1", "11.00"]]
        assert len(lines) == 8

    def test_names_are_shown_as_they_are(self, cli: Command, folder: Path):
        (folder / "[bold]x:100:").write_text("[/i] Q0 good 1 1 x\n")
        (folder / "odd").write_text("[/i]\tgood\t1\n")
        done = cli("eval", "[bold]x:100:", "odd", "-m", "RR@1", "--per-query")
        assert done.code == 0
        assert done.out.splitlines()[1].split() == ["[bold]x:100:", "[/i]", "100.0"]

    def test_one_measure_named_twice_is_shown_once(self, cli: Command):
        done = cli("eval", "good", "qrels", "-m", "AP@10", "-m", "MAP@10")
        assert done.out.split() == ["run", "AP@10", "↑", "good", "100.0"]


class TestStdin:
    def test_a_run_is_read_from_it(self, cli: Command):
        done = cli("eval", "-", "qrels", "-m", "V@1", stdin=BAD.encode())
        assert done.code == 0
        assert done.out.splitlines()[1].split() == ["stdin", "100.0"]

    def test_judgements_are_read_from_it(self, cli: Command):
        done = cli("eval", "bad", "-", "-m", "V@1", stdin=QRELS.encode())
        assert done.out.splitlines()[1].split() == ["bad", "100.0"]

    def test_it_cannot_be_both(self, cli: Command):
        done = cli("eval", "-", "-", stdin=BAD.encode())
        assert done.code == 2
        assert "named twice" in done.err


class TestJson:
    def test_one_object_a_run_holds_run_queries_and_metrics(self, cli: Command):
        done = cli("eval", "bad", "good", "qrels", "--json")
        assert done.code == 0
        bad, good = done.rows
        assert (bad["run"], bad["queries"]) == ("bad", 8)
        assert (good["run"], good["queries"]) == ("good", 8)
        assert list(bad["metrics"]) == list(DEFAULT)

    def test_rates_are_fractions_and_the_first_violation_is_a_rank(self, cli: Command):
        asked = [word for name in ("V@1", "FVR@10", "RR@10", "R@5") for word in ("-m", name)]
        (row,) = cli("eval", "bad", "qrels", "--json", *asked).rows
        assert row["metrics"] == {"V@1": 1.0, "FVR@10": 1.0, "RR@10": 0.5, "R@5": 1.0}

    def test_intervals_and_p_values_stand_beside_the_means(self, cli: Command):
        bad, good = cli("eval", "bad", "good", "qrels", "--json", "-m", "V@1").rows
        assert (bad["intervals"], bad["p_values"]) == ({"V@1": [1.0, 1.0]}, {})
        # All eight queries differ: 2 of 256 sign flips part the runs as far.
        assert good["p_values"]["V@1"] == pytest.approx(2 / 256, abs=0.003)

    def test_one_object_a_query_when_asked(self, cli: Command):
        rows = cli("eval", "bad", "qrels", "--json", "--per-query", "-m", "FVR@10").rows
        assert rows[0] == {"run": "bad", "query_id": "q0", "metrics": {"FVR@10": 1.0}}
        assert [row["query_id"] for row in rows] == [f"q{i}" for i in range(8)]

    def test_runs_of_one_name_are_told_apart_by_their_path(self, cli: Command, folder: Path):
        (folder / "other").mkdir()
        (folder / "other" / "good").write_text(GOOD)
        rows = cli("eval", "good", "other/good", "qrels", "--json").rows
        assert [row["run"] for row in rows] == ["good", "other/good"]


class TestCsv:
    def test_each_mean_is_followed_by_its_interval(self, cli: Command):
        done = cli("eval", "bad", "good", "qrels", "--csv", "-m", "V@1", "-m", "FVR@10")
        assert done.code == 0
        bad, good = csv.DictReader(done.out.splitlines())
        assert bad == {
            "run": "bad",
            "queries": "8",
            **dict.fromkeys(["V@1", "V@1 low", "V@1 high"], "1.0"),
            **dict.fromkeys(["FVR@10", "FVR@10 low", "FVR@10 high"], "1.0"),
        }
        assert (good["run"], good["FVR@10"]) == ("good", "2.0")

    def test_a_query_stands_on_each_line_when_asked(self, cli: Command):
        done = cli("eval", "bad", "good", "qrels", "--csv", "--per-query", "-m", "V@1")
        lines = done.out.splitlines()
        assert (lines[0], lines[1], lines[-1]) == ("run,query_id,V@1", "bad,q0,1.0", "good,q7,0.0")
        assert len(lines) == 1 + 2 * 8


class TestPlot:
    @pytest.fixture(autouse=True)
    def matplotlib(self) -> None:
        pytest.importorskip("matplotlib", reason="needs matplotlib: the extra bench")

    def test_it_is_a_png_with_a_curve_a_run(self, cli: Command, folder: Path):
        done = cli("eval", "good", "bad", "qrels", "--plot", "curves.png")
        assert done.code == 0
        assert "survival curves: curves.png" in done.err
        path = folder / "curves.png"
        assert path.read_bytes().startswith(PNG)
        pixels = pyplot().imread(path)[..., :3]  # (height, width, 3)
        dark, red = pixels.max(axis=2) < 0.2, pixels[..., 0] - pixels[..., 1] > 0.3
        assert 0.5 < (pixels.min(axis=2) > 0.99).mean() < 0.99
        assert min(dark.sum(), red.sum()) > 100

    def test_another_run_gives_another_picture(self, cli: Command, folder: Path):
        pictures = []
        for run in ("good", "bad", "good"):
            cli("eval", run, "qrels", "--plot", "curves.png")
            pictures.append(pyplot().imread(folder / "curves.png").tobytes())
        assert pictures[0] == pictures[2] != pictures[1]

    def test_the_results_are_printed_as_well(self, cli: Command):
        (row,) = cli("eval", "good", "qrels", "--json", "--plot", "curves.png").rows
        assert row["queries"] == 8

    def test_it_is_a_png_whatever_it_is_called(self, cli: Command, folder: Path):
        assert cli("eval", "good", "qrels", "--plot", "curves").code == 0
        assert (folder / "curves").read_bytes().startswith(PNG)

    def test_a_folder_that_is_not_there_is_named(self, cli: Command):
        done = cli("eval", "good", "qrels", "--plot", "none/curves.png")
        assert (done.code, done.out) == (1, "")
        assert "no folder none to write curves.png into" in done.err


class TestTalk:
    def test_judged_queries_without_documents_are_counted(self, cli: Command, folder: Path):
        (folder / "short").write_text("q0 Q0 good 1 1 x\nq1 Q0 good 1 1 x\n")
        done = cli("eval", "short", "qrels", "--json", "-m", "R@1")
        assert "short: 6 of 8 judged queries have no documents" in done.err
        assert (done.rows[0]["unanswered"], done.rows[0]["metrics"]["R@1"]) == (6, 0.25)

    def test_queries_that_are_not_judged_are_counted(self, cli: Command, folder: Path):
        (folder / "long").write_text(GOOD + "x1 Q0 bad 1 1 x\nx2 Q0 bad 1 1 x\n")
        done = cli("eval", "long", "qrels", "--json", "-m", "V@1")
        assert "long: 2 queries are not judged and were left out" in done.err
        assert (done.rows[0]["not_judged"], done.rows[0]["metrics"]["V@1"]) == (2, 0.0)

    def test_judgements_without_a_violation_are_pointed_out(self, cli: Command, folder: Path):
        (folder / "plain").write_text("q0\tgood\t1\n")
        done = cli("eval", "good", "plain", "-m", "R@5", "-m", "V@1")
        assert "no document is judged violating (grade below 0), so V@1 says nothing" in done.err

    def test_a_full_run_gives_no_warning(self, cli: Command):
        assert cli("eval", "good", "qrels", "--json").err == ""


class TestRefused:
    @pytest.mark.parametrize(
        ("args", "says"),
        [
            (("good", "qrels", "-m", "P@5"), "no measure 'P@5'; there are V@k, FVR@k"),
            (("good", "qrels", "--json", "--csv"), "choose one of --json and --csv"),
            (("good",), "at least one run and, last, the judgements"),
            (("good", "./good", "qrels"), "a run file is named twice"),
            ((), "Missing argument 'RUN... QRELS'"),
        ],
        ids=["unknown measure", "two formats", "one file", "a run twice", "no file"],
    )
    def test_misuse_exits_with_two(self, cli: Command, args: tuple[str, ...], says: str):
        done = cli("eval", *args)
        assert (done.code, done.out) == (2, "")
        assert says in done.err

    @pytest.mark.parametrize(
        ("args", "says"),
        [
            (("none", "qrels"), "no run file none"),
            (("good", "none"), "no judgement file none"),
            (("good", "bad", "none"), "no judgement file none"),
            (("good", "broken", "qrels"), "broken:2 has 2 columns, not 6"),
            (("good", "broken"), "broken:1 should be query, document, grade"),
        ],
        ids=["no run", "no judgements", "runs only", "broken run", "broken judgements"],
    )
    def test_a_file_that_cannot_be_read_exits_with_one(
        self, cli: Command, folder: Path, args: tuple[str, ...], says: str
    ):
        (folder / "broken").write_text("q0 Q0 good 1 1 x\nq1 good\n")
        done = cli("eval", *args)
        assert (done.code, done.out) == (1, "")
        assert says in done.err


def test_the_same_runs_give_the_same_bytes(cli: Command):
    one, two = (cli("eval", "bad", "good", "qrels", "--json").out for _ in range(2))
    assert one == two
