import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from coder_ir.errors import InvalidFile, NotFound
from coder_ir.training.sentences import (
    cropped,
    gather,
    load_triplets,
    save_triplets,
    split_by_group,
)
from coder_ir.training.sources import CANNOT_FILES
from coder_ir.types import Triplet
from tests.conftest import SHARED


def written(path: Path, rows: Iterable[dict[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def passages(triplets: Iterable[Triplet]) -> set[str]:
    return {text for triplet in triplets for text in (triplet.satisfying, triplet.violating)}


def triplet(group: str, number: int = 0) -> Triplet:
    return Triplet(f"q{number}", f"good {group}", f"bad {group}", group, "test", "none")


ITEM = {
    "id": "ours-1",
    "source": "ours",
    "a": "Quiet.",
    "b": "Loud.",
    "qa": "calm",
    "qb": "wild",
}


class TestGather:
    @pytest.fixture
    def root(self, tmp_path: Path) -> Path:
        items = [ITEM | {"id": f"ours-{i}", "a": f"Quiet {i}."} for i in range(20)]
        rows = [
            {"id": f"{i}-0", "question": f"q{i}", "doc_yes": f"Yes {i}.", "doc_no": f"No {i}."}
            for i in range(50)
        ]
        written(tmp_path / "written" / "contrast.jsonl", items)
        written(tmp_path / "CondaQA-dev" / "dev_flip_triples.jsonl", [*rows, rows[0]])
        return tmp_path

    def test_a_public_source_gives_no_more_than_the_cap(self, root: Path):
        found = gather(root, cap=10, seed=1)
        assert Counter(t.source for t in found)["CondaQA dev"] == 10

    def test_written_triplets_are_all_taken(self, root: Path):
        found = gather(root, cap=10, seed=1)
        assert Counter(t.source for t in found)["written: ours"] == 40

    def test_a_triplet_that_comes_twice_is_taken_once(self, root: Path):
        found = gather(root, cap=1000, seed=1)
        assert Counter(t.source for t in found)["CondaQA dev"] == 50

    def test_the_sample_is_seeded(self, root: Path):
        assert gather(root, cap=10, seed=1) == gather(root, cap=10, seed=1)
        assert gather(root, cap=10, seed=1) != gather(root, cap=10, seed=2)

    def test_a_root_without_a_known_source_says_what_was_expected(self, tmp_path: Path):
        with pytest.raises(NotFound, match="expected folders named written, CondaQA-dev"):
            gather(tmp_path, cap=10, seed=1)

    def test_statements_that_share_a_sentence_stay_on_one_side_of_a_split(self, tmp_path: Path):
        rows = [
            {
                "idx": i,
                "label": 0,
                "input": f"You're not tall {i // 2}.",
                "sentences": [f"You're short {i}.", f"You're tall {i // 2}."],
            }
            for i in range(400)
        ]
        folder = tmp_path / "CANNOT" / "datasets"
        path = folder / "antonym-substitution" / "original" / "SemAntoNeg_v1.0.json"
        written(path, rows)
        for name in CANNOT_FILES:
            path = folder / f"{name}.tsv"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("sentence\tnegated\n", encoding="utf-8")
        train, held_out = split_by_group(gather(tmp_path, cap=1000, seed=1), share=0.5)
        assert train
        assert held_out
        assert not passages(train) & passages(held_out)


LINE = "one two three four five six seven eight nine ten"


class TestAway:
    @pytest.fixture
    def root(self, tmp_path: Path) -> Path:
        items = [
            ITEM | {"id": "ours-0", "a": f"Said {LINE.upper()}, then.", "b": "No."},
            ITEM | {"id": "ours-1", "qa": LINE, "qb": None},
            ITEM | {"id": "ours-2", "a": LINE.replace("eight", "8"), "b": "Never."},
        ]
        written(tmp_path / "written" / "contrast.jsonl", items)
        return tmp_path

    def groups(self, root: Path, *away: str) -> set[str]:
        return {t.satisfying for t in gather(root, cap=10, seed=1, away=away)}

    def test_a_text_that_shares_eight_words_in_a_row_is_kept_out(self, root: Path):
        near = "A B. " + LINE.replace(" nine ten", "; more")
        assert self.groups(root, "other text", near) == {LINE.replace("eight", "8"), "Never."}

    def test_seven_words_in_a_row_do_no_harm(self, root: Path):
        near = LINE.replace(" eight", " x").replace("nine", "y")
        assert self.groups(root, near) == self.groups(root)

    def test_the_run_may_be_anywhere_in_a_text(self, root: Path):
        assert LINE.replace("eight", "8") not in self.groups(
            root, "start three four five six seven 8 nine ten end"
        )

    def test_without_texts_to_keep_away_from_nothing_is_dropped(self, root: Path):
        assert len(self.groups(root)) == 5


class TestSplitByGroup:
    triplets = tuple(triplet(f"g{i // 3}", i) for i in range(3000))

    def test_a_group_is_never_on_both_sides(self):
        train, held_out = split_by_group(self.triplets, share=0.2)
        assert train
        assert held_out
        assert not {t.group for t in train} & {t.group for t in held_out}

    def test_every_triplet_is_on_one_side_in_its_old_order(self):
        train, held_out = split_by_group(self.triplets, share=0.2)
        held = set(held_out)
        assert train == [t for t in self.triplets if t not in held]
        assert held_out == [t for t in self.triplets if t in held]

    @pytest.mark.parametrize("share", [0.08, 0.5])
    def test_about_the_share_of_groups_is_held_out(self, share: float):
        _, held_out = split_by_group(self.triplets, share=share)
        assert len(held_out) / len(self.triplets) == pytest.approx(share, abs=0.03)

    def test_where_a_group_goes_does_not_depend_on_the_others(self):
        _, held_out = split_by_group(self.triplets, share=0.2)
        groups = {t.group for t in held_out}
        for t in self.triplets[::100]:
            assert bool(split_by_group([t], share=0.2)[1]) == (t.group in groups)

    def test_a_share_of_zero_holds_nothing_out(self):
        assert split_by_group(self.triplets, share=0)[1] == []


class TestFiles:
    def test_what_is_saved_is_loaded(self, tmp_path: Path):
        triplets = [triplet("a"), Triplet("q", 'say "x"\n', "naïve\u2028", "g", "s", "l")]
        save_triplets(triplets, tmp_path / "new" / "t.jsonl")
        assert load_triplets(tmp_path / "new" / "t.jsonl") == triplets

    @pytest.mark.parametrize(
        ("bad", "says"),
        [
            ("{", "is not JSON"),
            ('{"query": "q"}', "is not a triplet"),
            ("[]", "is not a triplet"),
            ("7", "is not a triplet"),
        ],
        ids=["broken", "incomplete", "list", "number"],
    )
    def test_a_bad_line_is_named(self, tmp_path: Path, bad: str, says: str):
        path = tmp_path / "t.jsonl"
        save_triplets([triplet("a")], path)
        path.write_text(path.read_text(encoding="utf-8") + bad + "\n", encoding="utf-8")
        with pytest.raises(InvalidFile, match=rf"t\.jsonl:2 {says}"):
            load_triplets(path)

    def test_a_missing_file_is_named(self, tmp_path: Path):
        with pytest.raises(NotFound, match=r"no file .*t\.jsonl"):
            load_triplets(tmp_path / "t.jsonl")


@pytest.fixture(scope="module")
def published() -> list[Triplet]:
    """Every triplet of the published sources, read once; empty where they are not."""
    root = SHARED / "data" / "training"
    return gather(root, cap=10**9, seed=1) if root.is_dir() else []


class TestPublishedSources:
    @pytest.fixture
    def every(self, shared: Path, published: list[Triplet]) -> list[Triplet]:
        return published

    def test_no_text_of_the_nevir_test_set_is_in_a_triplet(
        self, every: list[Triplet], shared: Path
    ):
        path = shared / "data" / "nevir" / "test_open.jsonl"
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        forbidden = {row[name] for row in rows for name in ("q1", "q2", "doc1", "doc2")}
        assert len(forbidden) > 2000
        leaked = [t for t in every if {t.query, t.satisfying, t.violating} & forbidden]
        assert sorted({t.group for t in leaked}) == []

    def test_no_triplet_asks_for_and_against_the_same_text(self, every: list[Triplet]):
        assert [t for t in every if t.satisfying == t.violating] == []

    def test_no_held_out_passage_is_trained_on(self, every: list[Triplet]):
        train, held_out = split_by_group(every, share=0.08)
        assert held_out
        both = passages(train) & passages(held_out)
        assert Counter(t.source for t in held_out if passages([t]) & both) == {}

    def test_the_open_half_of_nevir_can_be_kept_away_from(self, shared: Path):
        path = shared / "data" / "nevir" / "test_open.jsonl"
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        away = [row[name] for row in rows for name in ("q1", "q2", "doc1", "doc2")]
        root = shared / "data" / "training"
        kept = gather(root, cap=100, seed=1, away=away)
        counts = Counter(t.source for t in kept if not t.source.startswith("written"))
        assert set(counts.values()) == {100}


class TestCropped:
    def test_near_copies_are_cut_to_the_sentences_that_differ(self):
        good, bad = (
            "Set in 1931. It is shut. A toll house.",
            "Set in 1931. It is open. A toll house.",
        )
        one = Triplet("which is closed", good, bad, "g", "s", "l")
        other = Triplet("which can be crossed", bad, good, "g", "s", "l")
        assert [(t.query, t.satisfying, t.violating) for t in cropped([one, other])] == [
            ("which is closed", "It is shut.", "It is open."),
            ("which can be crossed", "It is open.", "It is shut."),
        ]

    def test_group_source_and_licence_stay(self):
        whole = Triplet("q", "Same. Old.", "Same. New.", "g", "s", "l")
        assert [(t.group, t.source, t.licence) for t in cropped([whole])] == [("g", "s", "l")]

    @pytest.mark.parametrize(
        ("good", "bad"),
        [("One. Two.", "Old. New."), ("One.", "One. Two."), ("One. Two.", "One.")],
        ids=["nothing shared", "all of it shared", "all of the other shared"],
    )
    def test_passages_that_are_no_copies_have_no_crop(self, good: str, bad: str):
        assert cropped([Triplet("q", good, bad, "g", "s", "l")]) == []
