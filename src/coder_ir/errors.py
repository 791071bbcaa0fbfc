"""Every exception that coder-ir raises on purpose.

CoderError
├── InvalidValue        an argument, option or setting has a value that cannot work
│   └── TooLarge        a request is larger than the server's limits
├── InvalidFile         a file of documents, queries or triplets cannot be read; names file and line
├── DuplicateId         two documents of one call share an id
├── NotFound            an index, model or file is not there
├── ModelMismatch       a model folder is damaged, or is not the one an index was built with
├── NotReproduced       a measurement did not find the figures that were expected
├── StoreError          the store refused: disk full, read-only, locked, wrong schema
├── LanguageModelError  a language model cannot be reached, or its answers cannot be used
├── ServiceError        a server cannot start, cannot be reached, or failed
│   ├── AccessDenied    a token is missing, wrong, or not enough; or the server is read-only
│   ├── Busy            more waits than the server lets wait; ask again later
│   ├── TimedOut        an answer took longer than the server lets it take
│   └── UploadStopped   an upload ended early; says how much of it is kept
└── MissingExtra        a feature needs an optional dependency

A message says what was wrong, the value seen and what to do.
"""


class CoderError(Exception):
    """Base of all errors that coder-ir raises on purpose."""


class InvalidValue(CoderError, ValueError):
    """An argument, option or setting has a value that cannot work."""


class TooLarge(InvalidValue):
    """A request, or a part of it, is larger than the server's limits."""


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


class ServiceError(CoderError):
    """A server cannot start, cannot be reached, or failed."""


class AccessDenied(ServiceError):
    """A token is missing, wrong, or not enough; or the server is read-only."""


class Busy(ServiceError):
    """More requests wait than the server lets wait."""

    def __init__(self, message: str, *, retry_after: int = 1) -> None:
        """`retry_after` is in seconds."""
        super().__init__(message)
        self.retry_after = retry_after


class TimedOut(ServiceError, TimeoutError):
    """An answer took longer than the server lets it take."""


class UploadStopped(ServiceError):
    """An upload ended at a line; documents before it are kept."""

    def __init__(self, cause: CoderError, *, line: int, written: int, unchanged: int) -> None:
        """Counts are of documents before the line, numbered from 1."""
        super().__init__(f"line {line}: {cause}")
        self.cause = cause
        self.line = line
        self.written = written
        self.unchanged = unchanged


class MissingExtra(CoderError, ImportError):
    """A feature needs an optional dependency that is not installed."""

    def __init__(self, feature: str, *, extra: str) -> None:
        """Say which feature asked and how to install what it needs."""
        super().__init__(f"{feature} needs an optional part: pip install 'coder-ir[{extra}]'")
