"""An index behind a server, with the calls and the types of `Retriever`; needs the extra `client`.

Both clients ask again where the server is busy (503), after the time it names. Errors are those of
this package, as if the index were here.
"""

import asyncio
import time
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Self

from coder_ir.errors import InvalidValue, NotFound
from coder_ir.intake import Added, batches, distinct
from coder_ir.remote import (
    Call,
    added_in,
    answer_in,
    batch_call,
    delete_call,
    document_in,
    get_call,
    http,
    pause,
    put_call,
    rankings_in,
    unreachable,
)
from coder_ir.searching import DEFAULT_POLICY, Mode, SearchOptions
from coder_ir.types import Condition, Document, Policy, Ranking

if TYPE_CHECKING:
    import httpx

_TOGETHER = 32  # searches in one request
_CHARACTERS = 200_000  # of documents in one request; a server takes a while to encode them
_INDEX = Call("GET", "/v1/index")


class Client:
    """A `Retriever` elsewhere.

    Example:
        >>> client = Client("http://127.0.0.1:8000")
        >>> client.search("hotel without noise at night", k=5)
    """

    def __init__(
        self, url: str, token: str | None = None, *, timeout: float = 60.0, retries: int = 5
    ) -> None:
        """`timeout`: seconds, of all but writes; `retries`: further tries at a busy server."""
        self._http: httpx.Client = http("Client", url, token, timeout)
        self._retries = retries

    def _json(self, call: Call) -> Any:
        """What the server answers; asked again while it is busy."""
        import httpx

        for attempt in range(self._retries + 1):
            try:
                response = self._http.request(call.method, call.path, **call.sent)
            except httpx.HTTPError as error:
                raise unreachable(self._http.base_url, error) from error
            if response.status_code != 503 or attempt == self._retries:
                break
            time.sleep(pause(response, attempt))
        return answer_in(response)

    def search(  # noqa: PLR0913 - one keyword for each of SearchOptions
        self,
        query: str,
        k: int = 10,
        *,
        policy: str | Policy = DEFAULT_POLICY,
        n: int = 100,
        where: Sequence[str | Condition] = (),
        exclude: Sequence[str] = (),
        require: Sequence[str] = (),
        mode: Mode = "soft",
        max_risk: float = 1.0,
        explain: bool = False,
        verify: int | None = None,
    ) -> Ranking:
        """At most k hits, best first; the arguments are those of `Retriever.search`."""
        options = SearchOptions(
            k, policy, n, where, exclude, require, mode, max_risk, explain, verify
        )
        return self.search_many([query], options)[0]

    def search_many(
        self,
        queries: Sequence[str],
        options: SearchOptions | None = None,
        *,
        progress: Callable[[int], None] | None = None,
    ) -> list[Ranking]:
        """One ranking a query; they go over in groups."""
        found: list[Ranking] = []
        for part in _parts(queries):
            call = batch_call(part, options or SearchOptions())
            found += rankings_in(self._json(call), part, options or SearchOptions())
            if progress:
                progress(len(part))
        return found

    def add(
        self,
        documents: Iterable[Document],
        *,
        split: bool = True,
        progress: Callable[[int], None] | None = None,
    ) -> Added:
        """Add or update documents; what is counted is committed on the server's disk."""
        total = Added()
        for batch in batches(distinct(documents), characters=_CHARACTERS):
            total += added_in(self._json(put_call(batch, split=split)))
            if progress:
                progress(len(batch))
        return total

    def get(self, doc_id: str) -> Document:
        """One document by its id."""
        return document_in(self._json(get_call(doc_id)))

    def delete(self, doc_ids: Sequence[str]) -> int:
        """Remove documents; returns how many of them were there."""
        deleted = 0
        for call in _deletions(doc_ids):
            try:
                deleted += int(self._json(call)["deleted"])
            except NotFound:
                continue
        return deleted

    def count(self) -> int:
        """Number of documents."""
        return int(self._json(_INDEX)["documents"])

    def __len__(self) -> int:
        """Number of documents."""
        return self.count()

    def __bool__(self) -> bool:
        """True, also of an empty index, and without asking the server."""
        return True

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def __enter__(self) -> Self:
        """Close at the end of a `with` block."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close."""
        self.close()


