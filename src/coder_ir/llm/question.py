"""A question as it is sent, and whether what came back answers it."""

import hashlib
import json
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self, TypeVar

from coder_ir.errors import InvalidValue
from coder_ir.llm.endpoint import Endpoint, Structured

if TYPE_CHECKING:
    from pydantic import BaseModel, ValidationError

Messages = list[dict[str, str]]
T = TypeVar("T", bound="BaseModel")


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer as it came, or as it was kept."""

    text: str
    finish: str = "stop"  # "length": cut off at max_tokens
    prompt_tokens: int = 0
    completion_tokens: int = 0
    seconds: float = 0.0

    def after(self, earlier: Self | None) -> Self:
        """This answer with what the earlier ones of its dialogue cost."""
        if earlier is None:
            return self
        return replace(
            self,
            prompt_tokens=self.prompt_tokens + earlier.prompt_tokens,
            completion_tokens=self.completion_tokens + earlier.completion_tokens,
            seconds=self.seconds + earlier.seconds,
        )


@dataclass(frozen=True, slots=True)
class Unfit:
    """Why an answer cannot be used; the problem is shown to the model too."""

    problem: str
    advice: str = "reword the prompt, use a stronger model or raise corrections"


@dataclass(frozen=True, slots=True)
class Question:
    """What decides an answer, besides the endpoint."""

    text: str  # what the user message says, the schema included
    temperature: float
    sample: int
    whole: bool = True  # one that was cut off is no answer
    schema: dict[str, Any] | None = None
    name: str = ""  # of the schema

    @classmethod
    def plain(cls, prompt: str, *, temperature: float, sample: int, whole: bool = True) -> Self:
        """One that any text answers."""
        if not prompt.strip():
            raise InvalidValue(f"a prompt must have words, got {prompt!r}")
        if not 0 <= temperature <= 2:
            raise InvalidValue(f"temperature must be between 0 and 2, got {temperature}")
        if sample < 0:
            raise InvalidValue(f"sample must be 0 or more, got {sample}")
        return cls(prompt, float(temperature), sample, whole)

    def fitting(self, answer: type["BaseModel"]) -> Self:
        """The same, to be answered with JSON that fits the type."""
        import openai

        # Strict mode takes a schema only where every field is required and no other allowed.
        schema: Any = openai.pydantic_function_tool(answer)["function"]["parameters"]
        shown = json.dumps(_untitled(schema), ensure_ascii=False, separators=(",", ":"))
        asked = f"{self.text}\n\nAnswer with JSON only. It must fit this JSON schema:\n{shown}"
        name = re.sub(r"[^A-Za-z0-9_-]", "_", answer.__name__)[:64]
        return replace(self, text=asked, schema=schema, name=name)

    def key(self, endpoint: Endpoint) -> str:
        """The same wherever the model runs and however the schema is sent."""
        parts = [endpoint.model, self.text, self.schema, self.temperature]
        parts += [endpoint.max_tokens, self.sample, self.whole]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()

    def response_format(self, structured: Structured) -> dict[str, Any]:
        """The argument of the call that sends the schema; empty where the prompt alone does."""
        if self.schema is None or structured == "text":
            return {}
        if structured == "json_object":
            return {"response_format": {"type": structured, "schema": self.schema}}
        content = {"name": self.name, "schema": self.schema, "strict": True}
        return {"response_format": {"type": structured, "json_schema": content}}

    def messages(self, last: str | None = None, *, problem: str = "") -> Messages:
        """The first ask, or the one after an answer with a problem."""
        first = {"role": "user", "content": self.text}
        if last is None:
            return [first]
        again = "Answer again" if self.schema is None else "Answer again with JSON only"
        # Some servers refuse a message without content.
        said = {"role": "assistant", "content": last if last.strip() else "(nothing)"}
        why = {"role": "user", "content": f"That cannot be used: {problem}. {again}."}
        return [first, said, why]


def fault(reply: Reply, *, max_tokens: int | None) -> Unfit | None:
    """What makes any answer useless: that it is empty, or cut off where that matters."""
    if max_tokens is not None and reply.finish == "length":
        return Unfit(
            f"the answer was cut off at {max_tokens} tokens",
            f"raise max_tokens (now {max_tokens}) or ask for less",
        )
    if not reply.text.strip():
        return Unfit(f"the answer was empty (finish_reason {reply.finish!r})")
    return None


def parsed(reply: Reply, answer: type[T], *, max_tokens: int) -> T | Unfit:
    """The answer as its type; a cut off one may still be whole JSON."""
    from pydantic import ValidationError

    # Models like to fence JSON, however they were asked.
    fenced = re.fullmatch(r"\s*```\w*\n(.*?)```\s*", reply.text, re.DOTALL)
    try:
        value: T = answer.model_validate_json(fenced[1] if fenced else reply.text)
    except ValidationError as error:
        return fault(reply, max_tokens=max_tokens) or Unfit(_problems(error))
    return value


def _problems(error: "ValidationError") -> str:
    return "; ".join(
        ": ".join(filter(None, [".".join(map(str, each["loc"])), each["msg"]]))
        for each in error.errors(include_url=False, include_context=False, include_input=False)
    )


def _untitled(schema: Any) -> Any:
    """The schema without the titles, which repeat the names; a field may be called title."""
    if isinstance(schema, list):
        return [_untitled(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        name: _untitled(value)
        for name, value in schema.items()
        if name != "title" or not isinstance(value, str)
    }
