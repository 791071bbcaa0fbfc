"""The blocks of a page run, in order, in one folder, and print what it says they print."""

import contextlib
import functools
import importlib.util
import io
import os
import re
import shutil
import subprocess
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
PAGES = {
    name: (ROOT / name).read_text(encoding="utf-8")
    for name in ("README.md", "docs/integrations.md")
}
README = PAGES["README.md"]
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
SHELLS = ("bash", "console")
EXAMPLE_BEFORE = 30  # line
# `coder-ir` is this interpreter's package, whatever is installed elsewhere.
PROGRAM = 'set -eo pipefail; coder-ir() { "$PYTHON" -m coder_ir "$@"; }\n'

pytestmark = pytest.mark.skipif(not README.strip(), reason="README.md is still empty")


@dataclass(frozen=True)
class Block:
    """A fenced block."""

    language: str
    info: str  # what stands behind the language
    text: str
    first: int  # line of the opening fence
    last: int  # line of the closing one

    @property
    def runs(self) -> bool:
        return "no-run" not in self.info.split()

    @property
    def missing(self) -> list[str]:
        """Modules of `needs=NAME` that are not installed here."""
        needed = [word.removeprefix("needs=") for word in self.info.split() if "needs=" in word]
        return [name for name in needed if not installed(name)]


