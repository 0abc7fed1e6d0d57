#!/usr/bin/env python3
"""What `appulse-profile report` draws in a terminal: the page map and the fault curve.

usage: report_terminal.py MADE_TRACE PROFILE_TOOL EXPECTED_FILE

The terminal is a pseudo-terminal of a given width.  EXPECTED_FILE holds each drawing
below a line `== COLUMNS CHARSET`.
"""

import difflib
import fcntl
import os
import pathlib
import pty
import sqlite3
import struct
import subprocess
import sys
import tempfile
import termios

FUNCTIONS = 120
HOT = [*range(0, FUNCTIONS, 11), 5, 64, 31]
PAGE, SIZE = 4096, 64
BEGIN = '\npages of run '
LOCALES = {'UTF-8': 'C.UTF-8', 'ASCII': 'C'}

failed = []


def rva(i):
    """A function a page."""
    return (i + 1) * PAGE


def make_database(folder, made_trace, tool):
    """Scattered touches, and a relink that lays what they touch together."""
    path, trace = folder / 't.db', folder / 'one.aptrace'
    for name in 'app.dll', 'out.dll':
        subprocess.run([made_trace, 'image', path, name, f'{rva(0):x}:{SIZE}:f0'], check=True)
    subprocess.run([made_trace, 'trace', trace, 'app.dll', '10', '1', '100',
                    *(f'{rva(i):x}+{n}' for n, i in enumerate(HOT))], check=True)
    subprocess.run([tool, 'import', '--db', path, '--scenario', 'start', trace], check=True,
                   capture_output=True)
    database = sqlite3.connect(path)
    database.executemany("""INSERT INTO functions(image, rva, size, name, movable)
        SELECT id, ?, ?, ?, 1 FROM images WHERE name = 'app.dll'""",
                         [(rva(i), SIZE, f'f{i}') for i in range(1, FUNCTIONS)])
    database.execute("""INSERT INTO relinks
        SELECT 1, a.id, b.id, 'first-touch', NULL, 'exchange' FROM images a, images b
        WHERE a.name = 'app.dll' AND b.name = 'out.dll'""")
    database.executemany('INSERT INTO moves VALUES(1, ?, ?, ?)',
                         [(rva(f), PAGE + n * SIZE, SIZE) for n, f in enumerate(HOT)])
    database.commit()
    database.close()
    return path


def drawn(command, columns, **environment):
    """All that the command writes to a terminal of that width."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack('4H', 24, columns, 0, 0))
    bare = {key: value for key, value in os.environ.items()
            if key not in ('LC_ALL', 'LC_CTYPE', 'LANG', 'NO_COLOR', 'TERM')}
    child = subprocess.Popen(command, stdin=slave, stdout=slave,
                             env=bare | {'TERM': 'xterm-256color'} | environment)
    os.close(slave)
    text = b''
    while True:
        try:
            part = os.read(master, 65536)
        except OSError:  # the other end is closed (Linux: EIO)
            part = b''
        if not part:
            break
        text += part
    os.close(master)
    if child.wait() != 0:
        failed.append(f'{columns} columns: exit code {child.returncode}')
    return text.decode('utf-8').replace('\r\n', '\n')


def expected(path):
    text = path.read_text(encoding='utf-8')
    parts = (part.split('\n', 1) for part in text.split('== ')[1:])
    return dict(parts)


def check(what, found, wanted):
    if found != wanted:
        failed.append(what)
        print(f'not ok: {what}')
        print('\n'.join(difflib.unified_diff(wanted.split('\n'), found.split('\n'), 'expected',
                                             'found', lineterm='')))


def main(made_trace, tool, golden):
    cases = expected(pathlib.Path(golden))
    if len(cases) < 3:
        failed.append('fewer drawings than there were')
    with tempfile.TemporaryDirectory() as name:
        command = [tool, 'report', '--db',
                   make_database(pathlib.Path(name), made_trace, tool), '--image', 'app.dll']
        for case, wanted in cases.items():
            columns, charset = case.split()
            locale = {'LC_ALL': LOCALES[charset]}
            text = drawn(command, int(columns), **locale)
            check(case, BEGIN + text.partition(BEGIN)[2], '\n' + wanted)
            check(f'{case}: escape sequences', text.replace('\x1b', ''), text)
            check(f'{case}: without colours', drawn(command, int(columns), NO_COLOR='1', **locale),
                  text)
            piped = subprocess.run(command, check=True, capture_output=True, text=True).stdout
            check(f'{case}: what stands above it', text.partition(BEGIN)[0], piped)
            check(f'{case}: a dumb terminal', drawn(command, int(columns), TERM='dumb', **locale),
                  piped)
    return 1 if failed else 0


sys.exit(main(*sys.argv[1:]))
