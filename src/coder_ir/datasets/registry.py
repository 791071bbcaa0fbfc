"""Benchmarks by name: what they hold, where they live, and whether a folder has them whole."""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path

from coder_ir.datasets.beir import load_beir
from coder_ir.datasets.diagnostics.load import FOLDER, load_reviewed
from coder_ir.datasets.excluir import CORPUS, QUERIES, load_excluir
from coder_ir.datasets.nevir import load_nevir
from coder_ir.datasets.testset import TestSet
from coder_ir.errors import InvalidFile, InvalidValue, NotFound

_BEIR = "https://public.ukp.informatik.tu-darmstadt.de/thakur/BEIR/datasets"
_BEIR_HOME = "https://github.com/beir-cellar/beir/wiki/Datasets-available"
_BEIR_FILES = ("corpus.jsonl", "queries.jsonl", "qrels/test.tsv")


@dataclass(frozen=True, slots=True)
class Archive:
    """A zip file to download."""

    url: str
    md5: str
    folder: str  # inside the zip


@dataclass(frozen=True, slots=True)
class Benchmark:
    """One dataset, as published."""

    name: str
    folder: str
    title: str
    licence: str
    home: str  # for a person to look at
    files: tuple[str, ...]
    documents: int | None  # None: not known
    queries: int  # judged ones
    load: Callable[[Path], TestSet]
    sha256: Mapping[str, str] = field(default_factory=dict)  # of files, where known
    archive: Archive | None = None
    urls: Mapping[str, str] = field(default_factory=dict)  # of single files
    packaged: bool = False  # its folder is one of this package's, not one under a root

    def place(self, root: Path) -> Path:
        """The folder that holds its files."""
        return (Path(str(resources.files("coder_ir"))) if self.packaged else root) / self.folder

    def missing(self, root: Path) -> list[str]:
        """Files that are not there."""
        return [name for name in self.files if not (self.place(root) / name).is_file()]

    @property
    def downloadable(self) -> bool:
        """Whether `download` can fetch it."""
        return bool(self.archive or self.urls)


def benchmark_named(name: str) -> Benchmark:
    """A benchmark of the list."""
    if name not in BENCHMARKS:
        raise InvalidValue(f"no benchmark {name!r}; there are {', '.join(BENCHMARKS)}")
    return BENCHMARKS[name]


def load_benchmark(name: str, root: Path) -> TestSet:
    """Load it from its folder under `root`, and refuse what is not the published set."""
    known = benchmark_named(name)
    folder = known.place(root)
    if missing := known.missing(root):
        raise NotFound(f"no {folder / missing[0]}; {how_to_get(known, root)}")
    for file, expected in known.sha256.items():
        with (folder / file).open("rb") as content:
            seen = hashlib.file_digest(content, "sha256").hexdigest()
        if seen != expected:
            raise InvalidFile(
                f"{folder / file} is not the published file: its sha256 is {seen[:12]}…, "
                f"expected {expected[:12]}…"
            )
    found = known.load(folder)
    documents, queries = len(found.documents), len(found.queries)
    if documents != (known.documents or documents) or queries != known.queries:
        raise InvalidFile(
            f"{folder} holds {documents} documents and {queries} judged queries, published are "
            f"{known.documents or documents} and {known.queries}"
        )
    return found


def how_to_get(known: Benchmark, root: Path) -> str:
    """What a person should do to have it under `root`."""
    if known.downloadable:
        return f"run: coder-ir data get {known.name} --to {root}"
    if known.packaged:
        return "this version ships without it; build one with: coder-ir data diagnostics"
    return f"see {known.home}"


def _beir(  # noqa: PLR0913 - one line a dataset
    name: str,
    title: str,
    documents: int,
    queries: int,
    md5: str,
    *,
    licence: str,
    folder: str = "",
    sha256: Mapping[str, str] | None = None,
) -> Benchmark:
    archive = Archive(f"{_BEIR}/{(folder or name).split('/')[0]}.zip", md5, folder or name)
    return Benchmark(
        name=name,
        folder=name,
        title=title,
        licence=licence,
        home=_BEIR_HOME,
        files=_BEIR_FILES,
        documents=documents,
        queries=queries,
        load=load_beir,
        sha256=sha256 or {},
        archive=archive,
    )


def _diagnostic(
    kind: str, source: str, documents: int, queries: int, sha256: str, *, licence: str
) -> Benchmark:
    sheet = f"{kind}.csv.xz"
    return Benchmark(
        name=kind,
        folder=FOLDER,
        title=f"Diagnostic, {kind} ({source})",
        licence=licence,
        home=_BEIR_HOME,
        files=(sheet,),
        documents=documents,
        queries=queries,
        load=lambda folder: load_reviewed(folder / sheet, kind=kind),
        sha256={sheet: sha256},
        packaged=True,
    )


