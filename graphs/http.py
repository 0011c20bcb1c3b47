"""The HTTP app that the server mounts. A server imports it first, and most of its other modules with it."""

from graphs.server.lasting import lasting

with lasting():
    from graphs.deployment import service_of_process
    from graphs.server.app import make_app

    app = make_app(service_of_process().settings)
