"""OpenTelemetry spans of the calls of a run, where opentelemetry is installed: `gate.subscribe(spans())`."""

from __future__ import annotations

from uql.errors import ConfigError
from uql.llm.events import Event, Listener


def spans(tracer_name: str = "uql") -> Listener:
    """A listener that makes one span of each call, by the semantic conventions for generative models. No row's text is in it.

    Raises: ConfigError where opentelemetry is not installed.
    """
    try:
        from opentelemetry import trace
    except ImportError as error:
        raise ConfigError(
            "spans need the package opentelemetry-api", code="UQL402", help="pip install opentelemetry-api"
        ) from error
    tracer = trace.get_tracer(tracer_name)

    def listen(event: Event) -> None:
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
