"""One JSON object a line on stderr; never a word of a query or a document."""

import json
import logging
import sys
import time
import traceback
from typing import Any

LOGGER = logging.getLogger("coder_ir.serve")
_FIELDS = "fields"


class JsonLines(logging.Formatter):
    """A record as one line of JSON: time, level, message and the fields it was given."""

    def format(self, record: logging.LogRecord) -> str:
        """ASCII, so that no terminal or collector can stumble over it."""
        seconds = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        line: dict[str, Any] = {
            "time": f"{seconds}.{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "message": record.getMessage(),
            **getattr(record, _FIELDS, {}),
        }
        if record.exc_info and record.exc_info[1]:
            line |= failure_fields(record.exc_info[1])
        return json.dumps(line)


def failure_fields(error: BaseException) -> dict[str, Any]:
    """Kind and place of an error, without its message, which may quote a document."""
    frames = traceback.extract_tb(error.__traceback__)
    places = [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in frames]
    return {"error": type(error).__name__, "trace": places[-12:]}


def log(message: str, *, level: int = logging.INFO, **fields: Any) -> None:
    """Write a line with these fields."""
    LOGGER.log(level, message, extra={_FIELDS: fields})


def log_to_stderr() -> None:
    """Send this server's lines, and those of what it runs on, to stderr as JSON."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    for name in (LOGGER.name, "uvicorn.error", "asyncio"):
        logger = logging.getLogger(name)
        logger.handlers = [handler]
        logger.propagate = False
        logger.setLevel(logging.INFO)
