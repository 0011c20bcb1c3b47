"""A deployment whose tools note what they have done in the folder that its server runs in."""

from pathlib import Path

from palimpsest import Deployment
from tests.laws.shop import Shop

deployment = Deployment(tools=Shop(Path.cwd()).tools())
