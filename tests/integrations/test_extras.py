"""An adapter without its library says what to install."""

import importlib
import sys

import pytest

from coder_ir.errors import MissingExtra
from coder_ir.integrations.mteb import CoderSearch


@pytest.mark.parametrize(
    ("module", "library", "extra"),
    [
        ("langchain", "langchain_core.callbacks", "langchain"),
        ("llama_index", "llama_index.core.callbacks", "llama-index"),
        ("haystack", "haystack", "haystack"),
    ],
)
def test_a_missing_library_is_named(
    module: str, library: str, extra: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.delitem(sys.modules, f"coder_ir.integrations.{module}", raising=False)
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(MissingExtra, match=rf"pip install 'coder-ir\[{extra}\]'"):
        importlib.import_module(f"coder_ir.integrations.{module}")


def test_the_mteb_model_without_mteb_says_what_to_install(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "mteb", None)
    with pytest.raises(MissingExtra, match=r"pip install 'coder-ir\[mteb\]'"):
        CoderSearch()
