"""The command `scalingbook completion`, which prints a shell's completion script."""

import click
from click.shell_completion import get_completion_class

SHELLS = ("bash", "zsh", "fish")


@click.command("completion", short_help="A script that completes names in your shell.")
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def command(ctx: click.Context, shell: str) -> None:
    """Print a script with which your shell completes commands, chips and models.

    \b
    bash: eval "$(scalingbook completion bash)"          in ~/.bashrc
    zsh:  eval "$(scalingbook completion zsh)"           in ~/.zshrc
    fish: scalingbook completion fish | source           in ~/.config/fish/config.fish
    """
    of_shell = get_completion_class(shell)
    assert of_shell
    click.echo(of_shell(ctx.find_root().command, {}, "scalingbook", "_SCALINGBOOK_COMPLETE").source())
