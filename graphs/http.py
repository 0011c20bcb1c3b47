"""The HTTP app that the server mounts. A server imports it first, and most of its other modules with it."""

import gc

from starlette.applications import Starlette


def _app() -> Starlette:
    """Make the app, and keep the garbage collector from what is made meanwhile: it stays as long as the process.

    While a server imports its modules, the collector looks through all of them again and again, and finds hardly
    anything: an eighth of the CPU of a start.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        from graphs.process.deployment import service_of_process
        from graphs.server.app import make_app

        return make_app(service_of_process().settings)
    finally:
        gc.freeze()
        if was_enabled:
            gc.enable()


app = _app()
