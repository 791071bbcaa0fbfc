"""Systems: what is kept in the cache, what makes another run, and where models are found."""

import os
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from coder_ir.encoders import load_encoder
from coder_ir.encoders.folder import Manifest
from coder_ir.encoders.registry import built_in_folder
from coder_ir.errors import InvalidValue, NotFound
from coder_ir.experiments import systems
from coder_ir.experiments.setup import Setup
from coder_ir.experiments.systems import (
    System,
    answered,
    base_model,
    located,
    opened,
    package_digest,
    searcher,
    thinned,
)
from coder_ir.types import SATISFYING, Document, Kind, Progress, Qrels, Query, Scores, VectorPair
from tests.conftest import FakeEncoder
from tests.experiments.conftest import STAY, WORDS, Loaded, said

BY_TOPIC = System("topic", policy="topical")


def runs(setup: Setup) -> list[str]:
    return sorted(path.suffix for path in (setup.cache / "runs").iterdir())


@pytest.mark.usefixtures("loaded")
class TestAnswered:
    def test_a_run_holds_the_hits_of_each_query_in_the_order_of_the_search(self, setup: Setup):
        # a and b tie for q, as all but c do for r; ties go by id, and stay so in the file.
        found = answered(BY_TOPIC, "stay", STAY, setup, said)
        assert found == {"q": ["a", "b", "c"], "r": ["c", "a", "b"]}

    def test_ten_hits_a_query_are_kept(self, setup: Setup):
        many = tuple(Document(f"{n:02}", "hotel") for n in range(12))
        found = answered(BY_TOPIC, "stay", replace(STAY, documents=many), setup, said)
        assert found["q"] == [f"{n:02}" for n in range(10)]

    def test_asked_again_it_reads_the_run_and_opens_no_model(
        self, setup: Setup, loaded: Loaded, encoder: FakeEncoder
    ):
        first = answered(BY_TOPIC, "stay", STAY, setup, said)
        assert len(loaded) == 1
        encoder.encoded.clear()
        assert answered(BY_TOPIC, "stay", STAY, setup, said) == first
        assert (len(loaded), encoder.encoded) == (1, [])

    def test_another_name_for_the_same_system_is_the_same_run(self, setup: Setup, loaded: Loaded):
        answered(BY_TOPIC, "stay", STAY, setup, said)
        answered(replace(BY_TOPIC, name="plain"), "stay", STAY, setup, said)
        assert (len(loaded), runs(setup)) == (1, [".trec"])

    @pytest.mark.parametrize(
        "change",
        [
            {"policy": "compatibility"},
            {"policy": "seq"},
            {"tokens": 8},
            {"hybrid": True},
            {"model": "torch"},
        ],
        ids=str,
    )
    def test_another_way_to_search_is_another_run(self, setup: Setup, change: dict):
        answered(BY_TOPIC, "stay", STAY, setup, said)
        answered(replace(BY_TOPIC, **change), "stay", STAY, setup, said)
        assert len(runs(setup)) == 2

    def test_another_setting_of_the_policy_is_another_run(self, setup: Setup):
        seq = System("seq", policy="seq", settings={"tau": 0.4})
        assert answered(seq, "stay", STAY, setup, said)["q"] == ["b", "a"]
        strict = replace(seq, settings={"tau": 0.6})
        assert answered(strict, "stay", STAY, setup, said)["q"] == ["b"]

    def test_another_model_is_another_run(self, setup: Setup, loaded: Loaded):
        answered(BY_TOPIC, "stay", STAY, setup, said)
        answered(BY_TOPIC, "stay", STAY, replace(setup, model="other"), said)
        assert [model for model, _ in loaded] == ["fake", "other"]

    def test_a_changed_query_is_asked_anew(self, setup: Setup):
        answered(BY_TOPIC, "stay", STAY, setup, said)
        asked = replace(STAY, queries=(Query("q", "garden"), STAY.queries[1]))
        assert answered(BY_TOPIC, "stay", asked, setup, said)["q"] == ["c", "a", "b"]

    def test_a_changed_document_is_found_by_its_new_words(self, setup: Setup):
        answered(BY_TOPIC, "stay", STAY, setup, said)
        changed = (Document("a", "garden"), *STAY.documents[1:])
        asked = replace(STAY, documents=changed)
        assert answered(BY_TOPIC, "stay", asked, setup, said)["r"] == ["a", "c", "b"]

    def test_a_document_that_is_no_longer_there_is_not_found(self, setup: Setup):
        answered(BY_TOPIC, "stay", STAY, setup, said)
        fewer = replace(STAY, documents=STAY.documents[1:])
        assert answered(BY_TOPIC, "stay", fewer, setup, said)["q"] == ["b", "c"]

    def test_a_killed_run_leaves_none_and_is_done_again(
        self, setup: Setup, monkeypatch: pytest.MonkeyPatch
    ):
        with monkeypatch.context() as patch:
            patch.setattr("coder_ir.retriever.load_encoder", lambda *_, **__: DiesAt("garden"))
            with pytest.raises(KeyboardInterrupt):
                answered(BY_TOPIC, "stay", STAY, setup, said)
        assert runs(setup) == [".partial"]
        assert set(answered(BY_TOPIC, "stay", STAY, setup, said)) == {"q", "r"}
        assert runs(setup) == [".trec"]


