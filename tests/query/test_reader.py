"""Vectors and constraints of queries: one pass where the parser reads the encoder that is asked."""

import numpy as np

from coder_ir.query import OperatorParser, TrainedParser, read_queries
from coder_ir.types import Constraint
from tests.conftest import FakeEncoder, FakeParser
from tests.query.conftest import ParserOf
from tests.query.stubs import HandMadeEncoder, asks

QUERIES = ["cake without nuts", "cake", "", "tea -milk"]
SAID = {"without": asks("cue"), "nuts": asks("excluded"), "cake": asks()}


def trained(parser_of: ParserOf) -> tuple[TrainedParser, HandMadeEncoder]:
    parser = parser_of(SAID)
    assert isinstance(parser.encoder, HandMadeEncoder)
    return parser, parser.encoder


def test_a_parser_over_the_encoder_itself_takes_one_pass(parser_of: ParserOf):
    parser, encoder = trained(parser_of)
    read_queries(QUERIES, encoder, parser)
    assert encoder.calls == ["encode_queries"]


def test_a_parser_over_another_encoder_reads_the_queries_apart(parser_of: ParserOf):
    parser, own = trained(parser_of)
    other = HandMadeEncoder()
    read_queries(QUERIES, other, parser)
    assert (other.calls, own.calls) == (["encode query"], ["query_tokens"])


def test_an_encoder_whose_roles_read_queries_differently_takes_two_passes(parser_of: ParserOf):
    parser, encoder = trained(parser_of)
    encoder.reads_queries_once = False
    read_queries(QUERIES, encoder, parser)
    assert encoder.calls == ["encode query", "query_tokens"]


def test_an_equal_encoder_is_not_that_very_encoder(parser_of: ParserOf):
    parser, own = trained(parser_of)
    equal = HandMadeEncoder(parser=own.manifest.parser)
    assert equal.fingerprint == own.fingerprint
    read_queries(QUERIES, equal, parser)
    assert (equal.calls, own.calls) == (["encode query"], ["query_tokens"])


def test_another_kind_of_parser_is_asked_apart():
    encoder = HandMadeEncoder()
    vectors, found = read_queries(QUERIES, encoder, FakeParser())
    assert encoder.calls == ["encode query"]
    assert found == FakeParser().parse(QUERIES)
    assert len(vectors.topical) == len(QUERIES)


def test_an_encoder_without_layers_to_read_needs_no_more_than_encode():
    encoder = FakeEncoder(["cake", "nuts"])
    vectors, found = read_queries(["cake -nuts"], encoder, OperatorParser())
    assert np.array_equal(vectors.topical, encoder.encode(["cake -nuts"], kind="query").topical)
    assert [one.excluded for one in found] == [("nuts",)]


def test_one_pass_gives_the_vectors_and_constraints_of_two(parser_of: ParserOf):
    parser, encoder = trained(parser_of)
    vectors, found = read_queries(QUERIES, encoder, parser)
    apart = encoder.encode(QUERIES, kind="query")
    assert np.array_equal(vectors.topical, apart.topical)
    assert np.array_equal(vectors.compatibility, apart.compatibility)
    assert found == parser.parse(QUERIES)
    assert [one.excluded for one in found] == [("nuts",), (), (), ("milk",)]


def test_no_queries_give_no_constraints(parser_of: ParserOf):
    parser, encoder = trained(parser_of)
    assert read_queries([], encoder, parser)[1] == []
    assert read_queries([""], encoder, parser)[1] == [Constraint(0.0)]
