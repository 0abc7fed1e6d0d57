#!/usr/bin/env python3
"""Runs the tools and compares what they say with what is written down.

usage: run.py [--update] FILE.txt...

A file is a session in a terminal, run from top to bottom in a fresh folder:

    # Anything may be said in a comment.
    $ appulse-reorder missing.dll
    ! appulse-reorder: cannot open 'missing.dll': No such file or directory
    ? 1

`$` is a command for sh, continued by lines with `+`; `>` is what it wrote on
stdout, `!` on stderr, `?` its exit code when that is not 0.  A last line that
does not end in a newline is followed by a line `%`.

What changes from run to run is replaced before comparing: the fresh folder by
<FOLDER>, the source and build folders by <SOURCE> and <BUILD>, durations in
JSON by <SECONDS>; a file may name more:

    # replace: [0-9]+ ms => <TIME>

--update writes down what the tools said.  Read the difference before you
commit it.  The build folder is taken from APPULSE_BUILD; the tools' folders in it
are put on the PATH.
"""

import difflib
import os
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
SOURCE = HERE.parent.parent
TOOL_FOLDERS = ['instrument', 'profile', 'reorder', 'tests/golden']
TIMEOUT_SECONDS = 120


def environment(folder, build):
    """Few variables, so that a case means the same everywhere."""
    path = [str(build / name) for name in TOOL_FOLDERS] + [os.environ['PATH']]
    return {
        'PATH': os.pathsep.join(path),
        'HOME': str(folder),
        'TMPDIR': str(folder),
        'LC_ALL': 'C.UTF-8',
        'TZ': 'UTC',
        'GOLDEN': str(HERE),
        'APPULSE_BUILD': str(build),
    }


def replacements(lines, folder, build):
    """Pairs of a pattern and its placeholder, the file's own ones last."""
    pairs = [
        (re.escape(str(folder)), '<FOLDER>'),
        (re.escape(str(build)), '<BUILD>'),
        (re.escape(str(SOURCE)), '<SOURCE>'),
        (r'"seconds": [0-9.e-]+', '"seconds": <SECONDS>'),
    ]
    for line in lines:
        found = re.match(r'# replace: (.*) => (.*)$', line)
        if found:
            pairs.append(found.groups())
    return pairs


def quote(mark, text):
    """The lines of one stream, marked."""
    if not text:
        return []
    *lines, last = text.split('\n')
    marked = [f'{mark} {line}' if line else mark for line in lines]
    return marked + [f'{mark} {last}', '%'] if last else marked


def run_command(command, folder, build, pairs):
    """What a session shows below the command."""
    try:
        done = subprocess.run(['sh', '-c', command], cwd=folder, stdin=subprocess.DEVNULL,
                              env=environment(folder, build), capture_output=True,
                              timeout=TIMEOUT_SECONDS)
    except subprocess.TimeoutExpired:
        return [f'? no end after {TIMEOUT_SECONDS} seconds']
    shown = []
    for mark, stream in (('>', done.stdout), ('!', done.stderr)):
        text = stream.decode('utf-8', 'backslashreplace')
        for pattern, placeholder in pairs:
            text = re.sub(pattern, placeholder, text)
        shown += quote(mark, text)
    if done.returncode:
        shown.append(f'? {done.returncode}')
    return shown


def is_output(line):
    return line[:1] in ('>', '!', '?') or line == '%'


def run_file(path, build):
    """The file's lines as they stand and as they should."""
    # Bytes as they are: what a tool says may have carriage returns.
    old = path.read_bytes().decode('utf-8').split('\n')
    new = []
    with tempfile.TemporaryDirectory(prefix='golden-') as name:
        folder = pathlib.Path(name).resolve()
        pairs = replacements(old, folder, build)
        at = 0
        while at < len(old):
            line = old[at]
            at += 1
            new.append(line)
            if not line.startswith('$ '):
                if is_output(line) or line.startswith('+'):
                    sys.exit(f'{path}:{at}: stands below no command')
                continue
            command = [line[2:]]
            while at < len(old) and old[at].startswith('+'):
                command.append(old[at][2:])
                new.append(old[at])
                at += 1
            while at < len(old) and is_output(old[at]):
                at += 1
            new += run_command('\n'.join(command), folder, build, pairs)
    return old, new


def main(arguments):
    update = '--update' in arguments
    paths = [pathlib.Path(a) for a in arguments if a != '--update']
    if 'APPULSE_BUILD' not in os.environ or not paths:
        sys.exit('usage: APPULSE_BUILD=FOLDER run.py [--update] FILE.txt...')
    build = pathlib.Path(os.environ['APPULSE_BUILD']).resolve()
    failed = False
    for path in paths:
        old, new = run_file(path, build)
        if old == new:
            continue
        if update:
            path.write_bytes('\n'.join(new).encode('utf-8'))
            print(f'{path}: updated')
        else:
            failed = True
            print('\n'.join(difflib.unified_diff(old, new, f'{path} (expected)',
                                                 f'{path} (found)', lineterm='')))
    return 1 if failed else 0


sys.exit(main(sys.argv[1:]))
