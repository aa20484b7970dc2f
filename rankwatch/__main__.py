"""``python -m rankwatch``, and the console script."""

import os
import signal


def entry() -> None:
    """Run the command line; until a command runs, Ctrl-C ends the process at once, without a word.

    Raised while modules are read in, it would come out of them in any shape.
    """
    signal.signal(signal.SIGINT, lambda *_: os._exit(130))
    from rankwatch import cli

    cli.entry()


if __name__ == "__main__":
    entry()
