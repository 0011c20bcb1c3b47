"""The HTTP app that the server mounts: its lifespan drains memory at start, sweeps while it runs, drains at stop."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator

from langgraph_sdk import get_client
from starlette.applications import Starlette

logger = logging.getLogger(__name__)
