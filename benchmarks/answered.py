"""A model whose answers are kept in a file: asked the same again, it answers from there. It counts what it costs."""

import json
from pathlib import Path
from typing import Any, Self

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda
from pydantic import PrivateAttr


class AnsweredModel(BaseChatModel):
    """Another model, whose answers to prompts with a schema are kept."""

    _model: BaseChatModel = PrivateAttr()
    _path: Path | None = PrivateAttr(None)
    _answers: dict[str, dict[str, Any]] = PrivateAttr(default_factory=dict)
    _costs: list[tuple[int, int, int]] = PrivateAttr(default_factory=list)

    @classmethod
    def of(cls, model: BaseChatModel, path: Path | None) -> Self:
        """Return the model with the answers of a file, which need not exist; without a path none are kept."""
        answered = cls()
        answered._model, answered._path = model, path
        answered._answers = json.loads(path.read_text()) if path and path.exists() else {}
        return answered

    @property
    def _llm_type(self) -> str:
        return "answered"

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=AIMessage(self._model.invoke(messages).text))])

    def with_structured_output(self, schema: Any, **kwargs: Any) -> Runnable[Any, AIMessage]:
        structured = self._model.with_structured_output(schema, include_raw=True, **kwargs)

        def answer(prompt: list[BaseMessage], config: RunnableConfig) -> AIMessage:
            key = json.dumps([[(each.type, each.text) for each in prompt], schema])
            if key not in self._answers:
                raw = dict(structured.invoke(prompt, config))["raw"]
                usage = raw.usage_metadata or {}
                details = usage.get("input_token_details") or {}
                cost = (usage.get("input_tokens", 0), details.get("cache_read", 0), usage.get("output_tokens", 0))
                self._answers[key] = {"text": raw.text, "cost": cost}
                if self._path:
                    self._path.write_text(json.dumps(self._answers))
            self._costs.append(self._answers[key]["cost"])
            return AIMessage(self._answers[key]["text"])

        return RunnableLambda(answer)

    def told(self) -> str:
        """Return in one line what it was asked, and what that cost when it was."""
        calls = max(1, len(self._costs))
        read, cached, written = (
            (sum(each) / calls for each in zip(*self._costs, strict=True)) if self._costs else (0, 0, 0)
        )
        return (
            f"{len(self._costs)} calls; for each {read:.0f} tokens of prompt, of which the server had {cached:.0f}, "
            f"and {written:.0f} written"
        )
