"""Asks a configured model for a word, as a child of `palimpsest doctor`; prints why it cannot answer, as JSON."""

import json
import logging
import os
import sys

from graphs.process.deployment import service_of_process
from graphs.process.model_failures import explain


def main() -> None:
    """Print an empty text if the model of this name answers, else one sentence; without a name, the one that chats."""
    logging.disable()
    sys.path.append(os.getcwd())  # as for the server, a deployment's module may be there
    why, name = "", sys.argv[1]
    try:
        service = service_of_process()
        name = name or service.settings.model
        answer = service.load_model(sys.argv[1], "chat").invoke("Answer with one word: ok")
        if not answer.text.strip():
            why = "it answers without content: let its server tell thoughts and answers apart, or turn thoughts off."
    except Exception as error:  # of any provider's package, or of the deployment's module
        why = str(error) if isinstance(error, ValueError) else str(explain(error, name))
    sys.stdout.write(json.dumps(why))


if __name__ == "__main__":
    main()