class AsyncClient:
    """`Client` for asyncio; every call is awaited."""

    def __init__(
        self, url: str, token: str | None = None, *, timeout: float = 60.0, retries: int = 5
    ) -> None:
        """`timeout`: seconds, of all but writes; `retries`: further tries at a busy server."""
        self._http: httpx.AsyncClient = http("AsyncClient", url, token, timeout)
        self._retries = retries

    async def _json(self, call: Call) -> Any:
        """What the server answers; asked again while it is busy."""
        import httpx

        for attempt in range(self._retries + 1):
            try:
                response = await self._http.request(call.method, call.path, **call.sent)
            except httpx.HTTPError as error:
                raise unreachable(self._http.base_url, error) from error
            if response.status_code != 503 or attempt == self._retries:
                break
            await asyncio.sleep(pause(response, attempt))
        return answer_in(response)

    async def search(  # noqa: PLR0913 - one keyword for each of SearchOptions
        self,
        query: str,
        k: int = 10,
        *,
        policy: str | Policy = DEFAULT_POLICY,
        n: int = 100,
        where: Sequence[str | Condition] = (),
        exclude: Sequence[str] = (),
        require: Sequence[str] = (),
        mode: Mode = "soft",
        max_risk: float = 1.0,
        explain: bool = False,
        verify: int | None = None,
    ) -> Ranking:
        """At most k hits, best first; the arguments are those of `Retriever.search`."""
        options = SearchOptions(
            k, policy, n, where, exclude, require, mode, max_risk, explain, verify
        )
        return (await self.search_many([query], options))[0]

    async def search_many(
        self,
        queries: Sequence[str],
        options: SearchOptions | None = None,
        *,
        progress: Callable[[int], None] | None = None,
    ) -> list[Ranking]:
        """One ranking a query; they go over in groups."""
        found: list[Ranking] = []
        for part in _parts(queries):
            answer = await self._json(batch_call(part, options or SearchOptions()))
            found += rankings_in(answer, part, options or SearchOptions())
            if progress:
                progress(len(part))
        return found

    async def add(
        self,
        documents: Iterable[Document],
        *,
        split: bool = True,
        progress: Callable[[int], None] | None = None,
    ) -> Added:
        """Add or update documents; what is counted is committed on the server's disk."""
        total = Added()
        for batch in batches(distinct(documents), characters=_CHARACTERS):
            total += added_in(await self._json(put_call(batch, split=split)))
            if progress:
                progress(len(batch))
        return total

    async def get(self, doc_id: str) -> Document:
        """One document by its id."""
        return document_in(await self._json(get_call(doc_id)))

    async def delete(self, doc_ids: Sequence[str]) -> int:
        """Remove documents; returns how many of them were there."""
        deleted = 0
        for call in _deletions(doc_ids):
            try:
                deleted += int((await self._json(call))["deleted"])
            except NotFound:
                continue
        return deleted

    async def count(self) -> int:
        """Number of documents."""
        return int((await self._json(_INDEX))["documents"])

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        """Close at the end of an `async with` block."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close."""
        await self.close()


def _parts(queries: Sequence[str]) -> list[Sequence[str]]:
    if isinstance(queries, str):
        raise InvalidValue(f"search_many takes a list of queries, got the text {queries!r}")
    return [queries[start : start + _TOGETHER] for start in range(0, len(queries), _TOGETHER)]


def _deletions(doc_ids: Sequence[str]) -> list[Call]:
    if isinstance(doc_ids, str):
        raise InvalidValue(f"delete takes a list of ids, got the text {doc_ids!r}")
    return [delete_call(doc_id) for doc_id in doc_ids]
