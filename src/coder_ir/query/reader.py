"""Queries to vectors and constraints, what both need being computed once."""

from collections.abc import Sequence

from coder_ir.query.parser import TrainedParser
from coder_ir.types import Constraint, Encoder, QueryParser, VectorPair


def read_queries(
    queries: Sequence[str], encoder: Encoder, parser: QueryParser
) -> tuple[VectorPair, list[Constraint]]:
    """Both vectors of each query and the constraint it states.

    A parser over the encoder's own first layers reads what they make of the query anyway.
    """
    if isinstance(parser, TrainedParser) and parser.encoder is encoder:
        own = parser.encoder
        if own.reads_queries_once:
            vectors, tokens = own.encode_queries(queries)
            pairs = zip(queries, tokens, strict=True)
            return vectors, [parser.constraint(query, states) for query, states in pairs]
    return encoder.encode(queries, kind="query"), parser.parse(queries)
