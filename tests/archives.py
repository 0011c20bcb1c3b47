"""Documents that are in memory as a whole, taken in as the server takes them in piece by piece."""

from collections.abc import Mapping

from memory.archive.importing import Imported, Importer
from memory.archive.json_parts import JsonPart
from memory.config import MemoryConfig
from memory.effects import StoreEffects
from memory.namespaces import Owner

_SCALARS = ("schema", "version", "exported_at", "agent")


def import_document(
    owner: Owner, document: Mapping[str, object], config: MemoryConfig, seconds: float
) -> StoreEffects[Imported]:
    """Take in a document, and raise what `Importer` raises."""
    importer = Importer(owner, config, seconds)
    for name in sorted(document, key=lambda name: name not in _SCALARS):
        value = document[name]
        parts = list(enumerate(value)) if isinstance(value, list) and value else [(None, value)]
        for place, each in parts:
            importer.take(JsonPart(name, place, each))
            if importer.has_much:
                yield from importer.write()
    return (yield from importer.finish())
