"""Saves catalogs as Weblate does, by its library, after it has set one text.

usage: python3 translate_toolkit.py MESSAGE TEXT FILE...
"""

import sys

from translate.storage.jsonl10n import GoTextJsonFile

message, text, *files = sys.argv[1:]
for file in files:
    store = GoTextJsonFile.parsefile(file)
    for unit in store.units:
        if unit.getid() == message:
            unit.target = text
    store.savefile(file)
