"""Training the query parser: what it learns from, what it stores, and its graph against torch."""

import json
import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch", reason="needs torch: the extra train")
pytest.importorskip("onnx", reason="needs onnx: the extra train")
pytest.importorskip("sklearn", reason="needs scikit-learn: the extra train")
pytest.importorskip("sentence_transformers", reason="needs torch: the extra train")

import torch

from coder_ir.encoders.folder import Manifest, file_sha256
from coder_ir.encoders.onnx import OnnxEncoder, session
from coder_ir.errors import InvalidValue, MissingExtra, ModelMismatch, NotFound
from coder_ir.query import load_parser, read_queries
from coder_ir.query.parser import KINDS, TAGS
from coder_ir.training.export import ExportPlan, export_model
from coder_ir.training.marked_queries import read_marked, unmarked
from coder_ir.training.parser import (
    Example,
    ParserPlan,
    _logits,
    _network,
    _weights,
    implied_names,
    is_learnt,
    read_examples,
    stated_by,
    train_parser,
)
from coder_ir.training.parser_graph import parser_graph
from coder_ir.types import Role, Triplet
from tests.tiny_bert import save_tiny_bert, with_upper_layers_changed
from tests.training.conftest import OPPOSITES, THINGS

SMALL = ParserPlan(width=8, layers=1, epochs=1, least=1)
Build = Callable[[Path, Path], Path]


def silent(_: str) -> None:
    """Reports to nobody."""


@pytest.fixture(scope="module")
def build(
    opposites: Callable[[Sequence[str]], list[Triplet]], tmp_path_factory: pytest.TempPathFactory
) -> Build:
    """Exports two encoders to a model folder without a parser."""

    def run(topical: Path, compatibility: Path) -> Path:
        folder = tmp_path_factory.mktemp("exported")
        check = folder / "check.jsonl"
        check.write_text("".join(json.dumps(asdict(t)) + "\n" for t in opposites(["room"])))
        export_model(
            ExportPlan(
                str(topical), str(compatibility), folder / "model", "toy", "none", check=check
            )
        )
        return folder / "model"

    return run


