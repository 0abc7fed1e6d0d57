#!/usr/bin/env python3
"""appulse-profile pages and breakpoints, against a program that says what it touches.

usage: page_runs.py PROFILE FIXTURES

PROFILE is appulse-profile, FIXTURES the folder of the built fixtures.  page_walker
prints the RVA of each function of page_steps.dll in the order of its first call;
each has a page of its own.  What the tool stores must be just that.
"""
import contextlib
import json
import os
import pathlib
import shutil
import signal
import sqlite3
import struct
import subprocess
import sys
import tempfile
import time
import unittest

PROFILE = os.path.realpath(sys.argv[1])
FIXTURES = pathlib.Path(sys.argv[2])
DEBUGGER = pathlib.Path(PROFILE).parent / 'debugger' / 'appulse-debugger.exe'
DLL, EXE = 'page_steps.dll', 'page_walker.exe'
SECONDS = 120
# Programs that throw through many frames, in folders of the fixtures.
EXCEPTIONS = [('cxx_exceptions', 'cxx_exceptions/gcc-O2'), ('seh', 'seh/clang-O2')]
DOUBTS = ('unknown-bytes', 'undecoded', 'overlapping-code', 'read-as-data',
          'position-indexed', 'user')


def setUpModule():
    global PREFIX, ENVIRONMENT
    PREFIX = tempfile.mkdtemp(prefix='appulse-wine-')
    ENVIRONMENT = dict(os.environ, WINEPREFIX=PREFIX, WINEDEBUG='-all',
                       WINEDLLOVERRIDES='mscoree,mshtml=')
    ENVIRONMENT.pop('DISPLAY', None)
    subprocess.run(['wineboot', '-i'], env=ENVIRONMENT, check=True, timeout=SECONDS,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def tearDownModule():
    end_server()
    shutil.rmtree(PREFIX, ignore_errors=True)


def end_server():
    subprocess.run(['wineserver', '-k'], env=ENVIRONMENT, timeout=SECONDS)
    subprocess.run(['wineserver', '-w'], env=ENVIRONMENT, timeout=SECONDS)


def steps(output):
    """The RVAs of a walker's output, each once, in order."""
    rvas = [int(line.split()[2], 16) for line in output.splitlines()
            if line.startswith('step ')]
    return list(dict.fromkeys(rvas))


def children(pid):
    with open(f'/proc/{pid}/task/{pid}/children') as f:
        return [int(word) for word in f.read().split()]


def explorer_runs():
    """Whether Wine's desktop process runs in our prefix."""
    for folder in pathlib.Path('/proc').glob('[0-9]*'):
        try:
            if b'explorer.exe' in (folder / 'cmdline').read_bytes() and \
                    PREFIX.encode() in (folder / 'environ').read_bytes():
                return True
        except OSError:
            pass
    return False


class Case(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix='appulse pages '))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.temporary = self.folder / 'tmp'
        self.temporary.mkdir()
        for name in (DLL, EXE):
            shutil.copy(FIXTURES / name, self.folder / name)
        self.environment = dict(ENVIRONMENT, TMPDIR=str(self.temporary))

    def stage(self, fixture):
        """Lays the files of a fixture beside the others."""
        for path in fixture.iterdir():
            shutil.copy(path, self.folder / path.name)

    def run_words(self, words, **more):
        return subprocess.run([str(word) for word in words], cwd=self.folder, text=True,
                              env=self.environment, timeout=SECONDS,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, **more)

    def plain(self, *words):
        return self.run_words(['wine', EXE, *words])

    def profile(self, mode, *words, program=EXE, image=DLL, options=(), **more):
        """A run of the tool; its program's output comes in `stdout`."""
        got = self.run_words([PROFILE, mode, '--db', 't.db', '--image', image, *options,
                              '--', 'wine', program, *words], **more)
        left = [name for name in os.listdir(self.temporary) if 'appulse' in name]
        self.assertEqual(left, [], 'temporary files are left')
        return got

    def profile_json(self, mode, *words, **more):
        got = self.profile(mode, *words, options=['--json'], **more)
        return json.loads(got.stdout), got.stderr

    def query(self, sql, *values):
        with contextlib.closing(sqlite3.connect(self.folder / 't.db')) as db, db:
            db.execute('PRAGMA foreign_keys = ON')
            return db.execute(sql, values).fetchall()

    def pages(self, column='page'):
        return [row[0] for row in self.query(
            f'SELECT {column} FROM page_touches ORDER BY seq')]

    def starts(self):
        return [row[0] for row in self.query(
            'SELECT rva FROM touches ORDER BY seq')]


