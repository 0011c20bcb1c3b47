"""The `auth` object that the production `langgraph.json` names: who calls, and what the server lets them touch."""

from graphs.server.authenticate import load_authenticator
from graphs.server.permissions import make_auth
from graphs.settings import Settings

auth = make_auth(load_authenticator(Settings.from_environment().auth))
