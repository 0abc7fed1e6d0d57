#!/usr/bin/env python3
"""Each query of docs/queries.md answers what its heading asks, on a small database.

usage: queries_documented.py SOURCE_FOLDER MADE_TRACE PROFILE_TOOL
"""

import json
import pathlib
import re
import sqlite3
import subprocess
import sys
import tempfile

# What each query must say; times are in milliseconds.
EXPECTED = {
    1: [[100.0, 101, '0x5000', 'delta', 16], [100.2, 101, '0x1000', 'alpha', 4000],
        [100.5, 102, '0x2000', 'beta', 96]],
    2: [['app.dll', '0x6000', 'unused', 5000], ['app.dll', '0x3000', 'gamma', 4097]],
    3: [['app.dll', 1, 4000]],
    4: [['app.dll', 'print', 1, 64], ['app.dll', 'start', 2, 112]],
    5: [['app.dll', 'print', 'start', 1]],
    6: [['0x4000', 'epsilon', 64]],
    7: [['app.dll', '0x5000', 1, 16], ['app.dll', '0x4000', 1, 64], ['app.dll', '0x2000', 1, 96],
        ['app.dll', '0x1000', 1, 4000]],
    8: [['app.dll', 'hidden-reference', 1, 16, 1]],
    9: [[2, 20, 101, 7.0, '0x4000', 'epsilon'], [1, 10, 101, 0.2, '0x1000', 'alpha']],
    10: [[1, 'first-touch', 'start', 3, 2]],
    11: [[1, '0x2000', '0x1000', 96, 'beta'], [1, '0x1000', '0x1060', 4000, 'alpha']],
}


def queries(text):
    """The indented text below each numbered heading, by number."""
    for number, body in re.findall(r'^## (\d+)\. .*\n((?:(?!## ).*\n)*)', text, re.M):
        lines = [line[4:] for line in body.split('\n') if line.startswith('    ')]
        yield int(number), '\n'.join(lines)


def make_database(folder, made_trace):
    path = folder / 't.db'

    def made(*words):
        subprocess.run([made_trace, *map(str, words)], check=True)

    made('image', path, 'app.dll', '1000:4000:alpha', '2000:96:beta', '3000:4097:gamma',
         '4000:64:epsilon', '5000:16:delta:hidden-reference', '6000:5000:unused')
    made('trace', folder / 'one.aptrace', 'app.dll', 10, 1, 100, '5000', '1000+200',
         '2000/102+500')
    made('trace', folder / 'two.aptrace', 'app.dll', 20, 1, 200, '1000', '4000+7000')
    made('pages', path, 'app.dll', 'start', '1000', '2000', '5000')
    made('pages', path, 'out.dll', 'start', '1000', '5000')
    return path


def add_relink(path):
    """What appulse-reorder would note."""
    database = sqlite3.connect(path)
    database.executescript("""
        INSERT INTO relinks SELECT 1, a.id, b.id, 'first-touch', NULL, 'exchange'
          FROM images a, images b WHERE a.name = 'app.dll' AND b.name = 'out.dll';
        INSERT INTO moves VALUES (1, 8192, 4096, 96), (1, 4096, 4192, 4000);""")
    database.close()


def main(source, made_trace, tool):
    text = (pathlib.Path(source) / 'docs' / 'queries.md').read_text(encoding='utf-8')
    found = dict(queries(text))
    wrong = 0
    if found.keys() != EXPECTED.keys() or len(found) < 10:
        print(f'queries {sorted(found)} stand in the text, expected {sorted(EXPECTED)}')
        return 1
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        path = make_database(folder, made_trace)
        for scenario, trace in ('start', 'one'), ('print', 'two'):
            subprocess.run([tool, 'import', '--db', path, '--scenario', scenario,
                            folder / f'{trace}.aptrace'], check=True, capture_output=True)
        # Page runs of the two images came first: the runs of traces are 1 and 2 of their own.
        database = sqlite3.connect(path)
        database.executescript('PRAGMA foreign_keys = OFF; UPDATE runs SET id = id + 100;'
                               'UPDATE processes SET run = run + 100;')
        traces = database.execute("SELECT id FROM runs WHERE kind = 'trace' ORDER BY started_ns")
        for number, (run,) in enumerate(traces.fetchall(), 1):
            database.execute('UPDATE runs SET id = ? WHERE id = ?', (number, run))
            database.execute('UPDATE processes SET run = ? WHERE run = ?', (number, run))
        database.commit()
        database.close()
        add_relink(path)
        for number, sql in found.items():
            done = subprocess.run([tool, 'query', '--db', path, '--json', sql],
                                  capture_output=True, check=False)
            answer = json.loads(done.stdout)
            if answer['status'] != 'ok' or answer['rows'] != EXPECTED[number]:
                wrong += 1
                print(f'query {number}: {answer.get("error") or answer["rows"]}, '
                      f'expected {EXPECTED[number]}')
    return 1 if wrong else 0


sys.exit(main(*sys.argv[1:]))
