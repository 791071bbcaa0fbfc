import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from coder_ir.errors import InvalidFile, NotFound
from coder_ir.training.sentences import (
    READERS,
    gather,
    load_triplets,
    read_cad_nli,
    read_condaqa,
    read_fever_symmetric,
    read_sem_anto_neg,
    read_written,
    save_triplets,
    split_by_group,
)
from coder_ir.types import Triplet


def written(path: Path, rows: Iterable[dict[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def parts(triplets: Iterable[Triplet]) -> list[tuple[str, str, str]]:
    return [(triplet.query, triplet.satisfying, triplet.violating) for triplet in triplets]


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


class TestWritten:
    def test_each_query_of_an_item_asks_for_its_own_passage(self, tmp_path: Path):
        written(tmp_path / "contrast.jsonl", [ITEM])
        assert parts(read_written(tmp_path)) == [
            ("calm", "Quiet.", "Loud."),
            ("wild", "Loud.", "Quiet."),
        ]

    @pytest.mark.parametrize(
        "second", [{}, {"qb": None}, {"qb": ""}], ids=["none", "null", "empty"]
    )
    def test_an_item_may_have_one_query_only(self, tmp_path: Path, second: dict[str, Any]):
        row = {name: value for name, value in ITEM.items() if name != "qb"} | second
        written(tmp_path / "contrast.jsonl", [row])
        assert parts(read_written(tmp_path)) == [("calm", "Quiet.", "Loud.")]

    def test_items_of_one_condaqa_passage_share_the_group_of_that_passage(self, tmp_path: Path):
        written(
            tmp_path / "contrast.jsonl",
            [ITEM | {"id": "conda-44-1"}, ITEM | {"id": "conda-44-2"}],
        )
        assert {t.group for t in read_written(tmp_path)} == {"conda-44"}

    def test_its_source_is_told_from_public_ones(self, tmp_path: Path):
        written(tmp_path / "contrast.jsonl", [ITEM])
        assert {t.source for t in read_written(tmp_path)} == {"written: ours"}


class TestCondaqa:
    def test_the_passage_that_answers_yes_is_wanted(self, tmp_path: Path):
        row = {"id": "44-0-2-q10", "question": "open?", "doc_yes": "Open.", "doc_no": "Shut."}
        written(tmp_path / "dev_flip_triples.jsonl", [row])
        (found,) = read_condaqa(tmp_path)
        assert parts([found]) == [("open?", "Open.", "Shut.")]
        assert found.group == "conda-44"


class TestFeverSymmetric:
    old = (
        {
            "id": "89891",
            "label": "REFUTES",
            "claim": "It came in 2011 .",
            "evidence_sentence": "It -LRB- the album -RRB- came in 2014 .",
        },
        {
            "id": "898910000002",
            "label": "SUPPORTS",
            "claim": "It came in 2011 .",
            "evidence_sentence": "It -LRB- the album -RRB- came in 2011 .",
        },
        {
            "id": "898910000003",
            "label": "SUPPORTS",
            "claim": "It came in 2014 .",
            "evidence_sentence": "It -LRB- the album -RRB- came in 2014 .",
        },
        {
            "id": "898910000004",
            "label": "REFUTES",
            "claim": "It came in 2014 .",
            "evidence_sentence": "It -LRB- the album -RRB- came in 2011 .",
        },
    )

    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        renamed = [
            {
                "evidence" if name == "evidence_sentence" else name: value
                for name, value in r.items()
            }
            for r in self.old
        ]
        written(tmp_path / "symmetric_v0.1" / "fever_symmetric_full.jsonl", self.old)
        written(tmp_path / "symmetric_v0.2" / "fever_symmetric_dev.jsonl", renamed[:2])
        written(tmp_path / "symmetric_v0.2" / "fever_symmetric_test.jsonl", [])
        return tmp_path

    def test_a_claim_asks_for_its_support_and_against_its_refutation(self, folder: Path):
        assert parts(read_fever_symmetric(folder)) == [
            ("It came in 2011.", "It (the album) came in 2011.", "It (the album) came in 2014."),
            ("It came in 2014.", "It (the album) came in 2014.", "It (the album) came in 2011."),
        ]

    def test_claims_over_the_same_evidence_share_a_group(self, folder: Path):
        assert len({t.group for t in read_fever_symmetric(folder)}) == 1

    def test_a_claim_without_a_refutation_gives_nothing(self, folder: Path):
        written(folder / "symmetric_v0.1" / "fever_symmetric_full.jsonl", self.old[2:3])
        written(folder / "symmetric_v0.2" / "fever_symmetric_dev.jsonl", [])
        assert list(read_fever_symmetric(folder)) == []


class TestCadNli:
    def folder(self, root: Path, *rows: tuple[str, str, str]) -> Path:
        for part in ("train", "dev", "test"):
            lines = ["sentence1\tsentence2\tgold_label"]
            lines += ["\t".join(row) for row in rows] if part == "train" else []
            path = root / "revised_combined" / f"{part}.tsv"
            path.parent.mkdir(exist_ok=True)
            path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return root

    def test_a_hypothesis_asks_for_what_entails_it_against_what_contradicts_it(
        self, tmp_path: Path
    ):
        folder = self.folder(
            tmp_path,
            ("A man rides.", "Someone is moving.", "entailment"),
            ("A man naps.", "Someone is moving.", "contradiction"),
            ("A man waits.", "Someone is moving.", "neutral"),
        )
        assert parts(read_cad_nli(folder)) == [
            ("Someone is moving.", "A man rides.", "A man naps.")
        ]

    def test_a_quotation_mark_is_an_ordinary_character(self, tmp_path: Path):
        folder = self.folder(
            tmp_path, ('"A man', "h", "entailment"), ("A man naps.", "h", "contradiction")
        )
        assert parts(read_cad_nli(folder)) == [("h", '"A man', "A man naps.")]


class TestSemAntoNeg:
    rows = (
        {
            "idx": 0,
            "label": 2,
            "input": "You're not fat.",
            "sentences": ["You're not thin.", "You're fat.", "You're thin."],
        },
        {
            "idx": 1,
            "label": 2,
            "input": "You're not fat.",
            "sentences": ["You're not nonfat.", "You're fat.", "You're nonfat."],
        },
    )

    def folder(self, root: Path, *rows: dict[str, Any]) -> Path:
        path = root / "datasets" / "antonym-substitution" / "original" / "SemAntoNeg_v1.0.json"
        written(path, rows)
        return root

    def test_a_statement_asks_for_its_paraphrase_against_each_other_sentence(self, tmp_path: Path):
        assert parts(read_sem_anto_neg(self.folder(tmp_path, self.rows[0]))) == [
            ("You're not fat.", "You're thin.", "You're not thin."),
            ("You're not fat.", "You're thin.", "You're fat."),
        ]


@pytest.mark.parametrize("name", READERS)
def test_a_source_folder_without_its_file_is_named(tmp_path: Path, name: str):
    with pytest.raises(NotFound, match="the folder should hold the source as published"):
        list(READERS[name](tmp_path))


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
        TestSemAntoNeg().folder(tmp_path / "CANNOT", *rows)
        train, held_out = split_by_group(gather(tmp_path, cap=1000, seed=1), share=0.5)
        assert train
        assert held_out
        assert not passages(train) & passages(held_out)


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


class TestPublishedSources:
    @pytest.fixture
    def every(self, shared: Path) -> list[Triplet]:
        return gather(shared / "data" / "training", cap=10**9, seed=1)

    def test_every_source_is_read_whole(self, every: list[Triplet]):
        counts = Counter(t.source.split(":")[0] for t in every)
        assert counts["CAD-NLI"] == 771
        assert counts["FeverSymmetric"] == 706
        assert counts["SemAntoNeg"] == 6304

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