class DiesAt(FakeEncoder):
    """Killed in the middle of a query; equal to the encoder that lives in all else."""

    def __init__(self, query: str) -> None:
        super().__init__(WORDS, limit=3)
        self.query = query

    def encode(
        self, texts: Sequence[str], *, kind: Kind, progress: Progress | None = None
    ) -> VectorPair:
        if kind == "query" and self.query in texts:
            raise KeyboardInterrupt
        return super().encode(texts, kind=kind, progress=progress)


class TestOpened:
    @pytest.mark.usefixtures("loaded")
    def test_an_index_is_built_once_for_all_policies(self, setup: Setup, encoder: FakeEncoder):
        messages: list[str] = []
        for policy in ("topical", "compatibility", "auto"):
            answered(System(policy, policy=policy), "stay", STAY, setup, messages.append)
        assert encoder.encoded == [document.text for document in STAY.documents]
        assert messages == ["stay: indexed 3 documents with built-in"]

    @pytest.mark.usefixtures("loaded")
    def test_an_index_that_was_interrupted_is_completed(
        self, setup: Setup, encoder: FakeEncoder, monkeypatch: pytest.MonkeyPatch
    ):
        def dies_after_two(documents: Sequence[Document]) -> object:
            yield list(documents)[:2]
            raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr("coder_ir.retriever.batches", dies_after_two)
            with pytest.raises(KeyboardInterrupt), opened(BY_TOPIC, "stay", STAY, setup, said):
                pytest.fail("it should not open")
        assert encoder.encoded == ["hotel noisy+", "hotel quiet+"]
        messages: list[str] = []
        with opened(BY_TOPIC, "stay", STAY, setup, messages.append) as retriever:
            assert len(retriever.search("hotel")) == 3
        assert encoder.encoded[2:] == ["garden"]
        assert messages == ["stay: indexed 1 documents with built-in"]

    @pytest.mark.usefixtures("loaded")
    def test_long_work_says_now_and_then_how_far_it_is(
        self, setup: Setup, monkeypatch: pytest.MonkeyPatch
    ):
        monkeypatch.setattr(systems, "_SAY_EVERY", 2)
        messages: list[str] = []
        for _ in range(2):
            answered(BY_TOPIC, "stay", STAY, setup, messages.append)
        assert messages == [
            "stay, built-in: 3 of 3 documents",
            "stay: indexed 3 documents with built-in",
            f"stay, {BY_TOPIC.name}: 2 of 2 queries",
        ]

    @pytest.mark.usefixtures("loaded")
    def test_data_sets_and_token_limits_have_indexes_of_their_own(self, setup: Setup):
        for data, tokens in (("stay", None), ("stay", 8), ("away", None), ("stay", None)):
            with opened(replace(BY_TOPIC, tokens=tokens), data, STAY, setup, said):
                pass
        names = [path.name for path in (setup.cache / "indexes").iterdir()]
        assert sorted(name.partition("-")[0] for name in names) == ["away", "stay", "stay"]


