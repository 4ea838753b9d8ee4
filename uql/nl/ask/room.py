"""How many tokens a prompt may hold and a reply may have: from what the model declares, and what `Options.sizes` says instead."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from uql.base.errors import ConfigError

if TYPE_CHECKING:
    from uql.llm.providers.base import Capabilities

CONTEXT = 8_192  # tokens, of a model that states none
PROMPT = 16_000  # tokens of the tables and rows in a prompt, at most
MARGIN = 200  # tokens of the instruction
REPLIES = {"plan": 4_096, "mapping": 2_048, "debug": 2_048, "answer": 2_048, "refine": 1_024, "other": 1_024}  # at most
# whose replies are of another's size
TASKS = {"planner": "plan", "steps": "plan", "uql": "mapping", "aggregator": "answer"}
NAMES = ("context", "output", "prompt", "rows", *REPLIES)


@dataclass(frozen=True, slots=True)
class Room:
    """The sizes for one model, in tokens.

    Attributes:
        context: of a prompt with its reply.
        output: of a reply at most.
        sizes: what the user set, by the names in `NAMES`.
    """

    context: int = CONTEXT
    output: int = CONTEXT // 2
    sizes: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, can: Capabilities, sizes: Mapping[str, int]) -> Room:
        """The room of a model that declares these capabilities.

        >>> from uql.llm.providers.base import Capabilities
        >>> small, large = (Room.of(Capabilities(context=tokens), {}) for tokens in (4_096, 128_000))
        >>> small.reply("planner"), small.prompt, small.rows, large.reply("planner"), large.prompt, large.rows
        (1024, 2872, 20, 4096, 16000, 100)
        >>> Room.of(Capabilities(context=128_000, output=2_000), {"prompt": 3_000}).reply("planner")
        2000
        """
        context = sizes.get("context") or can.context or CONTEXT
        output = sizes.get("output") or can.output or context
        return cls(context, min(output, context // 2), sizes)

    def reply(self, task: str) -> int:
        """Tokens of a reply to a task."""
        name = TASKS.get(task, task if task in REPLIES else "other")
        return self.sizes.get(name) or min(REPLIES[name], self.output, self.context // 4)

    @property
    def prompt(self) -> int:
        """Tokens of the tables and rows in a prompt."""
        return self.sizes.get("prompt") or max(1_000, min(PROMPT, self.context - self.reply("plan") - MARGIN))

    @property
    def rows(self) -> int:
        """Rows of a result that a prompt shows."""
        return self.sizes.get("rows") or max(20, min(100, self.context // 200))


def checked(sizes: Mapping[str, int]) -> Mapping[str, int]:
    """The sizes that a user set. Raises ConfigError on a name or number that is not possible."""
    for name, size in sizes.items():
        if name not in NAMES or type(size) is not int or size < 1:
            raise ConfigError(
                f"sizes = {{{name!r}: {size!r}}} is not possible", help=f"tokens by {', '.join(NAMES)} (rows: rows)"
            )
    return sizes