_NEVIR = "https://huggingface.co/datasets/orionweller/NevIR"
_LISTED = (
    _beir(
        "scifact",
        "SciFact",
        5183,
        300,
        "5f7d1de60b170fc8027bb7898e2efca1",
        licence="CC BY 4.0, ODC-By",
        sha256={
            "corpus.jsonl": "dec31c8182f3d744c7d2c09423756fd1d17cbef75808db13ba01cc0aab4d1ac6",
            "queries.jsonl": "8ff84a7c903f722981cd8d595c022660140c51867b27608a6d4910db86080313",
            "qrels/test.tsv": "68c0ac63f1c24b9e8ce497649694f09b2d0850bab7ec2b103cc66996f5f8b3a3",
        },
    ),
    _beir(
        "nfcorpus",
        "NFCorpus",
        3633,
        323,
        "a89dba18a62ef92f7d323ec890a0d38d",
        licence="academic use",
        sha256={
            "corpus.jsonl": "9127e0e7f4f89587540be1f1f350eec2a5bc203253f70517b8f34557a71e24ba",
            "queries.jsonl": "d024e6621b84925d485ae473d316a0c3af31c62c8068a59fb29d22f7613aef2a",
            "qrels/test.tsv": "f8fba6ef3d4dd9c3a242a8ba4ae38276fc3622fce7dcbae764766d564542fd2a",
        },
    ),
    _beir(
        *("arguana", "ArguAna", 8674, 1406, "8ad3e3c2a5867cdced806d6503f29b99"),
        licence="see its home",
    ),
    _beir(
        *("fiqa", "FiQA-2018", 57638, 648, "17918ed23cd04fb15047f73e6c3bd9d9"),
        licence="see its home",
    ),
    _beir(
        *("scidocs", "SciDocs", 25657, 1000, "38121350fc3a4d2f48850f6aff52e4a9"),
        licence="see its home",
    ),
    _beir(
        "cqadupstack-android",
        "CQADupStack, android",
        22998,
        699,
        "4e41456d7df8ee7760a7f866133bda78",
        licence="see its home",
        folder="cqadupstack/android",
    ),
    Benchmark(
        name="nevir",
        folder="nevir",
        title="NevIR, test",
        licence="MIT",
        home=_NEVIR,
        files=("test.jsonl",),
        documents=None,
        queries=2766,
        load=lambda folder: load_nevir(folder / "test.jsonl"),
        urls={"test.jsonl": f"{_NEVIR}/resolve/main/test.jsonl"},
    ),
    Benchmark(
        name="nevir-open",
        folder="nevir",
        title="NevIR, open half of the test set",
        licence="MIT",
        home=_NEVIR,
        files=("test_open.jsonl",),
        documents=1041,
        queries=1382,
        load=lambda folder: load_nevir(folder / "test_open.jsonl"),
        sha256={
            "test_open.jsonl": "074f0fbf7b36d71e40ff240f6a357160a2039ba0a501e6fd83ff60423c2d3045",
        },
    ),
    Benchmark(
        name="excluir",
        folder="excluir",
        title="ExcluIR",
        licence="none stated",
        home="https://github.com/zwh-sdu/ExcluIR",
        files=(CORPUS, QUERIES),
        documents=None,
        queries=3452,
        load=load_excluir,
    ),
    Benchmark(
        name="negconstraint",
        folder="negconstraint",
        title="NegConstraint",
        licence="none stated",
        home="https://github.com/NICE-HKU/CoDeR",
        files=("corpus.jsonl", "queries.jsonl", "qrels.tsv"),
        documents=3946,
        queries=198,
        load=lambda folder: load_beir(folder, qrels="qrels.tsv"),
        sha256={
            "corpus.jsonl": "5f67427729d3f601f3aec8fd16e2344f55db2c11fc82d19c81731e2b6113caf5",
            "queries.jsonl": "b1461c2958b6672f36da0b2c5a81b3fa07d2870afeb96629f8709b599a99aa58",
            "qrels.tsv": "de287edd030d68f604b579dae51743d264bb5c36f4e4d6e1f8aff6f2cc3e3b8f",
        },
    ),
    _diagnostic(
        *("antonym", "SciFact", 306, 102),
        "d403b92a2e604de858fffe77dd8c58df009526dffacc2336c717d7bfda46e954",
        licence="CC BY 4.0, ODC-By",
    ),
    _diagnostic(
        *("negation", "NFCorpus", 304, 104),
        "53b98483503d9ed4534a18650b414d799d81acc4a87773c9380f3e7c127b89d4",
        licence="academic use",
    ),
    _diagnostic(
        *("exclusion", "NFCorpus", 312, 104),
        "2ffad515d4f01ad9d9102ecd8b348486a04a564b53c45f5a659160d5809278f2",
        licence="academic use",
    ),
)
BENCHMARKS = {known.name: known for known in _LISTED}