class LongestFirst:
    """A cross-encoder by length."""

    def __init__(self, folder: Path) -> None:
        assert folder == Path("reranker")

    def score(self, query: str, passages: Sequence[str]) -> Scores:
        return np.array([float(len(passage)) for passage in passages])


@pytest.mark.usefixtures("loaded")
class TestReranked:
    system = replace(BY_TOPIC, rerank=2)

    def test_the_first_hits_are_ordered_anew(self, setup: Setup, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setattr(systems, "CrossEncoder", LongestFirst)
        setup = replace(setup, reranker=Path("reranker"))
        # By topic c, a, b: of the first two, a has more letters.
        assert answered(self.system, "stay", STAY, setup, said)["r"] == ["a", "c", "b"]

    def test_without_a_cross_encoder_it_says_how_to_name_one(self, setup: Setup):
        with (
            opened(self.system, "stay", STAY, setup, said) as retriever,
            pytest.raises(NotFound, match="no cross-encoder; name its folder with --reranker"),
        ):
            searcher(self.system, retriever, setup)


def numbered(count: int) -> tuple[Query, ...]:
    return tuple(Query(f"{n:03}", "hotel") for n in range(count))


class TestThinned:
    @pytest.mark.parametrize("most", [1, 2, 3, 7, 10, 99, 100, 101, 1000])
    def test_at_most_so_many_queries_are_left_evenly_spread(self, most: int):
        queries = numbered(100)
        kept = thinned(replace(STAY, queries=queries, qrels=Qrels({})), most).queries
        places = [queries.index(query) for query in kept]
        assert 1 <= len(places) <= most
        assert len({after - before for before, after in pairwise(places)}) <= 1
        assert 2 * len(places) > min(most, 100)

    def test_seven_of_twenty_are_every_third(self):
        kept = thinned(replace(STAY, queries=numbered(20), qrels=Qrels({})), 7).queries
        assert [query.query_id for query in kept] == [f"{n:03}" for n in range(0, 20, 3)]

    def test_pairs_stay_whole(self):
        queries = numbered(12)
        ids = [query.query_id for query in queries]
        pairs = tuple(zip(ids[::2], ids[1::2], strict=True))
        found = thinned(replace(STAY, queries=queries, qrels=Qrels({}), pairs=pairs), 6)
        assert found.pairs == pairs[::2]
        assert [query.query_id for query in found.queries] == [
            q for pair in pairs[::2] for q in pair
        ]

    def test_judgements_of_the_others_go_with_them_and_documents_stay(self):
        found = thinned(STAY, 1)
        assert list(found.qrels.grades) == ["q"]
        assert found.documents == STAY.documents

    def test_none_keeps_all(self):
        paired = replace(STAY, pairs=(("q", "r"),))
        assert thinned(paired, None) == paired

    def test_none_keeps_a_judged_query_without_a_text_as_it_counts_as_unanswered(self):
        judged = replace(STAY, qrels=Qrels({**STAY.qrels.grades, "gone": {"a": SATISFYING}}))
        assert thinned(judged, None) == judged


class TestLocated:
    def test_words_become_what_the_setup_names(self, setup: Setup):
        assert located("built-in", setup) == "fake"
        assert located("torch + built-in", setup) == "reference+fake"

    @pytest.mark.parametrize("name", ["huge", "", "built-in+", "minilm2"])
    def test_an_unknown_word_is_refused(self, setup: Setup, name: str):
        with pytest.raises(
            InvalidValue, match="a model is one of built-in, torch, base, minilm, got"
        ):
            located(name, setup)

    def test_a_package_that_is_not_installed_is_named_by_its_extra(
        self, setup: Setup, monkeypatch: pytest.MonkeyPatch
    ):
        monkeypatch.setattr(systems, "find_spec", lambda name: None)
        with pytest.raises(NotFound, match=r"no all-MiniLM-L6-v2; .*'coder-ir\[ablation\]'"):
            located("minilm+built-in", setup)

    def test_the_untrained_model_needs_a_model_folder(self, setup: Setup):
        with pytest.raises(NotFound, match="the untrained model needs a model folder, got 'fake'"):
            located("base", setup)


class TestBase:
    @pytest.fixture
    def built_in(self, setup: Setup) -> Setup:
        return replace(setup, model="built-in")

    def test_both_places_hold_the_topical_vectors_of_the_trained_one(self, built_in: Setup):
        texts = ["A hotel without noise.", "Silent rooms by the sea."]
        base = load_encoder(located("base", built_in)).encode(texts, kind="document")
        trained = load_encoder("built-in").encode(texts, kind="document")
        assert np.array_equal(base.compatibility, trained.topical)
        assert np.array_equal(base.topical, trained.topical)
        assert not np.allclose(trained.compatibility, trained.topical, atol=0.05)

    def test_the_folder_is_whole_and_holds_nothing_it_has_no_use_for(self, built_in: Setup):
        folder = base_model(built_in)
        made = Manifest.load(folder)
        made.verify(folder)
        assert made.parser is None
        assert {path.name for path in folder.iterdir()} == {"model.json", *made.sha256}
        assert "compatibility.onnx" not in made.sha256

    def test_it_is_made_once(self, built_in: Setup):
        folder = base_model(built_in)
        mark = folder / "mark"
        mark.touch()
        assert base_model(built_in) == folder
        assert mark.exists()

    def test_it_is_made_again_where_it_was_interrupted(self, built_in: Setup):
        folder = base_model(built_in)
        partial = folder.rename(f"{folder}.partial")
        (partial / "model.json").write_text("{")
        made = base_model(built_in)
        Manifest.load(made).verify(made)
        assert not partial.exists()

    def test_a_new_calibration_makes_a_new_one(self, built_in: Setup, tmp_path: Path):
        model = tmp_path / "model"
        model.mkdir()
        made = Manifest.load(built_in_folder())
        for name in made.sha256:
            os.link(built_in_folder() / name, model / name)
        made.save(model)
        setup = replace(built_in, model=str(model))
        first = base_model(setup)
        (model / "new.json").write_text("{}")
        digests = {k: v for k, v in made.sha256.items() if k != made.calibration}
        replace(made, calibration="new.json", sha256={**digests, "new.json": "1"}).save(model)
        assert base_model(setup) != first


class TestDigest:
    @pytest.fixture
    def package(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        """A package whose modules are those of a folder."""
        root = tmp_path / "package"
        for name in ("a.py", "cli/b.py", "data/c.csv.xz", "model/d.py", "e.pyc"):
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text("one")
        monkeypatch.setattr(systems, "__file__", str(root / "experiments" / "systems.py"))
        return root

    @pytest.mark.parametrize("name", ["a.py", "cli/b.py", "data/c.csv.xz"])
    def test_it_changes_with_code_and_data(self, package: Path, name: str):
        before = package_digest()
        (package / name).write_text("two")
        assert package_digest() != before

    @pytest.mark.parametrize("name", ["model/d.py", "e.pyc", "readme.md"])
    def test_it_does_not_change_with_the_model_or_with_what_is_made(self, package: Path, name: str):
        before = package_digest()
        (package / name).write_text("two")
        assert package_digest() == before

    def test_a_new_module_changes_it_and_one_that_is_renamed_does(self, package: Path):
        digests = {package_digest()}
        (package / "f.py").write_text("")
        digests.add(package_digest())
        (package / "f.py").rename(package / "g.py")
        digests.add(package_digest())
        assert len(digests) == 3

    def test_what_is_left_out_does_not_count(self, package: Path):
        before = package_digest(leave_out=("cli",))
        (package / "cli" / "b.py").write_text("two")
        assert package_digest(leave_out=("cli",)) == before