class Pages(Case):
    def test_the_pages_in_order(self):
        got = self.profile('pages', 'walk', 40, 12, 49, 10, 40, 12)
        expected = steps(self.plain('walk', 40, 12, 49, 10, 40, 12).stdout)
        self.assertEqual(got.returncode, 0, got.stderr)
        self.assertEqual(len(expected), 5)
        self.assertEqual(self.pages(), expected)
        self.assertEqual(set(self.pages('kind')), {'execute'})
        self.assertEqual(self.query('SELECT kind, exit, exit_code FROM runs'),
                         [('pages', 'exited', 0)])
        times = self.pages('time_ns')
        self.assertEqual(times, sorted(times))
        self.assertGreater(times[0], 0)
        self.assertIn('page_steps.dll', got.stdout)

    def test_counts_of_the_json(self):
        got, _ = self.profile_json('pages', 'walk', 30)
        with open(self.folder / DLL, 'rb') as f:
            size = text_pages(f.read())
        self.assertEqual(got['command_exit']['code'], 0)
        self.assertTrue(got['complete'])
        [image] = got['images']
        self.assertEqual((image['code_pages'], image['guarded_pages']), (size, size))
        self.assertEqual((image['touched_pages'], image['executed_pages']), (2, 2))
        self.assertEqual((image['processes'], image['loads']), (1, 1))

    def test_two_threads_race_to_each_page(self):
        expected = steps(self.plain('race').stdout)
        self.assertEqual(len(expected), 41)
        for _ in range(3):
            got = self.profile('pages', 'race')
            self.assertEqual(got.returncode, 0, got.stderr)
            self.assertEqual(self.pages(), expected)
            self.query('DELETE FROM runs')

    def test_a_child_is_followed(self):
        got, output = self.profile_json('pages', 'child', 20, 11)
        self.assertEqual(self.pages(), steps(output))
        self.assertEqual(got['processes'], 2)
        self.assertEqual(self.query('SELECT count(DISTINCT process) FROM page_touches'),
                         [(1,)])

    def test_an_image_that_is_loaded_again(self):
        got, output = self.profile_json('pages', 'reload')
        self.assertEqual(got['images'][0]['loads'], 2)
        self.assertEqual(len(steps(output)), 4)
        self.assertEqual(self.pages(), steps(output))

    def test_reading_code_is_told_from_running_it(self):
        self.profile('pages', 'data')
        self.assertEqual(self.pages('kind'), ['execute', 'read'])

    def test_the_program_s_own_exceptions_are_its_own(self):
        plain = self.plain('faults')
        got, output = self.profile_json('pages', 'faults')
        self.assertEqual(plain.stdout.count('exception'), 6)
        self.assertEqual(output.split('appulse')[0], plain.stdout)
        self.assertEqual(got['exit_code'], 0)

    def test_exceptions_of_many_kinds(self):
        for name, folder in EXCEPTIONS:
            self.stage(FIXTURES / folder)
            plain = self.run_words(['wine', name + '.exe'])
            got, output = self.profile_json('pages', program=name + '.exe',
                                            image=name + '.dll')
            self.assertGreater(plain.stdout.count('\n'), 3)
            self.assertEqual(output.split('appulse')[0], plain.stdout)
            self.assertEqual(got['command_exit']['code'], plain.returncode)

    def test_small_file_alignment(self):
        shutil.copy(FIXTURES / 'page_steps_512.dll', self.folder / DLL)
        got = self.profile('pages', 'walk', 33, 22)
        self.assertEqual(got.returncode, 0, got.stderr)
        self.assertEqual(self.pages(), steps(self.plain('walk', 33, 22).stdout))

    def test_the_standard_streams_are_the_program_s(self):
        text = 'first\nlast without end'
        got = self.run_words([PROFILE, 'pages', '--db', 't.db', '--image', EXE, '--quiet',
                              '--', 'wine', EXE, 'echo'], input=text)
        self.assertEqual(got.stdout.split('image ')[0].replace('\r', ''), text)
        self.assertIn('echoed', got.stderr)

    def test_the_command_line_is_the_program_s(self):
        words = ['arguments', 'a b', '', 'q"q', 'end\\', '--', '*.exe', '--json', '/x']
        plain = self.plain(*words)
        got = self.profile('pages', *words, image=EXE)
        self.assertEqual(got.stdout.split('image ')[0], plain.stdout)

    def test_the_program_by_many_names(self):
        (self.folder / 'sub dir').mkdir()
        shutil.move(self.folder / EXE, self.folder / 'sub dir' / EXE)
        shutil.copy(self.folder / DLL, self.folder / 'sub dir' / DLL)
        full = str(self.folder / 'sub dir' / EXE)
        for program in (full, 'sub dir/' + EXE, 'sub dir\\' + EXE,
                        'Z:' + full.replace('/', '\\')):
            got = self.profile('pages', 'walk', 10, program=program)
            self.assertEqual(got.returncode, 0, program + got.stderr)

    def test_exit_codes(self):
        for words, code in (('exit', 3), 3), (('exit', 0x12345678), 0x12345678), \
                (('crash',), 0xc0000005):
            got, _ = self.profile_json('pages', *words, image=EXE)
            self.assertEqual(got['command_exit']['code'], code)
            self.assertEqual((got['exit_code'], got['status']), (1, 'command-failed'))
            self.assertGreater(got['images'][0]['touched_pages'], 0)

    def test_a_program_that_is_not_there(self):
        got = self.profile('pages', program='nothing.exe')
        self.assertEqual(got.returncode, 1)
        self.assertIn('did not start (Windows error 2)', got.stderr)

    def test_an_image_that_is_not_loaded(self):
        got = self.profile('pages', 'exit', 0)
        self.assertEqual(got.returncode, 1)
        self.assertIn("did not load 'page_steps.dll'", got.stderr)

    def test_another_image_of_that_name_is_left_out(self):
        other = self.folder / 'other'
        other.mkdir()
        content = bytearray((FIXTURES / DLL).read_bytes())
        content[0x4e] ^= 1  # in the DOS stub's text
        (other / DLL).write_bytes(content)
        got = self.profile('pages', 'walk', 10, image=other / DLL)
        self.assertEqual(got.returncode, 1)
        self.assertIn('another image', got.stderr)
        self.assertEqual(self.query('SELECT count(*) FROM page_touches'), [(0,)])

    def test_a_process_of_wine_s_own_is_not_followed(self):
        end_server()
        subprocess.run(['wineserver', '-p'], env=ENVIRONMENT, timeout=SECONDS)
        self.addCleanup(end_server)
        self.plain('exit', 0)
        until = time.monotonic() + SECONDS
        while explorer_runs():  # it ends some time after the last program
            self.assertLess(time.monotonic(), until)
            time.sleep(0.1)
        tool = subprocess.Popen([PROFILE, 'pages', '--json', '--db', 't.db', '--image', DLL,
                                 '--', 'wine', EXE, 'window'], cwd=self.folder, text=True,
                                env=self.environment, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE)
        started = False
        while tool.poll() is None:
            started |= explorer_runs()
        text, output = tool.communicate()
        self.assertTrue(started, 'the window did not start it again')
        self.assertEqual(json.loads(text)['processes'], 1)
        self.assertEqual(self.pages(), steps(output))

    def test_wrong_usage(self):
        for words in (['--', 'sh', '-c', 'true'], ['--', 'wine'], ['--', 'sh', 'wine']):
            got = self.run_words([PROFILE, 'pages', '--db', 't.db', '--image', DLL, *words])
            self.assertEqual(got.returncode, 2, got.stderr)
        got = self.run_words([PROFILE, 'pages', '--db', 't.db', '--', 'wine', EXE])
        self.assertEqual(got.returncode, 2)
        got = self.run_words([PROFILE, 'pages', '--db', 't.db', '--image', 't.py', '--',
                              'wine', EXE])
        self.assertEqual(got.returncode, 1)

    def test_a_killed_debugger_loses_nothing(self):
        tool = subprocess.Popen([PROFILE, 'pages', '--json', '--db', 't.db', '--image', DLL,
                                 '--', 'wine', EXE, 'wait', '44', '14'], cwd=self.folder,
                                env=self.environment, text=True, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE)
        output = ''
        while 'ready' not in output:
            line = tool.stderr.readline()
            self.assertTrue(line, 'the program ended')
            output += line
        [debugger] = [pid for pid in children(tool.pid)
                      if b'appulse-debugger' in pathlib.Path(f'/proc/{pid}/cmdline').read_bytes()]
        os.kill(debugger, signal.SIGKILL)
        text, _ = tool.communicate(timeout=SECONDS)
        got = json.loads(text)
        self.assertFalse(got['complete'])
        self.assertEqual(self.pages(), steps(output))
        self.assertEqual(self.query('SELECT exit FROM runs'), [('unknown',)])


