"""Running measurements: what is done again, what is not, and how the command ends."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import get_type_hints

import pytest

from coder_ir.cli.bench import bench
from coder_ir.errors import InvalidValue, NotReproduced
from coder_ir.experiments.comparison import described
from coder_ir.experiments.run import EXPERIMENTS, WHEN_NAMED, run_experiments
from coder_ir.experiments.setup import Report, Setup
from coder_ir.experiments.tables import Table
from tests.conftest import Command
from tests.experiments.conftest import said

Run = Callable[..., list[str]]


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch, setup: Setup) -> list[str]:
    """Names of what was measured, in order; every measurement is a table with a number in it."""
    done: list[str] = []

    def fake(name: str) -> Callable[[Setup, Report], Table]:
        def measure(setup: Setup, report: Report) -> Table:
            done.append(name)
            return Table(name, f"Table {len(done)}", ("a",), (("1",),), ("",), {})

        return measure

    for name in EXPERIMENTS:
        monkeypatch.setitem(EXPERIMENTS, name, fake(name))
    setup.data.mkdir()
    (setup.data / "corpus.jsonl").write_text("one")
    return done


@pytest.fixture
def run(setup: Setup, measured: list[str]) -> Run:
    return lambda *names, **other: list(
        run_experiments(names, replace(setup, **other), report=said)
    )


@pytest.fixture
def surprised(monkeypatch: pytest.MonkeyPatch, run: Run) -> None:
    """The table nevir has a figure that was not expected."""
    usual = EXPERIMENTS["nevir"]

    def measure(setup: Setup, report: Report) -> Table:
        return replace(usual(setup, report), unexpected=("nevir: V@1 of auto is 3, expected 2",))

    monkeypatch.setitem(EXPERIMENTS, "nevir", measure)


class TestAgain:
    def test_what_was_measured_is_read_and_not_measured_again(self, run: Run, measured: list[str]):
        first = run("nevir", "beir")
        assert run("nevir", "beir") == first
        assert run("beir") == first[1:]
        assert measured == ["nevir", "beir"]

    def test_a_report_says_so(self, setup: Setup, run: Run):
        run("nevir")
        messages: list[str] = []
        list(run_experiments(["nevir"], setup, report=messages.append))
        assert messages == ["nevir: measured before with the same code, model and data"]

    @pytest.mark.parametrize(
        "change",
        [
            lambda setup: (setup.data / "corpus.jsonl").write_text("one more"),
            lambda setup: (setup.data / "queries.jsonl").write_text(""),
            lambda setup: (setup.data / "corpus.jsonl").rename(setup.data / "corpus.txt"),
            lambda setup: (setup.out / "nevir.md").unlink(),
            lambda setup: (setup.cache / "done" / "nevir.json").unlink(),
        ],
        ids=["longer file", "new file", "renamed file", "table gone", "mark gone"],
    )
    def test_changed_data_or_a_table_that_is_gone_is_measured_again(
        self, setup: Setup, run: Run, measured: list[str], change: Callable[[Setup], object]
    ):
        run("nevir")
        change(setup)
        assert run("nevir")[0].startswith("## Table 2\n")
        assert measured == ["nevir", "nevir"]

    @pytest.mark.parametrize(
        ("change", "again"),
        [
            (("nfcorpus = [34.2, 12.3]", "nfcorpus = [1.0, 2.0]"), ["beir"]),
            (("alpha = 0.5", "alpha = 0.6"), ["beir", "survival"]),
        ],
        ids=["what is expected", "what is asked"],
    )
    def test_what_a_description_expects_matters_to_its_own_table_alone(
        self,
        run: Run,
        measured: list[str],
        monkeypatch: pytest.MonkeyPatch,
        change: tuple[str, str],
        again: list[str],
    ):
        run("beir", "survival")
        assert change[0] in described("beir")
        changed = {"beir": described("beir").replace(*change)}
        monkeypatch.setattr(
            "coder_ir.experiments.run.described", lambda name: changed.get(name, described(name))
        )
        run("beir", "survival")
        assert measured == ["beir", "survival", *again]

    @pytest.mark.parametrize(
        "other",
        [{"model": "other"}, {"reference": "other"}, {"written": Path(__file__).parent}],
        ids=str,
    )
    def test_another_model_is_measured_again(self, run: Run, measured: list[str], other: dict):
        run("nevir")
        run("nevir", **other)
        assert measured == ["nevir", "nevir"]

    def test_changed_code_is_measured_again(
        self, run: Run, measured: list[str], monkeypatch: pytest.MonkeyPatch
    ):
        run("nevir")
        monkeypatch.setattr("coder_ir.experiments.run.package_digest", lambda leave_out: "new")
        run("nevir")
        assert measured == ["nevir", "nevir"]

    @pytest.mark.parametrize("name", ["goals", "card", "results"])
    def test_what_is_made_of_other_tables_is_made_every_time(
        self, run: Run, measured: list[str], name: str
    ):
        run(name)
        run(name)
        assert measured == [name, name]

    def test_one_that_was_interrupted_is_measured_again(
        self, setup: Setup, measured: list[str], run: Run, monkeypatch: pytest.MonkeyPatch
    ):
        def dies(setup: Setup, report: Report) -> Table:
            raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setitem(EXPERIMENTS, "beir", dies)
            with pytest.raises(KeyboardInterrupt):
                run("nevir", "beir")
        run("nevir", "beir")
        assert measured == ["nevir", "beir"]


class TestChoice:
    def test_by_default_all_but_the_longest_are_measured(self, run: Run, measured: list[str]):
        run()
        assert measured == [name for name in EXPERIMENTS if name not in WHEN_NAMED]

    @pytest.mark.parametrize("name", WHEN_NAMED)
    def test_the_longest_are_measured_when_named(self, run: Run, measured: list[str], name: str):
        run(name)
        assert measured == [name]

    def test_each_is_written_as_it_is_done(self, setup: Setup, measured: list[str]):
        tables: Iterator[str] = run_experiments(["nevir", "beir"], setup, report=said)
        next(tables)
        assert (setup.out / "nevir.json").is_file()
        assert measured == ["nevir"]

    def test_an_unknown_name_is_refused_before_any_is_measured(self, run: Run, measured: list[str]):
        with pytest.raises(InvalidValue, match="no measurement 'speed'; there are development, "):
            run("nevir", "speed")
        assert measured == []


@pytest.mark.usefixtures("surprised")
class TestNotReproduced:
    def test_it_is_raised_after_everything_is_written(self, setup: Setup, run: Run):
        with pytest.raises(NotReproduced, match=r"^nevir: V@1 of auto is 3, expected 2$"):
            run("nevir", "beir")
        assert (setup.out / "nevir.md").is_file()
        assert (setup.out / "beir.md").is_file()

    def test_it_is_raised_again_where_the_table_is_read(self, run: Run, measured: list[str]):
        for _ in range(2):
            with pytest.raises(NotReproduced, match="expected 2"):
                run("nevir")
        assert measured == ["nevir"]

    def test_other_tables_are_fine(self, run: Run):
        assert len(run("beir")) == 1

    def test_the_command_prints_the_tables_and_exits_1(self, setup: Setup, cli: Command):
        done = cli("bench", "nevir", "beir", "--data", setup.data, "--out", setup.out)
        assert done.code == 1
        assert done.out.count("## Table") == 2
        assert done.err == "coder-ir: nevir: V@1 of auto is 3, expected 2\n"


class TestCommand:
    @pytest.mark.usefixtures("measured")
    def test_it_prints_the_tables_and_exits_0(self, setup: Setup, cli: Command):
        done = cli("bench", "beir", "--data", setup.data, "--out", setup.out)
        assert (done.code, done.err) == (0, "")
        assert done.out.startswith("## Table 1\n\n| a |\n")

    def test_an_unknown_name_exits_2(self, setup: Setup, cli: Command):
        done = cli("bench", "speed", "--data", setup.data, "--out", setup.out)
        assert (done.code, done.out) == (2, "")
        assert "no measurement 'speed'" in done.err

    def test_its_options_are_the_setup(
        self, tmp_path: Path, cli: Command, monkeypatch: pytest.MonkeyPatch
    ):
        seen: list[Setup] = []

        def look(names: list[str], setup: Setup, *, report: Report) -> Iterator[str]:
            seen.append(setup)
            return iter(names)

        monkeypatch.setattr("coder_ir.experiments.run.run_experiments", look)
        names = ("data", "out", "reference", "model", "written", "reranker")
        options = [word for name in names for word in (f"--{name}", tmp_path / name)]
        assert cli("bench", "beir", *options).code == 0
        paths = {name: tmp_path / name for name in names}
        texts = {name: str(tmp_path / name) for name in ("reference", "model")}
        assert seen == [Setup(**{**paths, **texts})]

    def test_its_help_names_every_measurement_and_those_left_out(self):
        words = get_type_hints(bench, include_extras=True)["names"].__metadata__[0].help
        named, default = words.split("; ")
        assert named.split(", ") == list(EXPERIMENTS)
        *most, last = WHEN_NAMED
        assert default == f"default: all but {', '.join(most)} and {last}."