@pytest.fixture(scope="module")
def exported(build: Build, tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model folder of two encoders that share their first two layers."""
    return build(tiny, with_upper_layers_changed(tiny, tmp_path_factory.mktemp("upper") / "other"))


@pytest.fixture
def model(exported: Path, tmp_path: Path) -> Path:
    """A copy of it for one test."""
    return Path(shutil.copytree(exported, tmp_path / "model"))


@pytest.fixture(scope="module")
def queries(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Marked queries about opposites: four things to train on, two to calibrate with."""
    folder = tmp_path_factory.mktemp("queries")
    for name, things in (("train", THINGS[:4]), ("development", THINGS[4:])):
        lines = ["# topic: things | domain: toys"]
        for thing in things:
            lines += [
                f"K|a {{i:loud quiet}} {thing}",
                f"K|a {thing} {{c not}} {{x old}}, {{r new}}",
                f"N|N: the {thing} is new. || C: no {thing} is old.",
            ]
            for good, bad in OPPOSITES:
                lines += [
                    f"K|a {good} {thing} {{c without}} {{x {bad}}}",
                    f"P|a {good} {thing} with {bad}",
                ]
        (folder / f"{name}.txt").write_text("".join(f"{line}\n" for line in lines))
    return folder


@pytest.fixture(scope="module")
def trained(exported: Path, queries: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy with a small parser; tests only look at it."""
    folder = Path(shutil.copytree(exported, tmp_path_factory.mktemp("trained") / "model"))
    train_parser(folder, queries=queries, ordinary=None, plan=SMALL, report=silent)
    return folder


def parsers_in(folder: Path) -> list[Path]:
    return sorted(folder.glob("parser*"))


def parser_of(folder: Path) -> Path:
    """The graph that the description names."""
    parsing = Manifest.load(folder).parser
    assert parsing is not None
    return folder / parsing.graph


class TestWhatIsStored:
    def test_the_description_names_the_parser_with_its_digest(self, trained: Path):
        manifest, digest = Manifest.load(trained), file_sha256(parser_of(trained))
        assert parser_of(trained).name == f"parser-{digest[:8]}.onnx"
        assert manifest.sha256[parser_of(trained).name] == digest
        assert parsers_in(trained) == [parser_of(trained)]
        manifest.verify(trained)

    def test_it_says_what_a_word_can_rule_out_without_naming_it(self, trained: Path):
        parsing = Manifest.load(trained).parser
        assert parsing is not None
        assert parsing.names == ("loud",)

    def test_names_come_from_training_queries_alone_in_order(
        self, model: Path, queries: Path, tmp_path: Path
    ):
        folder = Path(shutil.copytree(queries, tmp_path / "queries"))
        with (folder / "train.txt").open("a") as file:
            file.write("K|a {i:wet+cold dry} room\nK|a {i:bright dark} room\n")
        with (folder / "development.txt").open("a") as file:
            file.write("K|a {i:dear cheap} room\n")
        train_parser(model, queries=folder, ordinary=None, plan=SMALL, report=silent)
        parsing = Manifest.load(model).parser
        assert parsing is not None
        assert parsing.names == ("bright", "cold", "loud", "wet")

    def test_what_too_few_queries_imply_is_not_learnt(self, tmp_path: Path):
        (tmp_path / "rooms.txt").write_text("K|{i:wet dry} room\nK|{i:wet+cold dry} room\n")
        assert implied_names(read_marked(tmp_path / "rooms.txt"), least=2) == ("wet",)

    @pytest.mark.parametrize("part", ["train", "development"])
    def test_files_without_queries_are_refused(
        self, model: Path, queries: Path, tmp_path: Path, part: str
    ):
        folder = Path(shutil.copytree(queries, tmp_path / "queries"))
        (folder / f"{part}.txt").write_text("# topic: rooms | domain: hotels\n")
        with pytest.raises(InvalidValue, match=f"{part}.txt holds no queries"):
            train_parser(model, queries=folder, ordinary=None, plan=SMALL, report=silent)

    def test_the_rest_of_the_folder_is_left_alone(self, exported: Path, trained: Path):
        before = {path.name: path.read_bytes() for path in exported.iterdir()}
        after = {path.name: path.read_bytes() for path in trained.iterdir()}
        changed = {name for name in after if before.get(name) != after[name]}
        assert changed == {parser_of(trained).name, "model.json"}
        assert before.keys() < after.keys()
        assert replace(
            Manifest.load(trained), parser=None, sha256=Manifest.load(exported).sha256
        ) == Manifest.load(exported)

    def test_an_index_built_before_still_opens(self, exported: Path, trained: Path):
        assert OnnxEncoder(trained).fingerprint == OnnxEncoder(exported).fingerprint

    def test_a_damaged_parser_is_noticed(self, trained: Path, tmp_path: Path):
        folder = Path(shutil.copytree(trained, tmp_path / "model"))
        parser_of(folder).write_bytes(parser_of(folder).read_bytes()[:-1] + b"?")
        with pytest.raises(ModelMismatch, match=r"parser-.*\.onnx is damaged or was changed"):
            OnnxEncoder(folder)

    def test_training_again_takes_the_place_of_the_old_parser(
        self, trained: Path, queries: Path, tmp_path: Path
    ):
        folder = Path(shutil.copytree(trained, tmp_path / "model"))
        other = replace(SMALL, seed=47)
        train_parser(folder, queries=queries, ordinary=None, plan=other, report=silent)
        assert parser_of(folder).name != parser_of(trained).name
        assert parsers_in(folder) == [parser_of(folder)]
        assert parser_of(trained).name not in Manifest.load(folder).sha256
        Manifest.load(folder).verify(folder)

    def test_the_same_seed_gives_the_same_parser(
        self, trained: Path, model: Path, queries: Path, tmp_path: Path
    ):
        again = Path(shutil.copytree(trained, tmp_path / "again"))
        for folder in (model, again):
            train_parser(folder, queries=queries, ordinary=None, plan=SMALL, report=silent)
            assert Manifest.load(folder) == Manifest.load(trained)
            assert parser_of(folder).read_bytes() == parser_of(trained).read_bytes()
            assert parsers_in(folder) == [parser_of(folder)]

    @pytest.mark.parametrize("before", ["no parser", "a parser"])
    def test_a_kill_before_the_description_is_written_leaves_the_folder_as_it_was(
        self,
        trained: Path,
        exported: Path,
        queries: Path,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        before: str,
    ):
        start = exported if before == "no parser" else trained
        folder = Path(shutil.copytree(start, tmp_path / "model"))

        def killed(self: Manifest, folder: Path) -> None:
            raise KeyboardInterrupt

        other = replace(SMALL, seed=47)
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(Manifest, "save", killed)
            train_parser(folder, queries=queries, ordinary=None, plan=other, report=silent)
        assert OnnxEncoder(folder).manifest == Manifest.load(start)
        train_parser(folder, queries=queries, ordinary=None, plan=other, report=silent)
        assert OnnxEncoder(folder).manifest.parser is not None
        assert parsers_in(folder) == [parser_of(folder)]


@pytest.fixture(scope="module")
def prefixed(build: Build, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As `exported`, but three words are put in front of every query."""
    folder = tmp_path_factory.mktemp("prefixed")
    topical = save_tiny_bert(folder / "topical", prompts={"query": "represent this sentence "})
    return build(topical, with_upper_layers_changed(topical, folder / "other"))


class TestReadingIt:
    ASKED = (
        "a dark room without night",
        "the river is cold. no street is warm.",
        "table",
        "",
        "日",
    )

    def test_a_model_s_own_parser_is_the_one_that_is_loaded(self, trained: Path):
        encoder = OnnxEncoder(trained)
        parser = load_parser(encoder)
        assert parser.encoder is encoder
        found = parser.parse(self.ASKED)
        assert len(found) == len(self.ASKED)
        assert [len(constraint.sentences) for constraint in found] == [1, 2, 1, 0, 1]
        assert all(0 <= constraint.probability <= 1 for constraint in found)

    def test_it_reads_the_same_while_the_query_is_encoded(self, trained: Path):
        encoder = OnnxEncoder(trained)
        parser = load_parser(encoder)
        vectors, constraints = read_queries(self.ASKED, encoder, parser)
        alone = encoder.encode(self.ASKED, kind="query")
        assert constraints == parser.parse(self.ASKED)
        assert np.array_equal(vectors.topical, alone.topical)
        assert np.array_equal(vectors.compatibility, alone.compatibility)

    @pytest.mark.parametrize("start", ["exported", "prefixed"], ids=["no prefix", "a prefix"])
    def test_it_says_of_the_queries_it_has_learnt_what_is_marked_in_them(
        self, request: pytest.FixtureRequest, queries: Path, tmp_path: Path, start: str
    ):
        folder = Path(shutil.copytree(request.getfixturevalue(start), tmp_path / "model"))
        plan = ParserPlan(width=32, layers=1, epochs=250, rate=1e-2, dropout=0.0, noisy=0.0)
        train_parser(folder, queries=queries, ordinary=None, plan=plan, report=silent)
        learnt = read_marked(queries / "train.txt")
        found = load_parser(OnnxEncoder(folder)).parse([query.text for query in learnt])
        for query, constraint in zip(learnt, found, strict=True):
            assert constraint.stated == query.constrained
            assert [(mark.span, mark.role, mark.names) for mark in constraint.marks] == [
                (span, segment.role, segment.names) for span, segment in query.roles()
            ]
            assert [(s.span, s.kind) for s in constraint.sentences] == query.kinds()


class TestWhatItLearnsFrom:
    def examples(
        self, folder: Path, tmp_path: Path, *lines: str, names: tuple[str, ...] = ()
    ) -> list[Example]:
        path = tmp_path / "lines.txt"
        path.write_text("".join(f"{line}\n" for line in lines))
        return list(read_examples(OnnxEncoder(folder), read_marked(path), names))

    def test_a_token_has_the_role_of_its_word(self, exported: Path, tmp_path: Path):
        (found,) = self.examples(exported, tmp_path, "K|a room {c without} {x xy}, {r new}")
        roles: list[Role | None] = [
            *(None, None, "cue"),
            *("excluded", "excluded"),  # x, ##y
            *(None, "required"),
        ]
        assert found.tags == [TAGS.index(role) for role in roles]
        assert found.states.shape == (len(found.tags), 32)
        assert found.sentences == [(list(range(7)), KINDS.index("constraint"))]

    def test_a_prefix_is_nothing_to_learn_from(
        self, exported: Path, prefixed: Path, tmp_path: Path
    ):
        line = "K|K: a room {c not} {x old}. || P: is it new?"
        (plain,), (behind,) = (self.examples(f, tmp_path, line) for f in (exported, prefixed))
        assert (behind.tags, behind.sentences) == (plain.tags, plain.sentences)
        assert behind.states.shape == plain.states.shape
        assert not np.array_equal(behind.states, plain.states)  # but the layers have read it
        assert plain.sentences == [
            (list(range(5)), KINDS.index("constraint")),
            (list(range(5, len(plain.tags))), KINDS.index("plain")),
        ]

    def test_an_implied_word_has_the_names_it_rules_out_of_those_that_are_known(
        self, exported: Path, tmp_path: Path
    ):
        names = ("bright", "cold", "loud")
        (found,) = self.examples(
            exported, tmp_path, "K|a {i:loud+night+bright quiet} room", names=names
        )
        assert found.tags == [0, TAGS.index("implied"), 0]
        assert found.names.tolist() == [[0, 0, 0], [1, 0, 1], [0, 0, 0]]

    def test_there_is_one_example_a_query_in_order(self, exported: Path):
        asked = [unmarked("room " * (1 + number % 3)) for number in range(1003)]
        found = list(read_examples(OnnxEncoder(exported), asked, ()))
        assert [len(example.tags) for example in found] == [
            1 + number % 3 for number in range(1003)
        ]

    def test_a_query_without_a_token_is_left_out(self, exported: Path):
        asked = [unmarked("room"), unmarked(" "), unmarked("a room")]
        found = list(read_examples(OnnxEncoder(exported), asked, ()))
        assert [len(example.tags) for example in found] == [1, 2]

    def test_noisy_copies_and_ordinary_queries_come_beside_the_marked_ones(
        self, model: Path, queries: Path, tmp_path: Path
    ):
        texts = [f"a room number {number}" for number in range(40)]
        learnt = sum(map(is_learnt, texts))
        assert 0 < learnt < len(texts)
        rows = [{"text": texts[0]}, *({"text": text, "use": "Train"} for text in texts[1:])]
        rows += [{"text": text.upper(), "use": "Measure"} for text in texts]
        ordinary = tmp_path / "ordinary.jsonl"
        ordinary.write_text("".join(json.dumps(row) + "\n" for row in rows))
        marked = len(read_marked(queries / "train.txt"))
        for plan, copies, plain in (
            (SMALL, round(0.4 * (marked + learnt)), learnt),
            (replace(SMALL, noisy=0.0), 0, learnt),
            (replace(SMALL, ordinary=5), round(0.4 * (marked + 5)), 5),
        ):
            told: list[str] = []
            train_parser(model, queries=queries, ordinary=ordinary, plan=plan, report=told.append)
            assert told[0] == (
                f"reading {marked} queries, {copies} noisy copies, {plain} ordinary ones"
            )

    def test_real_queries_that_were_read_to_state_a_constraint_do_not_count_as_ordinary(
        self, model: Path, queries: Path, tmp_path: Path
    ):
        learnt = [text for n in range(20) if is_learnt(text := f"room {n} without night")]
        ordinary = tmp_path / "ordinary.jsonl"
        ordinary.write_text("".join(json.dumps({"text": text}) + "\n" for text in learnt))
        folder = Path(shutil.copytree(queries, tmp_path / "queries"))
        assert stated_by(folder) == frozenset()
        (folder / "real-constraints.jsonl").write_text(json.dumps({"text": learnt[0]}) + "\n")
        assert stated_by(folder) == {learnt[0]}
        told: list[str] = []
        train_parser(model, queries=folder, ordinary=ordinary, plan=SMALL, report=told.append)
        assert told[0].endswith(f", {len(learnt) - 1} ordinary ones")

    def test_about_half_of_all_ordinary_queries_are_learnt_always_the_same(self):
        texts = [f"query {number}" for number in range(1000)]
        found = [is_learnt(text) for text in texts]
        assert found == [is_learnt(text) for text in texts]
        assert 0.4 < sum(found) / len(found) < 0.6

    def test_every_epoch_is_told_with_its_loss(self, model: Path, queries: Path):
        told: list[str] = []
        plan = replace(SMALL, epochs=3)
        train_parser(model, queries=queries, ordinary=None, plan=plan, report=told.append)
        assert [line.partition(":")[0] for line in told[1:]] == [
            f"epoch {n} of 3" for n in (1, 2, 3)
        ]
        losses = [float(line.rpartition(" ")[2]) for line in told[1:]]
        assert losses[2] < losses[0]


class TestWhatItRefuses:
    def test_a_model_without_shared_layers(
        self, build: Build, tiny: Path, queries: Path, tmp_path: Path
    ):
        folder = build(tiny, save_tiny_bert(tmp_path / "other", seed=9))
        with pytest.raises(InvalidValue) as raised:
            train_parser(folder, queries=queries, ordinary=None, plan=SMALL, report=silent)
        assert str(raised.value) == (
            f"{folder} has no layers that its roles share; a parser reads those"
        )
        assert parsers_in(folder) == []

    @pytest.mark.parametrize("missing", ["train", "development"])
    def test_a_folder_without_one_of_the_two_parts(
        self, model: Path, queries: Path, tmp_path: Path, missing: str
    ):
        folder = Path(shutil.copytree(queries, tmp_path / "queries"))
        (folder / f"{missing}.txt").unlink()
        with pytest.raises(NotFound, match=rf"no {missing}\.txt or {missing}\.txt\.xz in "):
            train_parser(model, queries=folder, ordinary=None, plan=SMALL, report=silent)
        assert parsers_in(model) == []
        assert Manifest.load(model).parser is None

    def test_a_folder_that_is_no_model(self, queries: Path, tmp_path: Path):
        with pytest.raises(NotFound, match="is not a model folder"):
            train_parser(tmp_path, queries=queries, ordinary=None, plan=SMALL, report=silent)

    def test_a_machine_without_torch(
        self, model: Path, queries: Path, monkeypatch: pytest.MonkeyPatch
    ):
        monkeypatch.setitem(sys.modules, "torch", None)
        with pytest.raises(MissingExtra, match=r"Training a parser .*train"):
            train_parser(model, queries=queries, ordinary=None, plan=SMALL, report=silent)


class TestTheGraph:
    @pytest.mark.parametrize("layers", [1, 2])
    def test_it_gives_the_logits_of_the_torch_network(self, tmp_path: Path, layers: int):
        plan = ParserPlan(width=5, layers=layers)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(3)
            network = _network(plan, 12, 7).eval()
        path = tmp_path / "parser.onnx"
        path.write_bytes(parser_graph(_weights(network, plan)).SerializeToString())
        graph = session(path)
        rng = np.random.default_rng(3)
        batch = [
            Example(
                rng.normal(size=(tokens, 12)).astype(np.float32),
                [0] * tokens,
                np.zeros((tokens, 0), dtype=np.float32),
                [],
            )
            for tokens in (9, 1, 30, 2)
        ]
        with torch.no_grad():
            expected = _logits(network, batch).numpy()
        for rows, example in zip(expected, batch, strict=True):
            (logits,) = graph.run(["logits"], {"hidden": example.states[None]})
            assert logits.shape == (1, len(example.tags), 7)
            assert np.abs(logits[0] - rows[: len(example.tags)]).max() < 1e-4
