#!/usr/bin/env python3
"""Checks that no file includes what its layer may not know.

usage: layers.py SOURCE

Each layer of common/ may include only itself and those before it; the tools may
include all of common/ and nothing of each other; each foreign library is known
to the files named here and to no other.
"""

import fnmatch
import pathlib
import re
import sys

LAYERS = ['base', 'pe', 'symbols', 'decode', 'graph', 'layout', 'trace', 'cli']
TOOLS = ['instrument', 'profile', 'reorder']

# Foreign header, and who may include it.  The database is several files behind
# one interface, db.h, which shows nothing of SQLite.
FOREIGN = [
    ('LIEF/*', ['common/pe/lief.c']),
    ('Zydis/*', ['common/decode/*']),
    ('sqlite3.h', ['common/trace/db.c', 'common/trace/db_*']),
    ('sha2.h', ['common/base/sha256.c']),
    ('jansson.h', ['common/cli/*', 'common/layout/map_file.c', 'instrument/*', 'profile/*',
                   'reorder/*']),
]

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*["<]([^">]+)[">]', re.M)


def fault(path, included):
    """Why `path` may not include `included`, or None."""
    for pattern, allowed in FOREIGN:
        if fnmatch.fnmatch(included, pattern):
            if not any(fnmatch.fnmatch(path, a) for a in allowed):
                return 'only for ' + ', '.join(allowed)
    place = path.split('/')
    target = included.split('/')[0]
    if '/' not in included:
        return None
    if place[0] == 'common':
        if target in LAYERS and LAYERS.index(target) > LAYERS.index(place[1]):
            return f'layer {place[1]} stands below {target}'
        if target in TOOLS:
            return 'the library may not know the tools'
    if place[0] in TOOLS and target in TOOLS and target != place[0]:
        return f'{place[0]} may not know {target}'
    return None


def main(source):
    source = pathlib.Path(source)
    folders = [source / 'common' / layer for layer in LAYERS] + [source / t for t in TOOLS]
    files = sorted(f for folder in folders for f in folder.rglob('*.[chS]'))
    faults = 0
    unknown = {f.parent.name for f in (source / 'common').rglob('*.[ch]')} - set(LAYERS)
    for name in sorted(unknown):
        print(f'common/{name} is no layer')
        faults += 1
    for file in files:
        path = file.relative_to(source).as_posix()
        for included in INCLUDE.findall(file.read_text()):
            why = fault(path, included)
            if why:
                faults += 1
                print(f"{path} includes '{included}': {why}")
    print(f'{len(files)} files, {faults} faults')
    return 1 if faults or not files else 0


sys.exit(main(*sys.argv[1:]))
