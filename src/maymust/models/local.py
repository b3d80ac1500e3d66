"""A small model in this process (extra `local`): each turn is a valid call of an allowed tool, because nothing else can be sampled.

model = LocalModel()                    # SmolLM2-135M-Instruct, fetched once into the user's cache
model = LocalModel("/models/any.gguf")  # any GGUF file whose model speaks ChatML
"""

from __future__ import annotations

import asyncio
import functools
import importlib
import logging
import os
import sys
import uuid
from collections.abc import AsyncIterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from maymust.errors import RunError
from maymust.models import chatml, weights
from maymust.models.capabilities import Capabilities
from maymust.models.chat_model import CallDelta, ModelDelta, ModelReply, ModelRequest, TextDelta, ToolDefinition, Usage
from maymust.models.failures import MissingExtra, OutputError
from maymust.models.message import Message, ToolCall
from maymust.models.structured import Bounds, NotACall, call_schema, read_call

_LOG = logging.getLogger("maymust.models.local")
_CAPABILITIES = Capabilities(subset="grammar", strict_schemas=True, json_schema=True)
_RETRY_TEMPERATURE = 0.6
_SHORTEST = 400


class ContextOverflow(RunError):
    """The conversation does not fit the model's context, even with its long messages shortened."""


@dataclass(frozen=True, slots=True)
class _Output:
    text: str
    whole: bool
    usage: Usage


class LocalModel:
    """A GGUF model, run by llama.cpp inside this process.

    The pass of each turn becomes a JSON schema that constrains the sampler. The prompt's start stays the same from turn to turn, so
    only what is new is read. One object, or several on the same file, may serve many runs: turns are made one after another, off
    the event loop. Nothing is loaded before the first turn.

    Args:
        model: A path, or a name known to `maymust models list`. Default: MAYMUST_LOCAL_MODEL, else SmolLM2-135M-Instruct.
        context: Tokens of context. A conversation that is longer has its longest messages shortened in the middle, with a warning.
        temperature: 0 makes replies repeatable.
        seed: For the sampler.
        max_tokens: The longest reply.
        examples: Whether the prompt shows a call of each tool first; small models need it.
        bounds: How much may be written where a tool's schema sets no bound.
    """

    def __init__(
        self,
        model: str | Path | None = None,
        *,
        context: int = 8192,
        temperature: float = 0.0,
        seed: int = 1,
        max_tokens: int = 512,
        examples: bool = True,
        bounds: Bounds | None = None,
    ) -> None:
        self._model = model
        self._context = context
        self._temperature = temperature
        self._seed = seed
        self._max_tokens = max_tokens
        self._examples = examples
        self._bounds = bounds or Bounds()

    @property
    def name(self) -> str:
        """The model, after "local:"."""
        chosen = str(self._model or os.environ.get(weights.MODEL_VARIABLE) or weights.DEFAULT)
        return f"local:{Path(chosen).stem if chosen not in weights.KNOWN else chosen}"

    @property
    def capabilities(self) -> Capabilities:
        """Any subset of the tools, by constrained decoding."""
        return _CAPABILITIES

    async def complete(self, request: ModelRequest) -> ModelReply:
        """One call of an allowed tool, or a text where the choice is "none" (or "auto", when the model prefers it).

        Raises OutputError, ContextOverflow, and `maymust.models.weights.WeightsError` when the model cannot be had.
        """
        return await asyncio.get_running_loop().run_in_executor(_WORKER, self._reply, request)

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelDelta | ModelReply]:
        """The reply in two pieces: a constrained reply is checked whole before any of it is passed on."""
        whole = await self.complete(request)
        if whole.text:
            yield TextDelta(whole.text)
        for index, made in enumerate(whole.calls):
            yield CallDelta(index, made.call_id, made.name, made.raw_arguments)
        yield whole

    def _reply(self, request: ModelRequest) -> ModelReply:
        tools = _callable_tools(request)
        narrowed = {tool.name: tool for tool in request.narrowed}
        offered = [narrowed.get(tool.name, tool) for tool in tools]
        # With tools in the prompt, a text is constrained too: left alone, the model writes what looks like a call.
        schema = call_schema(offered, text=not offered or request.tool_choice == "auto", bounds=self._bounds) if request.tools else None
        spent, fault, output = Usage(), "", _Output("", False, Usage())
        for temperature, seed in ((self._temperature, self._seed), (max(self._temperature, _RETRY_TEMPERATURE), self._seed + 1)):
            output = self._sample(request, schema, temperature, seed)
            spent += output.usage
            if schema is None and output.text.strip():
                return ModelReply(text=output.text.strip(), usage=spent, enforced_by="provider", level=3)
            try:
                return replace(_as_reply(output, tools), usage=spent, level=1)
            except NotACall as problem:
                fault = str(problem) if output.whole else f"it was cut off after {self._max_tokens} tokens"
                _LOG.warning("%s: an output was not usable: %s", self.name, fault)
        raise OutputError(
            f"The model {self.name} gave no usable output in two attempts: {fault}. "
            "Shorten the tool's schema, raise max_tokens, or use a larger model.",
            output=output.text,
            usage=spent,
        )

    def _sample(self, request: ModelRequest, schema: dict[str, Any] | None, temperature: float, seed: int) -> _Output:
        """One sampling. A conversation that does not fit is shortened until it does."""
        runtime = _runtime()  # before weights are fetched for nothing
        server = _load(runtime, str(weights.locate(self._model)), self._context)
        messages: Sequence[Message] = request.messages
        while True:
            body: dict[str, Any] = {
                "prompt": chatml.render(messages, request.tools, examples=self._examples, call=schema is not None),
                "max_tokens": self._max_tokens,
                "temperature": temperature,
                "seed": seed,
                "cache_prompt": True,
                "stop": [chatml.STOP],
            }
            if schema is not None:
                # Without `lenient`, one keyword that the sampler does not know leaves the whole output unconstrained.
                body["json_schema"] = {**schema, "x-guidance": {"whitespace_flexible": False, "lenient": True}}
            answer = server.handle_completions(body)
            problem = answer.get("error") or (answer if "choices" not in answer else None)
            if problem is None:
                return _read(answer)
            if problem.get("type") != "exceed_context_size_error":
                raise RunError(f"The model {self.name} failed: {problem.get('message', problem)}")
            messages = self._shortened(messages, problem)

    def _shortened(self, messages: Sequence[Message], problem: dict[str, Any]) -> Sequence[Message]:
        index = max(range(len(messages)), key=lambda i: len(messages[i].text) if messages[i].role != "system" else 0)
        text = messages[index].text
        if len(text) < _SHORTEST or messages[index].role == "system":
            raise ContextOverflow(
                f"The conversation does not fit the {self._context} tokens of context of {self.name}: {problem.get('message')}. "
                "Give LocalModel a larger context, or the run fewer turns or shorter tool results."
            )
        keep = len(text) // 4
        _LOG.warning("%s: a message of %d characters does not fit the context and is shortened for the model", self.name, len(text))
        short = f"{text[:keep]}\n[... {len(text) - 2 * keep} characters left out ...]\n{text[-keep:]}"
        return [*messages[:index], replace(messages[index], text=short), *messages[index + 1 :]]


