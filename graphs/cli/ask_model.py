"""Asks the configured model for a word, as a child of `palimpsest doctor`; prints why it cannot answer, as JSON.

With `--only-load` nothing is sent: only the provider, its package and its key are looked for.
"""

import json
import logging
import sys

from graphs.deployment import service_of_process
from graphs.model_failures import explain


def main() -> None:
    """Print an empty text if the model answers, or can be asked, else one sentence."""
    logging.disable()
    why = ""
    name = ""
    try:
        service = service_of_process()
        name = service.settings.model
        model = service.load_model("", "chat")
        if "--only-load" not in sys.argv[1:]:
            model.invoke("Answer with one word: ok")
    except Exception as error:  # of any provider's package, or of the deployment's module
        why = str(error) if isinstance(error, ValueError) else str(explain(error, name))
    sys.stdout.write(json.dumps(why))


if __name__ == "__main__":
    main()
