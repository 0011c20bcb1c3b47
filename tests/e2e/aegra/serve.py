"""Serve this project with Aegra, as its documentation says: a configuration, a Postgres, and one ASGI app."""

import argparse
import os

import uvicorn


def main() -> None:
    """Read what to serve, and where."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--config", required=True)
    parser.add_argument("--host", required=True)
    parser.add_argument("--port", required=True, type=int)
    told = parser.parse_args()
    os.environ["AEGRA_CONFIG"] = told.config  # noqa: TID251 - Aegra reads it when it is imported
    uvicorn.run("aegra_api.main:app", host=told.host, port=told.port)


if __name__ == "__main__":
    main()
