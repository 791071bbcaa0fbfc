"""Every exception that coder-ir raises on purpose.

CoderError
├── InvalidValue        an argument, option or setting has a value that cannot work
├── InvalidFile         a file of documents, queries or triplets cannot be read; names file and line
├── DuplicateId         two documents of one call share an id
├── NotFound            an index, model or file is not there
├── ModelMismatch       a model folder is damaged, or is not the one an index was built with
├── NotReproduced       a measurement did not find the figures that were expected
├── StoreError          the store refused: disk full, read-only, locked, wrong schema
├── LanguageModelError  a language model cannot be reached, or its answers cannot be used
└── MissingExtra        a feature needs an optional dependency

A message says what was wrong, the value seen and what to do.
"""


class CoderError(Exception):
    """Base of all errors that coder-ir raises on purpose."""


class InvalidValue(CoderError, ValueError):
    """An argument, option or setting has a value that cannot work."""


class InvalidFile(CoderError, ValueError):
    """A file cannot be read as what it should be; the message names file and line."""


class DuplicateId(CoderError, ValueError):
    """Two documents of one call share an id."""


class NotFound(CoderError, LookupError):
    """An index, model, file or document is not there."""


class ModelMismatch(CoderError):
    """A model folder is damaged, or is not the model an index was built with."""


class NotReproduced(CoderError):
    """A measurement did not find the figures that were expected."""


class StoreError(CoderError):
    """The store refused: disk full, read-only, locked or of another schema."""


class LanguageModelError(CoderError):
    """A language model cannot be reached, refuses, or gives no answer that can be used."""


class MissingExtra(CoderError, ImportError):
    """A feature needs an optional dependency that is not installed."""

    def __init__(self, feature: str, *, extra: str) -> None:
        """Say which feature asked and how to install what it needs."""
        super().__init__(f"{feature} needs an optional part: pip install 'coder-ir[{extra}]'")
