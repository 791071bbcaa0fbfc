"""LlamaIndex: an index as a retriever; needs the extra `llama-index`."""

from typing import Unpack

from coder_ir.errors import MissingExtra
from coder_ir.integrations.asking import (
    PREFIX,
    TOLD,
    AnyAsks,
    Options,
    ask,
    ask_async,
    changed,
    metadata,
)
from coder_ir.searching import SearchOptions
from coder_ir.types import Hit, Ranking

try:
    from llama_index.core.callbacks import CallbackManager
    from llama_index.core.retrievers import BaseRetriever
    from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
except ImportError as error:
    raise MissingExtra("The LlamaIndex retriever", extra="llama-index") from error


class CoderRetriever(BaseRetriever):
    """Nodes of an index in the order of `Retriever.search`, with its options as keywords.

    Example:
        >>> CoderRetriever(Retriever.open("index"), k=5).retrieve("a snack without nuts")
    """

    def __init__(
        self,
        retriever: AnyAsks,
        *,
        callback_manager: CallbackManager | None = None,
        **options: Unpack[Options],
    ) -> None:
        """`retriever` is a Retriever, a Client or, for the async calls, an AsyncClient."""
        super().__init__(callback_manager=callback_manager)
        self.retriever = retriever
        self.options = changed(SearchOptions(), options)

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return _nodes(ask(self.retriever, query_bundle.query_str, self.options))

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return _nodes(await ask_async(self.retriever, query_bundle.query_str, self.options))


def _nodes(ranking: Ranking) -> list[NodeWithScore]:
    return [NodeWithScore(node=_node(hit), score=hit.score) for hit in ranking]


def _node(hit: Hit) -> TextNode:
    # A language model or an encoder is given a node's metadata too; only a title is for reading.
    ours = [PREFIX + name for name in TOLD if name != "title" or not hit.title]
    hidden = [key for key in ours if key not in hit.metadata]
    return TextNode(
        id_=hit.doc_id,
        text=hit.text,
        metadata=metadata(hit),
        excluded_llm_metadata_keys=hidden,
        excluded_embed_metadata_keys=hidden,
    )
