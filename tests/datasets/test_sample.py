from collections import Counter

import pytest

from coder_ir.datasets.documents import read_documents
from coder_ir.datasets.sample import load_sample, sample_documents_file

DOCUMENTS, QUERIES = load_sample()


def test_it_has_120_passages_with_ids_of_their_own():
    assert len({document.doc_id for document in DOCUMENTS}) == len(DOCUMENTS) == 120


def test_it_has_twelve_different_queries():
    assert len({query.text for query in QUERIES}) == len(QUERIES) == 12


def test_its_file_reads_as_the_same_documents():
    assert list(read_documents([str(sample_documents_file())])) == DOCUMENTS


def test_its_first_and_last_passage_are_where_they_were():
    assert (DOCUMENTS[0].doc_id, DOCUMENTS[0].title) == ("travel-01", "Walking Guide")
    assert DOCUMENTS[-1].doc_id == "workplace-30"


def test_every_passage_has_a_text_and_the_domain_its_id_names():
    for document in DOCUMENTS:
        assert document.text
        assert document.metadata["domain"] == document.doc_id.rsplit("-", 1)[0]


def test_every_domain_has_as_many_passages():
    assert Counter(document.metadata["domain"] for document in DOCUMENTS) == {
        "travel": 30,
        "health": 30,
        "products": 30,
        "workplace": 30,
    }


@pytest.mark.parametrize("query", QUERIES, ids=lambda query: query.text)
class TestQuery:
    def test_its_labels_refer_to_passages_of_its_domain(self, query):
        known = {d.doc_id for d in DOCUMENTS if d.metadata["domain"] == query.domain}
        assert query.satisfying | query.violating <= known

    def test_it_has_passages_that_keep_to_it_and_passages_that_break_it(self, query):
        assert query.satisfying
        assert query.violating

    def test_no_passage_both_keeps_to_it_and_breaks_it(self, query):
        assert not query.satisfying & query.violating
