"""What the adapters share: options by name, searches that may be awaited, hits as metadata."""

import asyncio
import inspect
import math
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, Protocol, TypedDict

from coder_ir.errors import InvalidValue
from coder_ir.searching import Asks, Mode, SearchOptions
from coder_ir.types import Condition, Hit, Json, Policy, Ranking

PREFIX = "coder_"
"""Before the name of what a search adds to a document's own metadata."""
TOLD = (
    *("doc_id", "title", "rank", "score", "topical", "compatibility", "risk", "reason"),
    "decisive",
)
OPTIONS = tuple(field.name for field in fields(SearchOptions))


class AwaitedAsks(Protocol):
    """`Asks` for asyncio, such as `AsyncClient`."""

    async def search_many(self, queries: Sequence[str], options: SearchOptions) -> list[Ranking]:
        """One ranking a query."""


AnyAsks = Asks | AwaitedAsks


class Options(TypedDict, total=False):
    """The fields of `SearchOptions` as keywords, none of them needed."""

    k: int
    policy: str | Policy
    n: int
    where: Sequence[str | Condition]
    exclude: Sequence[str]
    require: Sequence[str]
    mode: Mode
    max_risk: float
    explain: bool
    verify: int | None


def changed(options: SearchOptions, changes: Mapping[str, Any]) -> SearchOptions:
    """Options with some of them changed, each checked; a name that is none of them is refused."""
    if odd := sorted(set(changes) - set(OPTIONS)):
        raise InvalidValue(
            f"no option {', '.join(map(repr, odd))}; the options are {', '.join(OPTIONS)}"
        )
    made = replace(options, **changes)
    _ = made.chosen_policy, made.conditions  # an unknown name and unreadable text are refused
    return made


def ask(retriever: AnyAsks, query: str, options: SearchOptions) -> Ranking:
    """One ranking; the caller waits."""
    if _awaited(retriever):
        raise InvalidValue(
            f"{type(retriever).__name__} answers awaited calls alone; use the adapter's async "
            "call, or give it a Retriever or a Client"
        )
    found: Any = retriever.search_many([query], options)
    ranking: Ranking = found[0]
    return ranking


async def ask_async(retriever: AnyAsks, query: str, options: SearchOptions) -> Ranking:
    """One ranking; what cannot be awaited runs in a thread, so that the loop goes on."""
    if not _awaited(retriever):
        return await asyncio.to_thread(ask, retriever, query, options)
    found: Any = retriever.search_many([query], options)
    ranking: Ranking = (await found)[0]
    return ranking


def _awaited(retriever: AnyAsks) -> bool:
    return inspect.iscoroutinefunction(retriever.search_many)


def metadata(hit: Hit) -> dict[str, Json]:
    """A document's own metadata and, under `coder_…`, what the search found.

    A key of the document's own is never replaced. A score that is not there is None.
    """
    found = {PREFIX + name: _plain(getattr(hit, name)) for name in TOLD}
    if not hit.decisive:
        del found[PREFIX + "decisive"]
    return {**found, **hit.metadata}


def _plain(value: Json) -> Json:
    """No NaN, which JSON does not have."""
    return None if isinstance(value, float) and math.isnan(value) else value
