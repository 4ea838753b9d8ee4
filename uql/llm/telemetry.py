"""OpenTelemetry spans of the calls of queries, where opentelemetry is installed: `con.on_event(spans())`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from uql.base.errors import ConfigError
from uql.base.extras import install
from uql.llm.events import Event


def spans() -> Callable[[Any], None]:
    """A listener that makes one span of each call, answer of the ledger and row given up, by the semantic conventions for
    generative models. No row's text is in it. Other events of a connection are passed over.

    Raises: ConfigError where opentelemetry is not installed.
    """
    try:
        from opentelemetry import trace
    except ImportError as error:
        raise ConfigError("spans need the package opentelemetry-api", code="UQL402", help=install("otel")) from error
    tracer = trace.get_tracer("uql")

    def listen(event: Any) -> None:
        if not isinstance(event, Event):
            return
        end = int(event.at * 1e9)
        span = tracer.start_span(f"uql {event.kind}", start_time=end - int(event.seconds * 1e9))
        span.set_attribute("gen_ai.request.model", event.model)
        span.set_attribute("gen_ai.usage.input_tokens", event.input_tokens)
        span.set_attribute("gen_ai.usage.output_tokens", event.output_tokens)
        span.set_attribute("uql.run", event.run)
        span.set_attribute("uql.question", event.question)
        span.set_attribute("uql.attempt", event.attempt)
        if event.error:
            span.set_attribute("error.type", event.error)
            span.set_status(trace.StatusCode.ERROR, event.error)
        span.end(end_time=end)

    return listen
