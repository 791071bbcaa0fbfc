"""What a server is told apart from its index."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from coder_ir.serve.auth import Tokens
from coder_ir.serve.limits import Limits


@dataclass(frozen=True, slots=True)
class ServeSettings:
    """How to serve an index; the default is one person's own machine."""

    tokens: Tokens = field(default_factory=Tokens)
    limits: Limits = field(default_factory=Limits)
    read_only: str = ""  # why nothing can be written, for people; "": it can
    examples: Sequence[str] = ()  # queries that the page offers
