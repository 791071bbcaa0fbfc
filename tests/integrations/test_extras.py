"""An adapter without its library says what to install."""

import importlib
import sys

import pytest

from coder_ir.errors import MissingExtra


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
