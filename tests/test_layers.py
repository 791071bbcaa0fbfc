"""The tree is the architecture: who may import whom, what importing loads, how long things are."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "coder_ir"
FILES = sorted(SOURCE.rglob("*.py"))
LONGEST_BODY = 60  # lines, docstring left out

# Top to bottom; "" is the package's own __init__, which gathers the public names.
GROUPS = (
    ("errors", "types"),
    ("vectors", "calibration", "text", "conditions"),
    ("encoders", "stores", "policies", "metrics", "datasets", "llm", "intake"),
    ("folders", "query", "search", "verifier"),
    ("searching", "hybrid", "explaining", "lexical"),
    ("retriever", "baselines", "training", "remote", "attached"),
    # `client` speaks to `serve` over HTTP alone and returns the retriever's types.
    ("experiments", "serve", "client", "distributed"),
    # Adapters wrap a retriever and a client alike.
    ("integrations",),
    ("",),
    ("cli",),
    ("__main__",),
)
LEVEL = {part: level for level, group in enumerate(GROUPS) for part in group}
WITHIN_A_GROUP = {("types", "errors")}
HEAVY = (
    *("torch", "faiss", "onnxruntime", "sentence_transformers"),
    *("fastapi", "uvicorn", "pydantic", "httpx", "prometheus_client"),
    *("psycopg", "psycopg_pool"),
    *("pymilvus", "milvus_lite", "grpc", "pandas", "pyarrow", "ray", "fsspec"),
)


def module_name(path: Path) -> str:
    parts = path.relative_to(SOURCE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def part_of(module: str) -> str:
    """The piece of the tree a module belongs to: `coder_ir.stores.sqlite.store` is of `stores`."""
    return [*module.split("."), ""][1]


def imports(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Line and module of every import, inside functions too; a relative one keeps its dots."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level:
            yield node.lineno, "." * node.level + (node.module or "")
        elif isinstance(node, ast.ImportFrom) and node.module == "coder_ir":
            # `from coder_ir import types` names a module, `from coder_ir import Hit` a value.
            for alias in node.names:
                inner = alias.name if alias.name in LEVEL else ""
                yield node.lineno, f"coder_ir.{inner}".rstrip(".")
        elif isinstance(node, ast.ImportFrom):
            yield node.lineno, str(node.module)


def import_breaches(module: str, source: str) -> list[str]:
    """What a module imports against the order."""
    own = part_of(module)
    if own not in LEVEL:
        return [f"{module}: {own!r} has no place in the order"]
    found = []
    for line, target in imports(ast.parse(source)):
        if target.startswith("."):
            found.append(f"{module}:{line} relative import {target}")
        if target.split(".")[0] != "coder_ir":
            continue
        other = part_of(target)
        if other == own or (own, other) in WITHIN_A_GROUP:
            continue
        if other not in LEVEL or LEVEL[other] >= LEVEL[own]:
            found.append(f"{module}:{line} imports {target}")
    return found


def print_calls(module: str, source: str) -> list[str]:
    return [
        f"{module}:{node.lineno}"
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Name) and node.id == "print"
    ]


def long_parts(module: str, source: str) -> list[str]:
    """Functions past their limit."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            documented = ast.get_docstring(node) is not None and len(node.body) > 1
            first = node.body[1 if documented else 0]
            length = (node.end_lineno or 0) - first.lineno + 1
            if length > LONGEST_BODY:
                found.append(f"{module}:{node.lineno} {node.name} has {length} lines")
    return found


def test_the_source_is_where_this_file_looks():
    assert len(FILES) > 20


@pytest.mark.parametrize("path", FILES, ids=module_name)
def test_a_module_imports_only_from_before_its_own_group(path: Path):
    assert import_breaches(module_name(path), path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("path", FILES, ids=module_name)
def test_a_module_does_not_print(path: Path):
    assert print_calls(module_name(path), path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("path", FILES, ids=module_name)
def test_functions_stay_short(path: Path):
    assert long_parts(module_name(path), path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("coder_ir.policies.seq", "from coder_ir.stores import open_store"),
        ("coder_ir.policies.seq", "import coder_ir.stores.sqlite.store"),
        ("coder_ir.stores.sqlite.store", "def f():\n    from coder_ir.retriever import Retriever"),
        ("coder_ir.training.fit", "from coder_ir.retriever import Retriever"),
        ("coder_ir.errors", "from coder_ir.types import Hit"),
        ("coder_ir.types", "from coder_ir.vectors import cosine"),
        ("coder_ir.types", "from coder_ir import vectors"),
        ("coder_ir.encoders.onnx", "from coder_ir import Runtime"),
        (
            "coder_ir.encoders.onnx",
            "from coder_ir.encoders import Runtime\nfrom .folder import Role",
        ),
        ("coder_ir.experiments.run", "from coder_ir.cli.talk import say"),
        ("coder_ir", "from coder_ir.cli import main"),
        ("coder_ir.utils", "import json"),
    ],
    ids=[
        "sibling",
        "sibling by plain import",
        "later group inside a function",
        "sibling of the retriever",
        "errors import types",
        "types import what follows",
        "module taken from the package",
        "public name taken from the package",
        "relative",
        "cli from below",
        "cli from the package",
        "unknown part",
    ],
)
def test_a_breach_of_the_order_is_found(module: str, source: str):
    assert len(import_breaches(module, source)) == 1


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("coder_ir.types", "from coder_ir.errors import InvalidValue"),
        ("coder_ir.retriever", "from coder_ir.stores import open_store\nimport numpy"),
        ("coder_ir.stores", "from coder_ir.stores.sqlite.store import SqliteStore"),
        ("coder_ir.cli.app", "from coder_ir import __version__"),
        ("coder_ir.__main__", "from coder_ir.cli import main"),
    ],
    ids=["types import errors", "earlier group", "own package", "public name in cli", "__main__"],
)
def test_an_import_in_order_is_let_through(module: str, source: str):
    assert import_breaches(module, source) == []


def test_a_print_is_found():
    assert print_calls("m", "def f():\n    print('x')\n    console.print('y')") == ["m:2"]


def test_a_long_function_is_found_whatever_its_docstring():
    body = "    x = 1\n" * LONGEST_BODY
    doc = '    """One.\n\n    Two.\n    """\n'
    assert long_parts("m", f"def f():\n{doc}{body}") == []
    assert long_parts("m", f"def f():\n{doc}{body}    x = 2\n") == ["m:1 f has 61 lines"]


def test_importing_the_command_line_loads_no_heavy_library():
    code = (
        "import sys, coder_ir.cli.app\n"
        f"sys.stdout.write(','.join(m for m in {HEAVY!r} if m in sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.stdout, done.stderr, done.returncode) == ("", "", 0)