def _callable_tools(request: ModelRequest) -> list[ToolDefinition]:
    """The tools whose calls the constraint lets through."""
    if request.tool_choice == "none":
        return []
    names = request.allowed if request.tool_choice in ("auto", "required") else (request.tool_choice,)
    return [tool for tool in request.tools if tool.name in names]


def _as_reply(output: _Output, tools: Sequence[ToolDefinition]) -> ModelReply:
    name, content = read_call(output.text, tools)
    if not name:
        return ModelReply(text=content, enforced_by="provider")
    return ModelReply(calls=(ToolCall(f"call_{uuid.uuid4().hex[:12]}", name, content),), enforced_by="provider")


def _read(answer: dict[str, Any]) -> _Output:
    choice, usage = answer["choices"][0], answer.get("usage", {})
    cached = (usage.get("prompt_tokens_details") or {}).get("cached_tokens", 0)
    spent = Usage(usage.get("prompt_tokens", 0), usage.get("completion_tokens", 0), cached, 1)
    return _Output(choice["text"], choice.get("finish_reason") == "stop", spent)


# One thread for all models of the process: they share its cores, and a second turn at once would only slow down the first.
_WORKER = ThreadPoolExecutor(max_workers=1, thread_name_prefix="maymust-local")


@functools.cache
def _runtime() -> Any:
    """The library that runs models. Raises MissingExtra."""
    # Threads of OpenMP that spin while they wait make everything many times slower on a busy machine. Read when the library is loaded.
    if sys.modules.get("xllamacpp") is not None and "OMP_WAIT_POLICY" not in os.environ:
        _LOG.warning("xllamacpp was imported before: set OMP_WAIT_POLICY=PASSIVE for the process, or its threads spin while they wait")
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    os.environ.setdefault("GOMP_SPINCOUNT", "1000")
    try:
        return importlib.import_module("xllamacpp")
    except ImportError as problem:
        raise MissingExtra(f"this model needs the xllamacpp package: pip install 'maymust[local]' ({problem})") from problem


@functools.cache
def _load(xllamacpp: Any, path: str, context: int) -> Any:
    """The server object for a file, loaded once in a process: dropping one does not free its memory at once."""
    params = xllamacpp.CommonParams()
    params.model.path = path
    params.n_ctx = context
    params.n_parallel = 1
    params.cache_ram_mib = 256
    params.warmup = False
    params.verbosity = 0
    try:
        return xllamacpp.Server(params)
    except Exception as problem:
        raise RunError(f"llama.cpp cannot load {path}: {problem}. Is it a GGUF file of a text model?") from problem
