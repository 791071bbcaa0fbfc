import csv
import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from coder_ir.errors import InvalidFile, NotFound
from coder_ir.training.sources import (
    CANNOT_FILES,
    READERS,
    read_afin,
    read_cad_nli,
    read_cannot_pairs,
    read_condaqa,
    read_fever_symmetric,
    read_neg_nli,
    read_scone,
    read_sem_anto_neg,
    read_written,
)
from coder_ir.types import Triplet


def written(path: Path, rows: Iterable[dict[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def table(path: Path, header: str, *rows: tuple[str, ...], encoding: str = "utf-8") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding=encoding, newline="") as file:
        writer = csv.writer(file, delimiter="," if path.suffix == ".csv" else "\t")
        writer.writerows([header.split(), *rows])


def parts(triplets: Iterable[Triplet]) -> list[tuple[str, str, str]]:
    return [(triplet.query, triplet.satisfying, triplet.violating) for triplet in triplets]


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

    def test_further_questions_ask_about_the_passages_of_their_item(self, tmp_path: Path):
        written(tmp_path / "contrast.train.jsonl", [ITEM])
        further = {"id": "ours-1-q1", "of": "ours-1", "qa": "hush", "qb": "din"}
        written(tmp_path / "contrast.train.more.jsonl", [further])
        triplets = list(read_written(tmp_path))
        assert parts(triplets)[2:] == [("hush", "Quiet.", "Loud."), ("din", "Loud.", "Quiet.")]
        assert {t.group for t in triplets} == {"ours-1"}

    def test_questions_about_an_item_that_is_not_there_are_refused(self, tmp_path: Path):
        written(tmp_path / "contrast.jsonl", [{"id": "x-q1", "of": "x", "qa": "hush", "qb": "din"}])
        with pytest.raises(InvalidFile, match="x-q1 asks about x, which is not before it"):
            list(read_written(tmp_path))

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
    old = tuple(
        {
            "id": number,
            "label": label,
            "claim": f"It came in {claimed} .",
            "evidence_sentence": f"It -LRB- the album -RRB- came in {told} .",
        }
        for number, label, claimed, told in (
            ("89891", "REFUTES", 2011, 2014),
            ("898910000002", "SUPPORTS", 2011, 2011),
            ("898910000003", "SUPPORTS", 2014, 2014),
            ("898910000004", "REFUTES", 2014, 2011),
        )
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
    def folder(self, root: Path, *rows: dict[str, Any]) -> Path:
        path = root / "datasets" / "antonym-substitution" / "original" / "SemAntoNeg_v1.0.json"
        written(path, rows)
        return root

    def test_a_statement_asks_for_its_paraphrase_against_each_other_sentence(self, tmp_path: Path):
        sentences = ["You're not thin.", "You're fat.", "You're thin."]
        row = {"idx": 0, "label": 2, "input": "You're not fat.", "sentences": sentences}
        assert parts(read_sem_anto_neg(self.folder(tmp_path, row))) == [
            ("You're not fat.", "You're thin.", "You're not thin."),
            ("You're not fat.", "You're thin.", "You're fat."),
        ]


class TestScone:
    header = (
        "sentence1 sentence2 gold_label group_index "
        "sentence1_edited sentence2_edited gold_label_edited"
    )

    def folder(self, root: Path, *rows: tuple[tuple[str, ...], tuple[str, str]]) -> Path:
        """Rows of plain sentences, each with its two sentences that hold a second negation."""
        for part in ("train", "test"):
            kept = rows if part == "train" else ()
            folder = root / "scone_nli" / part
            table(folder / "no_negation.csv", self.header, *(plain for plain, _ in kept))
            longer = [(*plain[:4], *two, plain[6]) for plain, two in kept]
            table(folder / "one_not_scoped.csv", self.header, *longer)
        return root

    dog = (
        ("he has no dog", "he has no mammal", "neutral", "3", "he has a dog", "he has a mammal"),
        ("he has a dog and not a cat.", "he has a mammal and not a cat."),
    )

    def test_a_statement_asks_for_what_entails_it_against_its_negation(self, tmp_path: Path):
        plain, longer = self.dog
        folder = self.folder(tmp_path, ((*plain, "entailment"), longer))
        (found,) = read_scone(folder)
        assert parts([found]) == [
            ("He has a mammal.", "He has a dog and not a cat.", "He has no mammal.")
        ]
        assert found.group == "scone-train-3"

    def test_a_negated_statement_asks_for_the_negation_that_entails_it(self, tmp_path: Path):
        plain = (
            "he has no pet",
            "he has no cat",
            "entailment",
            "0",
            "he has a pet",
            "he has a cat",
        )
        longer = ("he has a pet, not a dog", "he has a cat, not a dog")
        folder = self.folder(tmp_path, ((*plain, "neutral"), longer))
        assert parts(read_scone(folder)) == [
            ("He has no cat.", "He has no pet.", "He has a cat, not a dog.")
        ]

    def test_a_longer_sentence_that_says_something_else_is_not_used(self, tmp_path: Path):
        plain, _ = self.dog
        longer = ("he saw a dog but no cat", "he saw a mammal but no cat")
        folder = self.folder(tmp_path, ((*plain, "entailment"), longer))
        assert [t.satisfying for t in read_scone(folder)] == ["He has a dog."]

    def test_a_pair_that_differs_by_more_than_its_negation_is_left_out(self, tmp_path: Path):
        plain, longer = self.dog
        odd = (*plain[:5], "he keeps a rabbit", "entailment")
        assert list(read_scone(self.folder(tmp_path, (odd, longer)))) == []

    def test_the_article_fits_the_word_after_it(self, tmp_path: Path):
        row = (
            "he has no dog",
            "he has no animal",
            "neutral",
            "0",
            "he has a dog",
            "he has a animal",
        )
        folder = self.folder(tmp_path, ((*row, "entailment"), ("x", "y")))
        assert [t.query for t in read_scone(folder)] == ["He has an animal."]


class TestNegNli:
    header = "index Text Hypothesis gold_label"

    def folder(self, root: Path, *rows: tuple[str, str, str]) -> Path:
        numbered = [(str(number), *row) for number, row in enumerate(rows)]
        table(root / "clean_data" / "SNLI.txt", self.header, *numbered, encoding="cp1252")
        table(root / "clean_data" / "MNLI.txt", self.header)
        return root

    def test_a_hypothesis_asks_for_the_variant_that_entails_it(self, tmp_path: Path):
        folder = self.folder(
            tmp_path,
            ("Résumés – “not” read.", "They are read.", "contradiction"),
            ("Résumés – “all” read.", "They are not read.", "contradiction"),
            ("Résumés – “not” read.", "They are not read.", "entailment"),
        )
        assert parts(read_neg_nli(folder)) == [
            ("They are not read.", "Résumés – “not” read.", "Résumés – “all” read.")
        ]

    def test_a_neutral_text_is_no_violation(self, tmp_path: Path):
        folder = self.folder(tmp_path, ("a", "h", "entailment"), ("b", "h", "neutral"))
        assert list(read_neg_nli(folder)) == []

    def test_texts_of_different_pairs_are_not_mixed(self, tmp_path: Path):
        folder = self.folder(
            tmp_path,
            ("a", "h", "entailment"),
            ("b", "other", "neutral"),
            ("c", "h", "contradiction"),
        )
        assert list(read_neg_nli(folder)) == []


class TestAfin:
    def found(
        self, root: Path, sentence: str, verb: str, reading: str, **more: Any
    ) -> list[Triplet]:
        row = {"sentence": sentence, "verb": verb, "pi": reading, "unique_id": 7} | more
        for part in ("train", "dev", "test"):
            written(root / f"{part}.jsonl", [row] if part == "train" else [])
        return list(read_afin(root))

    @pytest.mark.parametrize(
        ("sentence", "verb", "undone"),
        [
            ("Rocks do n't melt fully .", "melt", "Rocks melt fully."),
            ("The rock does not melt fully .", "melt", "The rock melts fully."),
            ("The rock does not carry it fully .", "carry", "The rock carries it fully."),
            ("The rock did not melt fully .", "melt", "The rock did melt fully."),
            ("The rock can not fully melt .", "melt", "The rock can fully melt."),
            ("The rock wo n't melt fully .", "melt", "The rock will melt fully."),
            ("The rock never melts fully .", "melts", "The rock melts fully."),
        ],
        ids=["do", "does", "does, -y", "did", "adverb", "won't", "never"],
    )
    def test_the_sentence_without_its_negation_violates_what_it_affirms(
        self, tmp_path: Path, sentence: str, verb: str, undone: str
    ):
        (found,) = self.found(tmp_path, sentence, verb, "Rocks melt partially.")
        assert (found.query, found.violating) == ("Rocks melt partially.", undone)
        assert found.satisfying.endswith("fully.") or found.satisfying.endswith("melt.")
        assert "not" in found.satisfying or "n't" in found.satisfying or "never" in sentence

    @pytest.mark.parametrize(
        ("sentence", "reading"),
        [
            ("Rocks do not melt at any depth .", "Rocks melt partially."),
            ("No rocks do not melt .", "Rocks melt partially."),
            ("If rocks do not melt they break .", "Rocks melt partially."),
            ("Rocks hardly melt .", "Rocks melt partially."),
            ("Rocks do not melt in here .", "Rocks melt."),
            ("Rocks do not melt fully .", "Some rocks melt partially."),
            ("Rocks do not melt fully .", "Metals melt readily."),
        ],
        ids=["any", "two", "if", "no cue", "bare reading", "vague", "another subject"],
    )
    def test_a_doubtful_sentence_is_left_out(self, tmp_path: Path, sentence: str, reading: str):
        assert self.found(tmp_path, sentence, "melt", reading) == []

    def test_a_reading_its_annotator_was_not_sure_of_is_left_out(self, tmp_path: Path):
        sentence, reading = "Rocks do not melt fully .", "Rocks melt partially."
        assert len(self.found(tmp_path, sentence, "melt", reading, s1=4)) == 1
        assert self.found(tmp_path, sentence, "melt", reading, s1=4, s2=3) == []


class TestCannotPairs:
    def folder(self, root: Path, *rows: tuple[str, str]) -> Path:
        for name in CANNOT_FILES:
            kept = rows if name is CANNOT_FILES[0] else ()
            table(root / "datasets" / f"{name}.tsv", "sentence negated", *kept)
        return root

    def test_each_statement_of_a_pair_is_asked_for_against_the_other(self, tmp_path: Path):
        pair = ("The old mill is open in winter.", "The old mill is not open in winter.")
        one, other = read_cannot_pairs(self.folder(tmp_path, pair))
        assert parts([one])[0] == ("Is the old mill open in winter?", *pair)
        assert parts([other])[0][1:] == pair[::-1]
        assert "the old mill is not open in winter" in other.query
        assert one.group == other.group

    def test_a_statement_without_a_verb_to_invert_is_put_in_a_request(self, tmp_path: Path):
        pair = ("Brown won the cup in 1990.", "Brown failed to win the cup in 1990.")
        one, _ = read_cannot_pairs(self.folder(tmp_path, pair))
        assert "Brown won the cup in 1990" in one.query
        assert one.query != one.satisfying

    def test_antonyms_make_a_pair_without_a_negation(self, tmp_path: Path):
        pair = ("Tamils are the largest group in town.", "Tamils are the smallest group in town.")
        rare = ("Such oaks were common around the lake.", "Oaks were rare around the lake.")
        found = list(read_cannot_pairs(self.folder(tmp_path, pair, rare)))
        assert {t.satisfying for t in found} <= set(pair)

    @pytest.mark.parametrize(
        "pair",
        [
            ("The dust is defined as respirable here.", "The dust is termed as respirable here."),
            ("It was sold in the year 1990.", "It was not sold in the year 1990."),
            ("The mill shut.", "The mill did not shut."),
            ("Some mills are open in cold winters.", "All mills are open in cold winters."),
            ("The mill shuts if water is low.", "The mill shuts if water is not low."),
        ],
        ids=["paraphrase", "needs its context", "short", "both may hold", "conditional"],
    )
    def test_a_doubtful_pair_is_left_out(self, tmp_path: Path, pair: tuple[str, str]):
        assert list(read_cannot_pairs(self.folder(tmp_path, pair))) == []


@pytest.mark.parametrize("name", READERS)
def test_a_source_folder_without_its_file_is_named(tmp_path: Path, name: str):
    for reader in READERS[name]:
        with pytest.raises(NotFound, match=r"hold the source as published|no contrast\*\.jsonl\*"):
            list(reader(tmp_path))


@pytest.mark.parametrize(
    ("name", "counts"),
    [
        ("FeverSymmetric", {"FeverSymmetric": 706}),
        ("CAD-NLI", {"CAD-NLI": 771}),
        ("CANNOT", {"SemAntoNeg": 6304, "CANNOT": 6486}),
        ("ScoNe", {"ScoNe": 1092}),
        ("NegNLI", {"NegNLI": 295}),
        ("AFIN", {"AFIN": 121}),
        ("2wiki_corpus", {"Wikipedia exclusions": 10970, "Wikipedia sets": 2132}),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_published_source_gives_what_it_gave(shared: Path, name: str, counts: dict[str, int]):
    folder = shared / "data" / "training" / name
    found = {triplet for reader in READERS[name] for triplet in reader(folder)}
    assert Counter(t.source for t in found if t.satisfying != t.violating) == counts