def table_functions(content):
    """Begins of the function table's primary entries."""
    pe = struct.unpack_from('<I', content, 60)[0]
    count, optional = struct.unpack_from('<H12xH', content, pe + 6)
    sections = [struct.unpack_from('<8xIIII', content, pe + 24 + optional + 40 * i)
                for i in range(count)]

    def offset(rva):
        [found] = [rva - begin + raw for _, begin, size, raw in sections
                   if begin <= rva < begin + size]
        return found

    table, size = struct.unpack_from('<II', content, pe + 24 + 112 + 3 * 8)
    entries = struct.iter_unpack('<III', content[offset(table):offset(table) + size])
    return [begin for begin, _, unwind in entries
            if not content[offset(unwind)] >> 3 & 4]  # UNW_FLAG_CHAININFO


def text_pages(content):
    """Pages of the first section, read as a stranger would."""
    pe = struct.unpack_from('<I', content, 60)[0]
    table = pe + 24 + struct.unpack_from('<H', content, pe + 20)[0]
    assert content[table:table + 5] == b'.text'
    return -(-struct.unpack_from('<I', content, table + 8)[0] // 4096)


class Breakpoints(Case):
    functions = []  # RVAs, from the program itself

    def setUp(self):
        super().setUp()
        template = pathlib.Path(PREFIX) / 'functions.db'
        if not template.exists():
            self.make_template()
            shutil.copy(self.folder / 't.db', template)
        shutil.copy(template, self.folder / 't.db')

    def make_template(self):
        """A database with functions as instrument writes them."""
        self.profile('pages', 'race')
        Breakpoints.functions = steps(self.plain('race').stdout)
        [(image,)] = self.query('SELECT id FROM images')
        for n, rva in enumerate(self.functions):
            self.query('INSERT INTO functions(image, rva, size, movable, pins) '
                       'VALUES(?, ?, 8, 0, ?)', image, rva, 'hidden-reference,code-constant')
            # In the middle of an instruction: to be left alone.
            self.query('INSERT INTO functions(image, rva, size, movable, pins) '
                       'VALUES(?, ?, 1, 0, ?)', image, rva + 1,
                       'hidden-reference,' + DOUBTS[n % len(DOUBTS)])
        self.query('DELETE FROM runs')
        self.query('PRAGMA wal_checkpoint(TRUNCATE)')

    def test_the_starts_in_order(self):
        got, output = self.profile_json('breakpoints', 'walk', 30, 11, 30, 45)
        self.assertEqual(output.split('appulse')[0],
                         self.plain('walk', 30, 11, 30, 45).stdout)
        self.assertEqual(self.starts(), steps(output))
        [image] = got['images']
        self.assertEqual(image['functions'], 41)
        self.assertEqual(image['planted_functions'], 41)
        self.assertEqual(image['touched_functions'], 4)
        self.assertEqual(self.query('SELECT kind FROM runs'), [('breakpoints',)])

    def test_two_threads_race_to_each_start(self):
        for _ in range(3):
            got = self.profile('breakpoints', 'race')
            self.assertEqual(got.returncode, 0, got.stderr)
            self.assertEqual(self.starts(), self.functions)
            self.query('DELETE FROM runs')

    def test_children_and_images_that_are_loaded_again(self):
        for words in ('child', 20, 11), ('reload',):
            _, output = self.profile_json('breakpoints', *words)
            self.assertEqual(self.starts(), steps(output))
            self.query('DELETE FROM runs')

    def test_the_program_s_own_exceptions_are_its_own(self):
        _, output = self.profile_json('breakpoints', 'faults')
        self.assertEqual(output.split('appulse')[0], self.plain('faults').stdout)

    def test_exceptions_of_many_kinds(self):
        for name, folder in EXCEPTIONS:
            self.stage(FIXTURES / folder)
            self.profile('pages', program=name + '.exe', image=name + '.dll')
            [(image,)] = self.query('SELECT id FROM images WHERE name = ?', name + '.dll')
            functions = table_functions((self.folder / (name + '.dll')).read_bytes())
            for rva in functions:
                self.query('INSERT INTO functions(image, rva, size, movable) '
                           'VALUES(?, ?, 1, 1)', image, rva)
            plain = self.run_words(['wine', name + '.exe'])
            got, output = self.profile_json('breakpoints', program=name + '.exe',
                                            image=name + '.dll')
            self.assertEqual(output.split('appulse')[0], plain.stdout)
            self.assertEqual(got['command_exit']['code'], plain.returncode)
            self.assertGreater(got['images'][0]['touched_functions'], 5)
            self.assertEqual(got['images'][0]['planted_functions'], len(functions))

    def test_an_image_without_functions(self):
        self.query('DELETE FROM functions')
        got = self.profile('breakpoints', 'walk', 10)
        self.assertEqual(got.returncode, 1)
        self.assertIn('appulse-instrument', got.stderr)

    def test_functions_that_are_all_left_alone(self):
        self.query("UPDATE functions SET pins = 'user'")
        got = self.profile('breakpoints', 'walk', 10)
        self.assertEqual(got.returncode, 1)
        self.assertIn('no function of', got.stderr)

    def test_another_build_is_left_alone(self):
        """The debugger by itself, with a list that is wrong in one byte."""
        content = (self.folder / DLL).read_bytes()
        pe = struct.unpack_from('<I', content, 60)[0]
        stamp, = struct.unpack_from('<I', content, pe + 8)
        size, = struct.unpack_from('<I', content, pe + 24 + 56)
        checksum, = struct.unpack_from('<I', content, pe + 24 + 64)
        rvas = sorted(self.functions)
        for wrong, event in (None, 'planted'), (7, 'other'):
            lines = ['appulse-starts 1 %x %x %x' % (size, stamp, checksum)]
            # In this file RVAs and offsets agree.
            lines += ['%x %02x' % (rva, content[rva] ^ (n == wrong))
                      for n, rva in enumerate(rvas)]
            (self.folder / 'starts').write_text('\n'.join(lines) + '\n')
            got = self.run_words(['wine', DEBUGGER, 'breakpoints', '--image', DLL, '--starts',
                                  'starts', '--log', 'log', '--', EXE, 'walk', 10])
            self.assertEqual(got.returncode, 0, got.stderr)
            self.assertIn('step 10', got.stdout)
            log = (self.folder / 'log').read_text()
            self.assertEqual('\nstart\t' in log, event == 'planted')
            self.assertIn('\n' + event, log)


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1] + sys.argv[3:], verbosity=2)
