"""Exports that are in memory as a whole, taken in as the server takes them in piece by piece."""

from collections.abc import Mapping

from memory.archive.importing import Imported, Importer
from memory.config import MemoryConfig
from memory.door import StoreEffects
from memory.namespaces import Owner
from tests.archive_lines import lines_of


def import_document(
    owner: Owner, document: Mapping[str, object], config: MemoryConfig, seconds: float
) -> StoreEffects[Imported]:
    """Take in a document, and raise what `Importer` raises."""
    importer = Importer(owner, config, seconds)
    for line in lines_of(document).encode().splitlines():
        importer.take(line)
        if importer.has_much:
            yield from importer.write()
    return (yield from importer.finish())
