"""What went wrong on the way to a server, in this project's words and without the key."""

from typing import Any

from coder_ir.errors import LanguageModelError
from coder_ir.llm.endpoint import Endpoint

_SHOWN = 300  # characters of what a server says


def hidden(text: str, key: str) -> str:
    """The text with `***` for the key."""
    return text.replace(key, "***") if key else text


def no_completion(endpoint: Endpoint, said: str, *, key: str) -> LanguageModelError:
    """The server answered, but not as a chat server does."""
    return LanguageModelError(
        f"{endpoint.base_url} did not answer with a chat completion but with "
        f"{hidden(said, key)[:_SHOWN]!r}; check base_url, which usually ends in /v1"
    )


def explained(error: Exception, endpoint: Endpoint, *, key: str) -> LanguageModelError:
    """The client's error with what was seen and what to do."""
    import openai

    at = endpoint.base_url
    if isinstance(error, openai.APITimeoutError):
        return LanguageModelError(
            f"{at} did not answer within {endpoint.timeout:g} s, {_tries(endpoint)}; "
            "raise timeout, lower concurrency or use a faster model"
        )
    if isinstance(error, openai.APIConnectionError):
        cause = hidden(str(error.__cause__ or error), key)[:_SHOWN]
        return LanguageModelError(
            f"cannot reach {at} ({cause}), {_tries(endpoint)}; is the server running?"
        )
    if isinstance(error, openai.APIStatusError):
        seen = f"{error.status_code}: {hidden(_said(error.body), key)[:_SHOWN]}"
        return LanguageModelError(
            _refusal(error.status_code, seen, endpoint=endpoint, with_key=bool(key))
        )
    return no_completion(endpoint, str(error), key=key)


def _refusal(status: int, seen: str, *, endpoint: Endpoint, with_key: bool) -> str:
    at, variable = endpoint.base_url, endpoint.variable
    if status in (401, 403) and not with_key:
        named = (
            f"the environment variable {variable}" if variable else "key_variable in the settings"
        )
        return f"{at} wants a key ({seen}); set {named}"
    if status in (401, 403):
        return (
            f"{at} refused the key in the environment variable {variable} ({seen}); "
            f"set it to one that may use {endpoint.model}"
        )
    if status == 404:
        return (
            f"{at} has no model {endpoint.model!r} ({seen}); "
            f"set model to a name that {at.rstrip('/')}/models lists"
        )
    if status == 429:
        return (
            f"{at} takes no more calls ({seen}), {_tries(endpoint)}; check the account's limits, "
            f"wait, or lower concurrency (now {endpoint.concurrency})"
        )
    if status >= 500:
        return (
            f"{at} failed ({seen}), {_tries(endpoint)}; see the server's log, or set structured "
            f"(now {endpoint.structured}) to a mode it knows"
        )
    return (
        f"{at} refused the request ({seen}); check model ({endpoint.model}), "
        f"max_tokens ({endpoint.max_tokens}) and structured ({endpoint.structured})"
    )


def _tries(endpoint: Endpoint) -> str:
    return f"with retries = {endpoint.retries}"


def _said(body: Any) -> str:
    """The words of an error body, whatever its shape."""
    if isinstance(body, dict):
        body = body.get("message") or body.get("detail") or body
    return " ".join(str(body).split()) or "no reason given"
