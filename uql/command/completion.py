"""`uql completion bash|zsh|fish`: a script that completes commands, options and settings, for the shell to read at its start."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Annotated

import typer

from uql.command import COMMANDS
from uql.command.outcome import UsageError, command, new_app

app = new_app()

_BASH = """# uql completion bash > ~/.local/share/bash-completion/completions/uql
_uql() {{
    local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}} first=${{COMP_WORDS[1]}}
    case $before in
        --set) COMPREPLY=($(compgen -W '{settings}' -S = -- "$word")); compopt -o nospace; return;;
        -f|--file|-o|--output|--ledger) COMPREPLY=($(compgen -f -- "$word")); return;;
    esac
    case $first in
{cases}
    esac
    if [[ $word == -* ]]; then
        COMPREPLY=($(compgen -W '{options}' -- "$word"))
    elif ((COMP_CWORD == 1)); then
        COMPREPLY=($(compgen -W '{commands}' -- "$word") $(compgen -f -- "$word"))
    fi
}}
complete -o filenames -F _uql uql
"""
_ZSH = """#compdef uql
# uql completion zsh > a folder of $fpath, as _uql
autoload -U +X bashcompinit && bashcompinit
{bash}"""


@command(app)
def completion(shell: Annotated[str, typer.Argument(help="bash, zsh or fish.")] = "bash") -> None:
    """Print a script of completions: uql completion bash > ~/.local/share/bash-completion/completions/uql"""
    if shell not in ("bash", "zsh", "fish"):
        raise UsageError(f"there is no completion for {shell!r}", help="choices: bash, zsh, fish")
    print(script(shell, COMMANDS), end="")


def script(shell: str, commands: Mapping[str, tuple[str, str]]) -> str:
    """The script for a shell. The options are read from the commands themselves."""
    from uql.base.settings import NAMES

    main, below = _words(commands)
    if shell == "fish":
        lines = ["# uql completion fish > ~/.config/fish/completions/uql.fish"]
        for name, (_, says) in commands.items():
            description = says.replace("'", "\\'")
            lines.append(f"complete -c uql -n __fish_use_subcommand -a {name} -d '{description}'")
        lines += [f"complete -c uql -n __fish_use_subcommand -l {o[2:]}" for o in main if o.startswith("--")]
        for name, words in below.items():
            lines.append(f"complete -c uql -n '__fish_seen_subcommand_from {name}' -a '{' '.join(words)}'")
        lines.append(f"complete -c uql -l set -x -a '{' '.join(f'{name}=' for name in sorted(NAMES))}'")
        return "\n".join(lines) + "\n"
    reply = 'COMPREPLY=($(compgen -W \'{}\' -- "$word") $([[ $word == -* ]] || compgen -f -- "$word")); return;;'
    cases = "\n".join(f"        {name}) {reply.format(' '.join(words))}" for name, words in below.items())
    bash = _BASH.format(
        settings=" ".join(sorted(NAMES)), cases=cases, options=" ".join(main), commands=" ".join(commands)
    )
    return bash if shell == "bash" else _ZSH.format(bash=bash)


def _words(commands: Mapping[str, tuple[str, str]]) -> tuple[list[str], dict[str, list[str]]]:
    """The options of the query command, and for each command its own commands and options."""
    from typer.main import get_command

    from uql.command import query

    def of(command: object) -> list[str]:
        names = sorted(getattr(command, "commands", {}))
        for parameter in getattr(command, "params", []):
            names += [o for o in getattr(parameter, "opts", []) if o.startswith("-")]
        return names

    words_by_command = {}
    for name, (module, _) in commands.items():
        top = get_command(import_module(module).app)
        below = getattr(top, "commands", {})
        words = of(top) + [word for command in below.values() for word in of(command)]
        words_by_command[name] = list(dict.fromkeys([*words, "--help"]))
    return [*of(get_command(query.app(commands))), "--help"], words_by_command
