"""What the routes stand on: an index with its workers, its writer and its figures."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from importlib.metadata import version
from typing import Any, TypeVar, cast

from coder_ir.errors import TooLarge, UploadStopped
from coder_ir.intake import Added
from coder_ir.policies import POLICIES
from coder_ir.retriever import Retriever
from coder_ir.searching import DEFAULT_POLICY, Asked
from coder_ir.serve.batching import Answer, Batcher, Question
from coder_ir.serve.metrics import Metrics
from coder_ir.serve.pool import PoolOut, pool_of
from coder_ir.serve.schemas import IndexOut, ModelOut, PoolIn, SearchIn, SettingsOut
from coder_ir.serve.settings import ServeSettings
from coder_ir.serve.writing import Writer, within
from coder_ir.types import STATED, Ranking

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Service:
    """One index, served."""

    retriever: Retriever
    settings: ServeSettings
    metrics: Metrics
    batcher: Batcher
    writer: Writer

    @classmethod
    def over(cls, retriever: Retriever, settings: ServeSettings) -> "Service":
        """Put the parts together; nothing runs yet."""
        metrics = Metrics()
        batcher = Batcher(retriever, settings.limits, metrics.answered)
        metrics.watch(documents=partial(len, retriever), waiting=lambda: batcher.waiting)
        return cls(retriever, settings, metrics, batcher, Writer(retriever, settings.limits))

    def start(self) -> None:
        """Read the vectors into memory, so that the first search need not wait for it."""
        if len(self.retriever):
            self.retriever.search("warm up", k=1)
        self.batcher.start()

    def close(self) -> None:
        """Finish what was accepted."""
        self.batcher.close()
        self.writer.close()

    async def answers(self, searches: Sequence[SearchIn]) -> list[Answer[Ranking]]:
        """One answer a search; all are checked before the first is taken up."""
        answers = await self._asked(searches, self.retriever.answer)
        size = sum(len(hit.text) for answer in answers for hit in answer.value)
        most = self.settings.limits.answer_characters
        if size > most:
            raise TooLarge(
                f"the hits hold {size} characters of text, and an answer at most {most}; ask for "
                "fewer hits, or for fewer searches at a time"
            )
        return answers

    async def pool(self, wanted: PoolIn) -> PoolOut:
        """The candidates for a query, not ranked."""
        (answer,) = await self._asked([wanted], partial(pool_of, self.retriever))
        return answer.value

    async def _asked(
        self, searches: Sequence[SearchIn | PoolIn], finish: Callable[[Asked], T]
    ) -> list[Answer[T]]:
        """What becomes of each; those that no worker has taken when the time is up never are."""
        limits = self.settings.limits
        questions: list[Question] = []
        for number, search in enumerate(searches, 1):
            question = search.question(limits)
            place = f"search {number}: the query" if len(searches) > 1 else "the query"
            self.retriever.check(question.query, question.options, place=place)
            questions.append(question)
        futures = map(asyncio.wrap_future, self.batcher.submit(questions, finish))
        return await within(limits.timeout, asyncio.gather(*futures))

    async def upload(self, chunks: AsyncIterator[bytes], *, split: bool) -> Added:
        """Write a body of jsonl as it comes, and count what was written, whole or not."""
        try:
            added = await self.writer.upload(chunks, split=split)
        except UploadStopped as stopped:
            self.metrics.changed(written=stopped.written)
            raise
        self.metrics.changed(written=added.written)
        return added

    async def delete(self, doc_id: str) -> int:
        """Remove a document; returns how many were there."""
        deleted = await self.writer.delete(doc_id)
        self.metrics.changed(deleted=deleted)
        return deleted

    async def aside(self, work: Callable[[], T]) -> T:
        """Run what waits for the disk in a thread."""
        loop = asyncio.get_running_loop()
        return await within(self.settings.limits.timeout, loop.run_in_executor(None, work))

    @property
    def version(self) -> str:
        """That of this package."""
        return version("coder-ir")

    def described(self) -> IndexOut:
        """The index, its model and how it is served."""
        retriever, settings = self.retriever, self.settings
        return IndexOut(
            documents=len(retriever),
            version=self.version,
            model=ModelOut(spec=retriever.encoder.spec, fingerprint=retriever.encoder.fingerprint),
            settings=SettingsOut(
                policy=DEFAULT_POLICY,
                policies={name: asdict(cast(Any, policy)) for name, policy in POLICIES.items()},
                stated=STATED,
                examples=list(settings.examples),
                hybrid=retriever.lexical is not None,
                calibrated=retriever.calibration is not None,
                read_only=bool(settings.read_only),
                reason=settings.read_only,
                limits=asdict(settings.limits),
            ),
        )