def installed(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # of the package that the module is in
        return False


def blocks_of(markdown: str) -> list[Block]:
    """Fenced blocks in order; an open one is an error."""
    found: list[Block] = []
    start, head, inside = 0, "", False
    lines = markdown.splitlines()
    for number, line in enumerate(lines, 1):
        if not line.startswith("```"):
            continue
        if inside:
            language, _, info = head.partition(" ")
            body = "\n".join(lines[start : number - 1])
            found.append(Block(language, info, body, start, number))
        else:
            start, head = number, line[3:].strip()
        inside = not inside
    assert not inside, f"the block that opens at line {start} never closes"
    return found


def commands_of(block: Block) -> list[str]:
    """Shell commands, continued lines joined, the prompt of a console block removed."""
    joined = block.text.replace("\\\n", " ").splitlines()
    if block.language == "console":
        return [line[2:].strip() for line in joined if line.startswith("$ ")]
    return [line.strip() for line in joined if line.strip() and not line.startswith("#")]


def make_targets(makefile: str) -> set[str]:
    return set(re.findall(r"^([a-z][\w-]*):", makefile, re.MULTILINE))


def unknown_targets(command: str, makefile: str) -> list[str]:
    """Targets a `make` line asks for that the Makefile does not have."""
    words = command.partition("#")[0].split()[1:]
    asked = [word for word in words if "=" not in word and not word.startswith("-")]
    return [word for word in asked if word not in make_targets(makefile)]


def output_of(blocks: Sequence[Block], number: int) -> str | None:
    """What a python block is said to print: the text block that comes next, if one does."""
    following = blocks[number + 1 : number + 2]
    return following[0].text if following and following[0].language == "text" else None


def trimmed(text: str) -> list[str]:
    """Lines without trailing spaces, blank ones at either end left out."""
    return [line.rstrip() for line in text.strip("\n").splitlines()]


@dataclass(frozen=True)
class Outcome:
    """What running a block gave."""

    printed: str = ""
    failure: str = ""  # empty when all went well


def run_python(text: str, names: dict[str, Any]) -> Outcome:
    printed = io.StringIO()
    try:
        with contextlib.redirect_stdout(printed), warnings.catch_warnings():
            warnings.simplefilter("error")
            # An index that stays open until the end is an example's right.
            warnings.simplefilter("ignore", ResourceWarning)
            exec(compile(text, "README.md", "exec"), names)
    except Exception as error:
        return Outcome(printed.getvalue(), repr(error))
    return Outcome(printed.getvalue())


def run_shell(block: Block, folder: Path) -> Outcome:
    """Run the `coder-ir` lines of a block; others are for the reader's own machine."""
    for command in commands_of(block):
        if command.startswith("make ") and (gone := unknown_targets(command, MAKEFILE)):
            return Outcome(failure=f"the Makefile has no target {', '.join(gone)}")
        if not command.startswith("coder-ir "):
            continue
        done = subprocess.run(
            ["bash", "-c", PROGRAM + command],
            cwd=folder,
            env={**os.environ, "PYTHON": sys.executable, "COLUMNS": "120"},
            capture_output=True,
            encoding="utf-8",
            check=False,
            timeout=300,
        )
        if done.returncode:
            return Outcome(done.stdout, f"{command} exits {done.returncode}: {done.stderr[-500:]}")
    return Outcome()


def run_all(markdown: str, folder: Path) -> dict[int, Outcome]:
    """Every block that can run here, by its number; python blocks share their names."""
    names: dict[str, Any] = {"__name__": "readme"}
    outcomes = {}
    with contextlib.chdir(folder):
        for number, block in enumerate(blocks_of(markdown)):
            if not block.runs or block.missing:
                continue
            if block.language == "python":
                outcomes[number] = run_python(block.text, names)
            elif block.language in SHELLS:
                outcomes[number] = run_shell(block, folder)
    return outcomes


def mismatches(
    markdown: str, outcomes: Mapping[int, Outcome], page: str = "README.md"
) -> list[str]:
    """Blocks that failed or printed something else than the page says."""
    blocks = blocks_of(markdown)
    found = []
    for number, outcome in outcomes.items():
        place = f"{page}:{blocks[number].first}"
        said = output_of(blocks, number) if blocks[number].language == "python" else None
        if outcome.failure:
            found.append(f"{place} {outcome.failure}")
        elif said is not None and trimmed(outcome.printed) != trimmed(said):
            found.append(f"{place} prints {outcome.printed!r}")
    return found


def examples_before(markdown: str, line: int) -> list[Block]:
    """Blocks that run and whose output follows, all of it above that line."""
    blocks = blocks_of(markdown)
    return [
        block
        for block, following in pairwise(blocks)
        if block.language in ("python", *SHELLS)
        and block.runs
        and following.language == "text"
        and following.last < line
    ]


BLOCKS = blocks_of(README)
RUNNING = [
    pytest.param(
        *(page, number),
        id=f"{page} line {block.first}",
        marks=() if page == "README.md" else pytest.mark.large,  # whole frameworks are imported
    )
    for page, text in PAGES.items()
    for number, block in enumerate(blocks_of(text))
    if block.runs and block.language in ("python", *SHELLS)
]


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], dict[int, Outcome]]:
    """Runs a page the first time it is asked for."""
    return functools.cache(lambda page: run_all(PAGES[page], tmp_path_factory.mktemp("page")))


@pytest.mark.parametrize(("page", "number"), RUNNING)
def test_a_block_runs_and_prints_what_the_page_says(
    page: str, number: int, outcomes: Callable[[str], dict[int, Outcome]]
):
    if missing := blocks_of(PAGES[page])[number].missing:
        pytest.skip(f"needs {', '.join(missing)}, which is not installed")
    assert mismatches(PAGES[page], {number: outcomes(page)[number]}, page) == []


def test_the_readme_has_a_python_block():
    assert any(block.language == "python" and block.runs for block in BLOCKS)


def test_an_example_with_its_output_comes_early():
    assert examples_before(README, EXAMPLE_BEFORE)


def test_make_targets_the_readme_names_are_in_the_makefile():
    commands = [c for block in BLOCKS if block.language in SHELLS for c in commands_of(block)]
    asked = [command for command in commands if command.startswith("make ")]
    assert [target for command in asked for target in unknown_targets(command, MAKEFILE)] == []


# What follows feeds made-up READMEs to the functions above, so that they are known to fail.


