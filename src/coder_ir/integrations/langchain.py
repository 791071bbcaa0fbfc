"""LangChain: an index as a retriever; needs the extra `langchain`."""

from collections.abc import Sequence
from typing import Any, Self

from coder_ir.errors import MissingExtra
from coder_ir.integrations.asking import OPTIONS, ask, ask_async, changed, metadata
from coder_ir.searching import DEFAULT_POLICY, Mode, SearchOptions
from coder_ir.types import Ranking

try:
    from langchain_core.callbacks import (
        AsyncCallbackManagerForRetrieverRun,
        CallbackManagerForRetrieverRun,
    )
    from langchain_core.documents import Document
    from langchain_core.retrievers import BaseRetriever
    from pydantic import ConfigDict, model_validator
except ImportError as error:
    raise MissingExtra("The LangChain retriever", extra="langchain") from error


class CoderRetriever(BaseRetriever):
    """Documents of an index in the order of `Retriever.search`, with its options as fields.

    A call may change options for itself: `invoke("a snack", exclude=["nuts"])`.

    Example:
        >>> CoderRetriever(retriever=Retriever.open("index"), k=5).invoke("a snack without nuts")
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    retriever: Any  # a Retriever, a Client or, for the async calls, an AsyncClient
    k: int = 10
    policy: Any = DEFAULT_POLICY  # a name or a policy
    n: int = 100
    where: Sequence[Any] = ()  # texts or Conditions
    exclude: Sequence[str] = ()
    require: Sequence[str] = ()
    mode: Mode = "soft"
    max_risk: float = 1.0
    explain: bool = False
    verify: int | None = None

    @model_validator(mode="after")
    def _checked(self) -> Self:
        _ = self.options
        return self

    @property
    def options(self) -> SearchOptions:
        """The fields that say how to search."""
        return changed(SearchOptions(), {name: getattr(self, name) for name in OPTIONS})

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, **options: Any
    ) -> list[Document]:
        return _documents(ask(self.retriever, query, changed(self.options, options)))

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, **options: Any
    ) -> list[Document]:
        chosen = changed(self.options, options)
        return _documents(await ask_async(self.retriever, query, chosen))


def _documents(ranking: Ranking) -> list[Document]:
    return [
        Document(id=hit.doc_id, page_content=hit.text, metadata=metadata(hit)) for hit in ranking
    ]
