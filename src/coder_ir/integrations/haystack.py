"""Haystack: an index as a component of a pipeline; needs the extra `haystack`."""

import asyncio
import threading
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any, Self, Unpack

from coder_ir.client import Client
from coder_ir.errors import InvalidValue, MissingExtra
from coder_ir.integrations.asking import (
    OPTIONS,
    AnyAsks,
    Options,
    ask,
    ask_async,
    changed,
    metadata,
)
from coder_ir.policies import POLICIES, policy_named
from coder_ir.retriever import Retriever
from coder_ir.searching import SearchOptions
from coder_ir.types import Condition, Policy, Ranking

try:
    from haystack import Document, component, default_from_dict, default_to_dict
    from haystack.utils import Secret
except ImportError as error:
    raise MissingExtra("The Haystack component", extra="haystack") from error

_INPUTS: dict[str, Any] = {
    "k": int | None,
    "policy": str | None,
    "n": int | None,
    "where": list[str] | None,
    "exclude": list[str] | None,
    "require": list[str] | None,
    "mode": str | None,
    "max_risk": float | None,
    "explain": bool | None,
    "verify": int | None,
}


@component
class CoderRetriever:
    """Documents of an index in the order of `Retriever.search`, with its options as keywords.

    Each option is an input of the component too and then counts for that run; None leaves it.

    Example:
        >>> CoderRetriever(index="my-index", k=5).run("a snack without nuts")["documents"]
    """

    def __init__(
        self,
        retriever: AnyAsks | None = None,
        *,
        index: str | None = None,
        url: str | None = None,
        token: Secret | None = None,
        model: str | None = None,
        hybrid: bool = False,
        **options: Unpack[Options],
    ) -> None:
        """Name one place to search in; nothing is opened before `warm_up` or the first run.

        Args:
            retriever: a Retriever, a Client or, for `run_async`, an AsyncClient; such a component
                cannot be written to a file.
            index: a folder, opened for reading.
            url: of a server (`coder-ir serve`).
            token: for that server.
            model: as in `Retriever.open`, with `index`.
            hybrid: as in `Retriever.open`, with `index`.
            options: as in `Retriever.search`.
        """
        _check_place(retriever, index, url)
        if index is None and (model is not None or hybrid):
            raise InvalidValue("model and hybrid say how to open an index; name it with index=")
        if url is None and token is not None:
            raise InvalidValue("token is for a server; name it with url=")
        self.index, self.url, self.token = index, url, token
        self.model, self.hybrid = model, hybrid
        self.options = changed(SearchOptions(), options)
        self._given = retriever
        self._opened: Retriever | Client | None = None
        self._opening = threading.Lock()
        component.set_input_type(self, "query", str)
        for name, kind in _INPUTS.items():
            component.set_input_type(self, name, kind, default=None)

    def warm_up(self) -> None:
        """Open the index or the connection; a second call does nothing."""
        self._searcher()

    async def warm_up_async(self) -> None:
        """`warm_up` in a thread, for loading a model takes a while."""
        await asyncio.to_thread(self._searcher)

    def close(self) -> None:
        """Close what `warm_up` opened; a run opens it again."""
        with self._opening:
            if self._opened is not None:
                self._opened.close()
            self._opened = None

    def _searcher(self) -> AnyAsks:
        if self._given is not None:
            return self._given
        with self._opening:
            if self._opened is None:
                self._opened = self._open()
            return self._opened

    def _open(self) -> Retriever | Client:
        if self.index is not None:
            return Retriever.open(self.index, model=self.model, hybrid=self.hybrid, read_only=True)
        return Client(str(self.url), self.token.resolve_value() if self.token else None)

    @component.output_types(documents=list[Document])
    def run(self, query: str, **options: Any) -> dict[str, list[Document]]:
        """At most k documents, best first."""
        chosen = changed(self.options, _stated(options))
        return {"documents": _documents(ask(self._searcher(), query, chosen))}

    @component.output_types(documents=list[Document])
    async def run_async(self, query: str, **options: Any) -> dict[str, list[Document]]:
        """`run` without blocking the loop."""
        chosen = changed(self.options, _stated(options))
        await self.warm_up_async()
        return {"documents": _documents(await ask_async(self._searcher(), query, chosen))}

    def to_dict(self) -> dict[str, Any]:
        """What a pipeline's file holds; options that are the default are left out."""
        if self._given is not None:
            raise InvalidValue(
                f"a pipeline's file cannot hold a {type(self._given).__name__}; name the place "
                "with index= or url= instead"
            )
        places = {
            "index": self.index,
            "url": self.url,
            "token": self.token.to_dict() if self.token else None,
            "model": self.model,
            "hybrid": self.hybrid,
        }
        made: dict[str, Any] = default_to_dict(self, **places, **_written(self.options))
        return made

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """A component from what `to_dict` wrote."""
        parameters = dict(data.get("init_parameters", {}))
        if isinstance(policy := parameters.get("policy"), Mapping):
            parameters["policy"] = _policy(policy)
        if "where" in parameters:
            parameters["where"] = [_condition(written) for written in parameters["where"]]
        made: Self = default_from_dict(cls, {**data, "init_parameters": parameters})
        return made


def _check_place(*places: object) -> None:
    if sum(place is not None for place in places) != 1:
        raise InvalidValue("name one place to search in: a retriever, index= or url=")


def _stated(options: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}


def _documents(ranking: Ranking) -> list[Document]:
    return [
        Document(id=hit.doc_id, content=hit.text, meta=metadata(hit), score=hit.score)
        for hit in ranking
    ]


def _written(options: SearchOptions) -> dict[str, Any]:
    """Options that differ from the default, as YAML can hold them."""
    plain: dict[str, Any] = {name: getattr(options, name) for name in OPTIONS}
    if not isinstance(options.policy, str):
        plain["policy"] = _policy_written(options.policy)
    for name in ("exclude", "require"):
        plain[name] = list(plain[name])
    plain["where"] = [w if isinstance(w, str) else _condition_written(w) for w in options.where]
    usual = SearchOptions()
    return {name: value for name, value in plain.items() if value not in ([], getattr(usual, name))}


def _policy_written(policy: Policy) -> dict[str, Any]:
    own: Any = policy
    if type(policy) not in [type(known) for known in POLICIES.values()]:
        raise InvalidValue(
            f"a pipeline's file can hold the policies {', '.join(POLICIES)}, not {policy!r}"
        )
    return {"name": policy.name, **asdict(own)}


def _policy(written: Mapping[str, Any]) -> Policy:
    settings = dict(written)
    known: Any = policy_named(settings.pop("name", ""))
    try:
        made: Policy = replace(known, **settings)
    except TypeError as error:
        raise InvalidValue(f"policy {known.name}: {error}") from error
    return made


def _condition_written(condition: Condition) -> dict[str, Any]:
    return {**asdict(condition), "values": list(condition.values)}


def _condition(written: str | Mapping[str, Any]) -> str | Condition:
    if isinstance(written, str):
        return written
    return Condition(written["field"], written["operator"], tuple(written["values"]))