def fenced(*parts: tuple[str, str]) -> str:
    return "\n".join(f"```{head}\n{text}\n```\n" for head, text in parts)


def test_blocks_are_found_with_their_lines():
    [one, two] = blocks_of("# Title\n\n```python\nx = 1\n```\n\n```bash no-run\nls\n```\n")
    assert one == Block("python", "", "x = 1", 3, 5)
    assert two == Block("bash", "no-run", "ls", 7, 9)


def test_a_block_that_never_closes_is_an_error():
    with pytest.raises(AssertionError, match="opens at line 1 never closes"):
        blocks_of("```python\nx = 1\n")


def test_blocks_share_their_names(tmp_path: Path):
    text = fenced(("python", "x = 1"), ("python", "print(x + 1)"), ("text", "2"))
    assert mismatches(text, run_all(text, tmp_path)) == []


def test_other_output_than_said_is_found(tmp_path: Path):
    text = fenced(("python", "print('a')"), ("text", "b"))
    assert mismatches(text, run_all(text, tmp_path)) == ["README.md:1 prints 'a\\n'"]


def test_trailing_spaces_do_not_count(tmp_path: Path):
    text = fenced(("python", "print('a  ')\nprint('b')"), ("text", "a\nb  "))
    assert mismatches(text, run_all(text, tmp_path)) == []


def test_a_failing_python_block_is_found(tmp_path: Path):
    text = fenced(("python", "1 / 0"))
    [found] = mismatches(text, run_all(text, tmp_path))
    assert "ZeroDivisionError" in found


@pytest.mark.parametrize("head", ["bash", "console"])
def test_a_failing_command_is_found(tmp_path: Path, head: str):
    prompt = "$ " if head == "console" else ""
    text = fenced((head, f"{prompt}coder-ir nonsense"))
    [found] = mismatches(text, run_all(text, tmp_path))
    assert "coder-ir nonsense exits 2" in found


def test_a_block_marked_no_run_is_passed_over(tmp_path: Path):
    text = fenced(("bash no-run", "coder-ir nonsense"), ("python no-run", "1 / 0"))
    assert run_all(text, tmp_path) == {}


def test_a_block_whose_library_is_not_there_is_passed_over(tmp_path: Path):
    text = fenced(("python needs=nowhere.at.all", "1 / 0"), ("python needs=json", "print(1)"))
    assert list(run_all(text, tmp_path)) == [1]
    assert blocks_of(text)[0].missing == ["nowhere.at.all"]


def test_other_programs_are_not_run(tmp_path: Path):
    text = fenced(("bash", "touch made\npip install coder-ir\ngit clone x"))
    assert mismatches(text, run_all(text, tmp_path)) == []
    assert list(tmp_path.iterdir()) == []


def test_a_make_target_that_is_not_there_is_found(tmp_path: Path):
    text = fenced(("bash", "make test\nmake supper  # now"))
    [found] = mismatches(text, run_all(text, tmp_path))
    assert found == "README.md:1 the Makefile has no target supper"


def test_a_continued_command_is_one():
    [block] = blocks_of(fenced(("bash", "# say\ncoder-ir search i \\\n  -k 3")))
    assert [c.split() for c in commands_of(block)] == [["coder-ir", "search", "i", "-k", "3"]]


def test_only_what_stands_behind_a_prompt_is_a_console_command():
    [block] = blocks_of(fenced(("console", "$ coder-ir demo\ncoder-ir prints this")))
    assert commands_of(block) == ["coder-ir demo"]


def test_an_example_below_the_line_or_without_output_does_not_count():
    example = fenced(("python", "print(1)"), ("text", "1"))
    assert examples_before(example, 30)
    assert not examples_before("\n" * 25 + example, 30)
    assert not examples_before(fenced(("python", "print(1)"), ("bash", "ls")), 30)


def test_bash_is_there_to_run_commands():
    assert shutil.which("bash")
