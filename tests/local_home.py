"""The public home of two tiny benchmarks: an HTTP server on this machine."""

import hashlib
import io
import json
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

from coder_ir.datasets.registry import BENCHMARKS, Archive, Benchmark


def _jsonl(*rows: dict[str, str]) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


TINY: dict[str, bytes] = {
    "corpus.jsonl": _jsonl(
        {"_id": "d1", "title": "Inn", "text": "Quiet."}, {"_id": "d2", "text": "Loud."}
    ),
    "queries.jsonl": _jsonl(
        {"_id": "q1", "text": "quiet"},
        {"_id": "q2", "text": "loud"},
        {"_id": "q3", "text": "nobody judged this"},
    ),
    "qrels/test.tsv": b"query-id\tcorpus-id\tscore\nq1\td1\t1\nq2\td2\t2\n",
}
PAIR = _jsonl({"id": "1", "q1": "Left?", "q2": "Stayed?", "doc1": "He left.", "doc2": "He stayed."})


@dataclass
class Home:
    """What a server answers, and what it was asked for."""

    url: str = ""
    files: dict[str, bytes] = field(default_factory=dict)
    status: int = 200
    cut: bool = False  # drop the connection half-way
    asked: list[str] = field(default_factory=list)

    def beir(self, packed: bytes) -> Benchmark:
        """A benchmark of BEIR's shape in a zip file."""
        self.files["/tiny.zip"] = packed
        archive = Archive(f"{self.url}/tiny.zip", hashlib.md5(packed).hexdigest(), "tiny")
        return replace(tiny_beir(), archive=archive)

    def nevir(self) -> Benchmark:
        """A benchmark of one jsonl file."""
        self.files["/pair.jsonl"] = PAIR
        return replace(
            BENCHMARKS["nevir"], queries=2, urls={"test.jsonl": f"{self.url}/pair.jsonl"}
        )


def tiny_beir() -> Benchmark:
    """Two documents and two judged queries, nowhere to download."""
    known = replace(BENCHMARKS["scifact"], name="tiny", folder="tiny", title="Tiny", sha256={})
    return replace(known, documents=2, queries=2, archive=None)


def zipped(files: Mapping[str, bytes]) -> bytes:
    """A zip file of these."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as bundle:
        for name, content in files.items():
            bundle.writestr(name, content)
    return out.getvalue()


def tiny_zip(**other: bytes) -> bytes:
    """The tiny benchmark as BEIR packs one."""
    return zipped({f"tiny/{name}": content for name, content in TINY.items()} | other)


def put(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write files under a folder."""
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)


@contextmanager
def serving() -> Iterator[Home]:
    """A home on a free port, until the end of the block."""
    home = Home()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            home.asked.append(self.path)
            if home.status != 200 or self.path not in home.files:
                self.send_error(home.status if home.status != 200 else 404)
                return
            content = home.files[self.path]
            self.send_response(200)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content[: len(content) // 2] if home.cut else content)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        home.url = f"http://127.0.0.1:{server.server_port}"
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield home
        finally:
            server.shutdown()
            thread.join()
