"""A used-up budget on a real server: what the user sees, what a scrape says, and that it goes on another day."""

from datetime import UTC, datetime
from pathlib import Path

from tests.e2e.backfilling import started
from tests.e2e.dev_server import DevServer
from tests.e2e.scripted import Scripted, is_extraction
from tests.e2e.speaking import speak_python
from tests.e2e.test_kept_no_longer import LATER, ask, contents
from tests.e2e.test_metrics_scrape import scrape, value
from tests.e2e.waiting import eventually
from tests.stub_model import StubModel

LEARNS = {"moved to Bergen": "User lives in Bergen.", "green tent": "User has a green tent."}


def zone_of_noon() -> str:
    """Return a time zone in which it is about noon: a budget's day does not end in the middle of a test."""
    east = 12 - datetime.now(UTC).hour
    return f"Etc/GMT{-east:+d}"  # its signs are those of POSIX, where west is positive


def test_a_used_up_budget_is_told_counted_and_loses_nothing(tmp_path: Path, model: StubModel) -> None:
    model.respond = Scripted(learns=LEARNS)
    variables = {
        "OPENAI_BASE_URL": model.url,
        "OPENAI_API_KEY": "stub",
        "PALIMPSEST_DEBOUNCE_SECONDS": "0.5",
        "PALIMPSEST_BUDGET_CALLS": "1",
        "PALIMPSEST_TIME_ZONE": zone_of_noon(),
    }
    server = DevServer(tmp_path, environment=variables)
    with server:
        speak_python(server, "I moved to Bergen.")
        assert eventually(lambda: contents(server) == ["User lives in Bergen."], timeout=60)
        budget = ask(server, "/overview")["budget"]
        assert (budget["calls"], budget["max_calls"], budget["used_up"]) == (1, 1, True)
        said = started(server, "chat", "And I have a green tent.")
        _, aside = said.communicate(timeout=300)
        assert said.returncode == 0, "the turn goes on"
        assert "memory's budget of the day is used up: read from" in aside
        refused = eventually(lambda: value(scrape(server), "budget_refusals_total", purpose="extraction"), timeout=60)
        assert refused
        scraped = scrape(server)
        asked = sum(map(is_extraction, model.requests))
        assert value(scraped, "model_calls_total", purpose="extraction", outcome="answered") == asked == 1
        assert value(scraped, "turns_total", written="queued") == 2
        (waiting,) = ask(server, "/updates")["updates"]
        assert (waiting["state"], waiting["attempts"]) == ("pending", 0)
        assert contents(server) == ["User lives in Bergen."]
    server.environment = {**variables, "PALIMPSEST_DEPLOYMENT": LATER}
    with server:
        assert eventually(lambda: len(contents(server)) == 2, timeout=90)
        assert contents(server) == ["User has a green tent.", "User lives in Bergen."]
        # An entry goes after its facts and its line.
        assert eventually(lambda: ask(server, "/updates") == {"updates": []})
