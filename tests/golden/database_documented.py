#!/usr/bin/env python3
"""docs/database.md names every table, view and column of a database, and its label.

usage: database_documented.py SOURCE_FOLDER MADE_TRACE
"""

import pathlib
import re
import sqlite3
import subprocess
import sys
import tempfile


def section(text, name):
    """What the document says of a table or a view: up to the next one."""
    found = re.search(rf'(?:^\*\*{name}\*\*|^`{name}` has)(.*?)(?=^\*\*|^`v_|^## |\Z)', text,
                      re.M | re.S)
    return found.group(1) if found else ''


def faults(text, database):
    for pragma in 'application_id', 'user_version':
        value = database.execute(f'PRAGMA {pragma}').fetchone()[0]
        if not re.search(rf'`PRAGMA {pragma}`[^.]*\b{value}\b', text):
            yield f'{pragma} {value} is not in the text'
    objects = database.execute("SELECT name FROM sqlite_master WHERE type IN ('table', 'view')"
                               " AND name NOT LIKE 'sqlite_%'")
    for (name,) in objects.fetchall():
        said = set(re.findall(r'`(\w+)`', section(text, name)))
        for row in database.execute(f'PRAGMA table_info({name})'):
            if row[1] not in said and row[1] != name:
                yield f'{name}.{row[1]} is not described'


def main(source, made_trace):
    text = (pathlib.Path(source) / 'docs' / 'database.md').read_text(encoding='utf-8')
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / 't.db'
        subprocess.run([made_trace, 'image', path, 'app.dll', '1000:16:f'], check=True)
        database = sqlite3.connect(path)
        found = list(faults(text, database))
        database.close()
    print('\n'.join(found))
    return 1 if found else 0


sys.exit(main(*sys.argv[1:]))
