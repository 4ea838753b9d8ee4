"""An option that takes one value is given once: the second would otherwise put away the first without a word."""

from __future__ import annotations

from typing import Any

from typer.core import TyperCommand, TyperOption


class OptionsOnce(TyperCommand):
    """A command that refuses an option with one value that is given twice."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args:
            _, _, given = self.make_parser(ctx).parse_args(args=list(args))
            for option in given:
                single = isinstance(option, TyperOption) and not (option.multiple or option.is_flag)
                if single and given.count(option) > 1:
                    ctx.fail(f"{' / '.join(option.opts)} is given twice: give it once")
        return super().parse_args(ctx, args)
