"""The one door to a language model: OpenAI-compatible, cached on disk, counted.

The key is read from the environment and goes to the server only. Text that comes back has it
replaced by `***` before it reaches a message, the cache or the caller.
"""

from coder_ir.llm.endpoint import Endpoint
from coder_ir.llm.model import LanguageModel, Ledger

__all__ = ["Endpoint", "LanguageModel", "Ledger"]
