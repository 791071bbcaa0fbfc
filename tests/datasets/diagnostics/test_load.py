"""Reviewed pairs as a test set: labels, pooling, kept rows, and BEIR files of them."""

from dataclasses import replace
from pathlib import Path

import pytest

from coder_ir.datasets.beir import load_beir
from coder_ir.datasets.diagnostics.load import load_diagnostics, load_reviewed, save_beir
from coder_ir.datasets.diagnostics.load import testset_of as as_testset
from coder_ir.datasets.diagnostics.sheet import write_sheet
from coder_ir.errors import InvalidFile, InvalidValue, NotFound
from tests.datasets.diagnostics.texts import pair

REVIEWED = {"antonym": 102, "negation": 104, "exclusion": 104}
PASSAGES = {"antonym": 306, "negation": 304, "exclusion": 312}


class TestTestSet:
    found = as_testset([pair(1), pair(2)])

    def test_a_pair_has_two_queries_and_six_documents(self):
        assert [query.query_id for query in self.found.queries] == [
            *("antonym-001-qa", "antonym-001-qb", "antonym-002-qa", "antonym-002-qb")
        ]
        assert len(self.found.documents) == 12
        assert self.found.pairs[1] == ("antonym-002-qa", "antonym-002-qb")

    def test_what_satisfies_one_query_violates_the_other(self):
        one = "antonym-001"
        neutral = {f"{one}-neutral1": 1, f"{one}-neutral2": 1}
        a, b = (f"{one}-a1", f"{one}-a2"), (f"{one}-b1", f"{one}-b2")
        grades = self.found.qrels.grades
        assert grades[f"{one}-qa"] == dict.fromkeys(a, 2) | dict.fromkeys(b, -1) | neutral
        assert grades[f"{one}-qb"] == dict.fromkeys(b, 2) | dict.fromkeys(a, -1) | neutral

    def test_equal_texts_of_two_pairs_are_one_document(self):
        found = as_testset([pair(1), pair(2, neutral1=pair(1).neutral1)])
        assert len(found.documents) == 11
        assert found.qrels.grades["antonym-002-qa"]["antonym-001-neutral1"] == 1

    def test_a_pair_may_have_no_neutrals(self):
        found = as_testset([pair(1, neutral1="", neutral2="")])
        assert sorted(found.qrels.grades["antonym-001-qa"].values()) == [-1, -1, 2, 2]

    def test_a_text_on_both_sides_is_refused(self):
        with pytest.raises(InvalidFile, match="'antonym-001' has one text in two"):
            as_testset([pair(1, b1=pair(1).a1)])


class TestReviewed:
    def test_only_kept_rows_count(self, tmp_path: Path):
        pairs = [pair(1), pair(2, decision="drop"), pair(3, decision=""), pair(4)]
        write_sheet(pairs, tmp_path / "sheet.csv")
        found = load_reviewed(tmp_path / "sheet.csv", kind="antonym")
        assert found == as_testset([pair(1), pair(4)])

    def test_a_sheet_nobody_reviewed_is_refused(self, tmp_path: Path):
        write_sheet([pair(1, decision="")], tmp_path / "sheet.csv")
        with pytest.raises(InvalidFile, match="no row with the decision 'keep'"):
            load_reviewed(tmp_path / "sheet.csv", kind="antonym")

    def test_a_sheet_of_another_kind_is_refused(self, tmp_path: Path):
        write_sheet([pair(1)], tmp_path / "sheet.csv")
        with pytest.raises(InvalidFile, match="is of kind antonym, not negation"):
            load_reviewed(tmp_path / "sheet.csv", kind="negation")

    def test_the_files_hold_what_the_set_holds(self, tmp_path: Path):
        found = as_testset([pair(1, a1="Ärger, \t tabs and “quotes”."), pair(2)])
        save_beir(found, tmp_path / "new")
        read = load_beir(tmp_path / "new")
        assert (read.documents, read.queries) == (found.documents, found.queries)
        assert read.qrels == found.qrels


class TestAcross:
    def test_a_passage_of_another_pair_can_violate_too(self):
        one, two = pair(1), pair(2)
        found = as_testset([replace(one, also_b=f"{two.pair_id}-a1 {two.pair_id}-neutral1"), two])
        grades = found.qrels.grades[f"{one.pair_id}-qb"]
        assert grades[f"{two.pair_id}-a1"] == grades[f"{two.pair_id}-neutral1"] == -1
        assert f"{two.pair_id}-a1" not in found.qrels.grades[f"{one.pair_id}-qa"]

    @pytest.mark.parametrize("named", ["nowhere-a1", "{own}-b1"], ids=["unknown", "its own"])
    def test_only_passages_of_other_pairs_may_be_named(self, named: str):
        one = pair(1)
        also = replace(one, also_a=named.format(own=one.pair_id))
        with pytest.raises(InvalidFile, match="is no passage of another pair"):
            as_testset([also, pair(2)])


class TestShipped:
    def test_an_unknown_kind_lists_the_known_ones(self):
        with pytest.raises(InvalidValue, match="no kind 'irony'; there are antonym, negation"):
            load_diagnostics("irony")

    def test_a_set_that_does_not_ship_says_how_to_make_one(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ):
        monkeypatch.setattr("importlib.resources.files", lambda _: tmp_path)
        with pytest.raises(NotFound, match=r"ships no reviewed negation set .* --kind negation"):
            load_diagnostics("negation")

    @pytest.mark.parametrize("kind", REVIEWED)
    def test_it_has_its_published_number_of_queries(self, kind: str):
        found = load_diagnostics(kind)
        assert len(found.queries) == 2 * len(found.pairs) == REVIEWED[kind]
        assert len(found.documents) == len({d.content for d in found.documents}) == PASSAGES[kind]
        assert all({2, -1} <= set(own.values()) for own in found.qrels.grades.values())
