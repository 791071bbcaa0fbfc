"""Query text to the constraint it states."""

from coder_ir.query.loading import load_parser
from coder_ir.query.operators import OperatorParser
from coder_ir.query.parser import TrainedParser
from coder_ir.query.reader import read_queries

__all__ = ["OperatorParser", "TrainedParser", "load_parser", "read_queries"]
