"""How much one request, and all of them together, may ask of the server."""

from collections.abc import Sequence
from dataclasses import dataclass, field, fields

from coder_ir.encoders.onnx import cores
from coder_ir.errors import InvalidValue


@dataclass(frozen=True, slots=True)
class Limits:
    """Past a limit a request is refused, with the limit in the message."""

    body_bytes: int = 1_000_000  # of a search or a batch of searches
    upload_bytes: int = 4_000_000_000  # of one PUT of documents
    line_bytes: int = 2_000_000  # of one document in it; more could not be encoded in time
    answer_characters: int = 20_000_000  # of the texts of all hits in one answer
    k: int = 100  # hits
    n: int = 1000  # documents each space brings to the pool
    verify: int = 100  # documents a cross-encoder reads
    query_characters: int = 2000  # of a query, a phrase or a condition
    phrases: int = 32  # of exclude, require and where, each
    values: int = 200  # in one condition
    batch: int = 64  # searches in one request
    together: int = 4  # searches encoded in one call
    waiting: int = 256  # searches that wait, before others are sent away
    uploads: int = 8  # at the same time
    workers: int = field(default_factory=lambda: cores() + 1)  # threads that answer searches
    timeout: float = 30.0  # seconds for a search, and for the next piece of a body
    write_timeout: float = 300.0  # seconds for a batch of documents, its turn included
    idle: int = 75  # seconds for the next head of a request on a connection; proxies keep it 60
    grace: int = 60  # seconds that requests have to finish at shutdown

    def __post_init__(self) -> None:
        """Refuse a server that could answer nothing."""
        for limit in fields(self):
            value = getattr(self, limit.name)
            if not value > 0:
                raise InvalidValue(f"the limit {limit.name} must be above 0, got {value}")


def limits_from(said: Sequence[str]) -> Limits:
    """Limits with those that were said, each NAME=NUMBER, in place of the defaults."""
    kinds = {limit.name: float if "timeout" in limit.name else int for limit in fields(Limits)}
    given: dict[str, int | float] = {}
    for text in said:
        name, _, number = text.partition("=")
        if name not in kinds:
            raise InvalidValue(f"there is no limit {name!r}; there are {', '.join(kinds)}")
        try:
            given[name] = kinds[name](number)
        except ValueError:
            raise InvalidValue(f"a limit is said as {name}=NUMBER, got {text!r}") from None
    return Limits(**given)  # type: ignore[arg-type]
