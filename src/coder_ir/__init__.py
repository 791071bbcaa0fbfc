"""Local retrieval that respects not, without, except and opposite preferences."""

from coder_ir.attached import Attached
from coder_ir.client import AsyncClient, Client
from coder_ir.encoders import Runtime
from coder_ir.errors import CoderError
from coder_ir.intake import Added
from coder_ir.policies import Auto, CompatibilityOnly, Sequential, TopicalOnly, Union
from coder_ir.retriever import Retriever
from coder_ir.searching import SearchOptions
from coder_ir.types import (
    Candidates,
    Condition,
    Constraint,
    Document,
    Filtered,
    Hit,
    Order,
    Query,
    Ranking,
    Verdict,
)

__version__ = "0.1.0"
__all__ = [
    "Added",
    "AsyncClient",
    "Attached",
    "Auto",
    "Candidates",
    "Client",
    "CoderError",
    "CompatibilityOnly",
    "Condition",
    "Constraint",
    "Document",
    "Filtered",
    "Hit",
    "Order",
    "Query",
    "Ranking",
    "Retriever",
    "Runtime",
    "SearchOptions",
    "Sequential",
    "TopicalOnly",
    "Union",
    "Verdict",
    "__version__",
]
