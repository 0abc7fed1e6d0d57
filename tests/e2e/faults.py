#!/usr/bin/env python3
"""appulse-profile faults, against a program that says which pages it touches.

usage: faults.py PROFILE FIXTURES

What this machine or user lacks cannot be measured: then the tool must refuse, and say
why, and that is what is tested; the line "not measured here" in the output names it.
"""
import contextlib
import json
import os
import pathlib
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
import unittest

sys.dont_write_bytecode = True
from own_wine import OwnWine  # noqa: E402

PROFILE = os.path.realpath(sys.argv[1])
FIXTURES = pathlib.Path(sys.argv[2])
REORDER = pathlib.Path(PROFILE).parent.parent / 'reorder' / 'appulse-reorder'
DLL, EXE = 'page_steps.dll', 'page_walker.exe'
SECONDS = 240
# The first words of each reason for which a method may be refused.
REASONS = ('no disk of our own', 'no loop device', 'perf events cannot be used',
           'userfaultfd')
NOBODY = 65534


def setUpModule():
    global WINE, ENVIRONMENT
    WINE = OwnWine()
    ENVIRONMENT = WINE.environment
    WINE.end_server()


def tearDownModule():
    WINE.remove()


def steps(output):
    """The RVAs of a walker's output, each once, in order."""
    rvas = [int(line.split()[2], 16) for line in output.splitlines()
            if line.startswith('step ')]
    return list(dict.fromkeys(rvas))


def devices():
    """Loop devices whose file was made in the temporary folder of these tests."""
    found = set()
    for path in pathlib.Path('/sys/block').glob('loop*/loop/backing_file'):
        with contextlib.suppress(OSError):
            if WINE.temporary in path.read_text():
                found.add(path.parent.parent.name)
    return found


class Case(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix='appulse faults '))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        for name in (DLL, EXE):
            shutil.copy(FIXTURES / name, self.folder / name)
        self.environment = dict(ENVIRONMENT)

    def left(self):
        """Our files in the temporary folder; Wine's server has its own there."""
        return [name for name in os.listdir(WINE.temporary) if 'appulse' in name]

    def run_words(self, words, **more):
        # Into files: what outlives the program would keep a pipe open.
        with tempfile.TemporaryFile('w+') as out, tempfile.TemporaryFile('w+') as err:
            got = subprocess.run([str(word) for word in words], cwd=self.folder,
                                 env=self.environment, timeout=SECONDS, stdout=out,
                                 stderr=err, stdin=subprocess.DEVNULL, **more)
            out.seek(0)
            err.seek(0)
            return subprocess.CompletedProcess(got.args, got.returncode, out.read(),
                                               err.read())

    def words(self, *words, options=(), image=DLL):
        return [PROFILE, 'faults', '--db', 't.db', '--image', image, '--cold', '--json',
                *options, '--', 'wine', EXE, *words]

    def faults(self, *words, options=(), **more):
        """A run of the tool: its object, and the program's output; (None, reason) when
        it refuses to measure that way, with one of the known reasons."""
        got = self.run_words(self.words(*words, options=options, **more))
        told = json.loads(got.stdout)
        if told['status'] == 'ok':
            self.assertEqual(self.left(), [])
            return told, got.stderr
        reason = told['error']['message']
        self.assertEqual((got.returncode, told['status']), (1, 'command-failed'), reason)
        self.assertTrue(any(known in reason for known in REASONS), reason)
        print(f"not measured here: {' '.join(options)}: {reason}", file=sys.stderr)
        return None, reason

    def query(self, sql, *values):
        with contextlib.closing(sqlite3.connect(self.folder / 't.db')) as db, db:
            return db.execute(sql, values).fetchall()

    def code(self, run, kind):
        return [page for page, in self.query(
            'SELECT page FROM faults WHERE run = ? AND code AND kind = ? ORDER BY seq',
            run, kind)]

    def hard_code(self, run):
        return self.code(run, 'hard')


LOOP, PRELOAD = ['--method', 'loop'], ['--method', 'preload']
PAGEMAP = [*PRELOAD, '--no-perf']
WORKING_SET = ['--method', 'working-set']


class Agreement(Case):
    def agree(self, *words):
        """Guard pages, the loop device, the library with and without perf events, and the
        working set have the same pages of code, which are those that the program names."""
        got = self.run_words([PROFILE, 'pages', '--db', 't.db', '--image', DLL, '--json', '--',
                              'wine', EXE, *words])
        run = json.loads(got.stdout)['run']
        guards = {page for page, in self.query(
            'SELECT page FROM page_touches JOIN processes ON process = processes.id'
            ' WHERE run = ?', run)}
        self.assertEqual(guards, set(steps(got.stderr)))
        WINE.end_server()
        for options in LOOP, PRELOAD, PAGEMAP:
            told, output = self.faults(*words, options=options)
            if told is None:
                continue
            with self.subTest(options=options):
                self.assertEqual(told['lost_events'], 0)
                self.assertEqual(set(self.hard_code(told['run'])), guards)
                self.assertEqual(told['images'][0]['hard_code_pages'], len(guards))
                if told['counter'] == 'perf' and words[0] == 'walk':
                    self.assertEqual(self.hard_code(told['run']), steps(output))
        told, _ = self.faults(*words, options=WORKING_SET)
        self.assertEqual(told['lost_events'], 0)
        self.assertEqual(set(self.code(told['run'], 'resident')), guards)
        self.assertEqual(told['images'][0]['working_set_code_pages'], len(guards))

    def test_a_walk(self):
        self.agree('walk', 40, 12, 49, 10, 40, 12)

    def test_threads(self):
        self.agree('race')

    def test_a_child(self):
        self.agree('child', 20, 11)


class Loop(Case):
    def test_what_is_stored(self):
        told, output = self.faults('walk', 20, 30, 15, options=[*LOOP, '--soft'])
        if told is None:
            return
        self.assertEqual((told['method'], told['counter']), ('loop', 'perf'))
        [row] = self.query('SELECT method, counter, read_ahead, cold, before, hard_code_pages,'
                           ' code_pages, lost FROM v_fault_counts')
        self.assertEqual(row, ('loop', 'perf', 0, 1, 0, 4, 42, 0))
        self.assertEqual(self.query('SELECT kind, exit, exit_code FROM runs'),
                         [('faults', 'exited', 0)])
        rows = self.query("SELECT process, thread, time_ms, access FROM v_faults"
                          " WHERE kind = 'hard' ORDER BY seq")
        self.assertEqual(len({row[0] for row in rows}), 1)
        times = [row[2] for row in rows]
        self.assertEqual(times, sorted(times))
        self.assertTrue(all(row[0] and row[1] and row[2] > 0 for row in rows))
        self.assertEqual([row[3] for row in rows].count('execute'), 4)
        # Of the headers, Wine's server alone reads the page.
        self.assertEqual(self.query("SELECT page FROM faults WHERE kind = 'resident'"),
                         [(0,)])
        # All that is in memory had a fault or is that page.
        self.assertEqual(told['images'][0]['resident_after'],
                         told['images'][0]['hard_pages'] + 1)

    def test_read_ahead(self):
        plain, _ = self.faults('race', options=LOOP)
        if plain is None:
            return
        WINE.end_server()
        ahead, _ = self.faults('race', options=[*LOOP, '--read-ahead', '32'])
        [before], [after] = plain['images'], ahead['images']
        self.assertEqual(ahead['read_ahead_kib'], 32)
        self.assertEqual(before['hard_code_pages'], 41)
        self.assertLess(after['hard_code_pages'], 21)
        # The kernel may read on before it is asked again: one fault can be all.
        self.assertGreater(after['hard_code_pages'], 0)

    def test_the_image_itself_stays(self):
        content = (self.folder / DLL).read_bytes()
        inode = (self.folder / DLL).stat().st_ino
        told, _ = self.faults('walk', 20, options=LOOP)
        self.assertEqual((self.folder / DLL).read_bytes(), content)
        self.assertEqual((self.folder / DLL).stat().st_ino, inode)
        if told:
            self.assertEqual(devices(), set())

    def test_a_server_outside_is_noticed(self):
        if self.faults('walk', 20, options=LOOP)[0] is None:
            return
        WINE.end_server()
        WINE.server('-p')
        self.addCleanup(WINE.end_server)
        got = self.run_words(self.words('walk', 20, options=LOOP))
        self.assertEqual(got.returncode, 1)
        self.assertIn("end it by 'wineserver -k'", got.stderr)
        told, _ = self.faults('walk', 20)
        self.assertEqual(told['method'], 'preload')
        self.assertIn('loop: the Wine server', told['not_taken'])

    def test_nothing_is_left_after_a_kill(self):
        if self.faults('walk', 20, options=LOOP)[0] is None:
            return
        WINE.end_server()
        content = (self.folder / DLL).read_bytes()
        old = devices()
        for number, sent in enumerate([signal.SIGKILL] * 8 + [signal.SIGTERM, signal.SIGINT]):
            tool = subprocess.Popen(
                [str(word) for word in self.words('wait', 20, options=LOOP)],
                cwd=self.folder, env=self.environment, stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                start_new_session=True)
            time.sleep(0.02 * 2 ** number)
            tool.send_signal(sent)
            if sent == signal.SIGKILL:
                # The command goes on, and may have come to no server yet.
                tool.wait(timeout=SECONDS)
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(tool.pid, signal.SIGKILL)
            WINE.end_server()
            tool.wait(timeout=SECONDS)
            until = time.monotonic() + 60
            while devices() - old and time.monotonic() < until:
                time.sleep(0.1)
            self.assertEqual(devices() - old, set(), f'killed in try {number}')
            self.assertEqual(self.left(), [])
            self.assertEqual((self.folder / DLL).read_bytes(), content)
        with open('/proc/mounts') as mounts:
            self.assertNotIn(DLL, mounts.read())


class WorkingSet(Case):
    def test_what_is_stored(self):
        told, output = self.faults('child', 20, 30, options=WORKING_SET)
        self.assertEqual((told['method'], told['counter'], told['read_ahead_kib']),
                         ('working-set', 'query-working-set', None))
        [image] = told['images']
        # Of faults nothing is known, and Wine does not count those of the process.
        self.assertEqual([told['page_faults'], image['hard_faults'], image['hard_pages'],
                          image['hard_code_pages'], image['soft_faults']], [None] * 5)
        self.assertEqual(self.query('SELECT method, counter, read_ahead, cold, lost'
                                    ' FROM fault_runs'),
                         [('working-set', 'query-working-set', None, 1, 0)])
        rows = self.query('SELECT code, kind, process, thread, time_ms FROM v_faults')
        self.assertEqual({row[1:2] + row[3:] for row in rows}, {('resident', None, None)})
        self.assertEqual(len({row[2] for row in rows}), 1)
        self.assertEqual(len(rows), image['working_set_pages'])
        self.assertEqual(sum(row[0] for row in rows), image['working_set_code_pages'])
        self.assertEqual(image['working_set_code_pages'], len(steps(output)))

    def test_neighbours_that_are_in_memory(self):
        """Linux maps them along with a page that is touched."""
        (self.folder / DLL).read_bytes()
        words = self.words('walk', 20, 30, options=WORKING_SET)
        words.remove('--cold')
        got = self.run_words(words)
        told = json.loads(got.stdout)
        self.assertEqual(told['images'][0]['resident_before'], told['images'][0]['pages'])
        self.assertEqual(set(self.code(told['run'], 'resident')), set(steps(got.stderr)))

    def test_an_image_that_is_unloaded(self):
        told, output = self.faults('reload', options=WORKING_SET)
        self.assertEqual((told['lost_events'], told['images'][0]['mappings']), (0, 2))
        self.assertEqual(set(self.code(told['run'], 'resident')), set(steps(output)))

    def test_what_cannot_tell(self):
        # A crash, of a program that is an image to be looked at itself.
        self.run_words([REORDER, EXE, '-o', 'new.exe', '--order', 'original',
                        '--file-alignment', '4096'])
        shutil.move(self.folder / 'new.exe', self.folder / EXE)
        got = self.run_words(self.words('crash', options=WORKING_SET, image=EXE))
        self.assertEqual(got.returncode, 1)
        told = json.loads(got.stdout)
        self.assertEqual(told['lost_events'], 1)
        self.assertIn('of 1 loads the working set is not known', got.stderr)
        self.assertEqual(self.query('SELECT count(*) FROM faults WHERE run = ?',
                                    told['run']), [(0,)])

    def test_it_is_chosen_last(self):
        WINE.end_server()
        WINE.server('-p')
        self.addCleanup(WINE.end_server)
        self.environment['APPULSE_PRELOAD'] = '/nonexistent'
        told, output = self.faults('walk', 20)
        self.assertEqual(told['method'], 'working-set')
        for other in 'loop: ', 'preload: ', 'in-place: ':
            self.assertIn(other, told['not_taken'])
        self.assertEqual(set(self.code(told['run'], 'resident')), set(steps(output)))

    def test_the_debugger_is_missing(self):
        self.environment['APPULSE_DEBUGGER'] = '/nonexistent'
        got = self.run_words(self.words('walk', 20, options=WORKING_SET))
        self.assertEqual(got.returncode, 1)
        self.assertIn('APPULSE_DEBUGGER', got.stderr)


class Refusals(Case):
    def test_an_image_that_wine_reads(self):
        shutil.copy(FIXTURES / 'page_steps_512.dll', self.folder / DLL)
        got = self.run_words(self.words('walk', 20))
        self.assertEqual(got.returncode, 3)
        self.assertIn("'appulse-reorder --order original --file-alignment 4096'", got.stderr)
        self.run_words([REORDER, DLL, '-o', 'new.dll', '--order', 'original',
                        '--file-alignment', '4096'])
        shutil.move(self.folder / 'new.dll', self.folder / DLL)
        told, output = self.faults('walk', 20)
        if told:
            self.assertEqual(set(self.hard_code(told['run'])), set(steps(output)))

    def test_an_image_that_is_not_loaded(self):
        got = self.run_words(self.words('exit', 0, options=PRELOAD))
        self.assertEqual(got.returncode, 1)
        self.assertIn("did not load 'page_steps.dll'", got.stderr)

    def test_the_program_s_exit_code(self):
        self.run_words([REORDER, EXE, '-o', 'new.exe', '--order', 'original',
                        '--file-alignment', '4096'])
        shutil.move(self.folder / 'new.exe', self.folder / EXE)
        got = self.run_words([PROFILE, 'faults', '--db', 't.db', '--image', EXE, '--json',
                              '--cold', *PRELOAD, '--', 'wine', EXE, 'exit', '3'])
        self.assertEqual(got.returncode, 1)
        self.assertEqual(json.loads(got.stdout)['command_exit']['code'], 3)
        self.assertEqual(self.query('SELECT exit_code FROM runs'), [(3,)])

    def test_options_that_exclude_each_other(self):
        got = self.run_words(self.words('walk', options=['--method', 'in-place',
                                                         '--read-ahead', '4']))
        self.assertEqual(got.returncode, 2)
        got = self.run_words(self.words('walk', options=[*WORKING_SET, '--read-ahead', '4']))
        self.assertEqual(got.returncode, 2)
        got = self.run_words(self.words('walk', options=[*PRELOAD, '--read-ahead', '4']))
        self.assertEqual(got.returncode, 1)
        self.assertIn('knows no read-ahead', got.stderr)


class Unprivileged(Case):
    """What needs no root is run without it."""
    def setUp(self):
        super().setUp()
        self.who = {}
        if os.geteuid() == 0:
            self.who = {'user': NOBODY, 'group': NOBODY, 'extra_groups': []}
            prefix = self.folder / 'prefix'
            subprocess.run(['cp', '-a', WINE.prefix, prefix], check=True)
            (prefix / 'wineserver').unlink(missing_ok=True)
            (self.folder / 'tmp').mkdir()
            subprocess.run(['chown', '-R', f'{NOBODY}:{NOBODY}', self.folder], check=True)
            self.environment.update(WINEPREFIX=str(prefix), HOME=str(self.folder),
                                    TMPDIR=str(self.folder / 'tmp'))
            self.addCleanup(subprocess.run, ['wineserver', '-k'], env=self.environment,
                            timeout=SECONDS, **self.who)

    def test_the_pages_of_a_walk(self):
        for options in PRELOAD, PAGEMAP:
            got = self.run_words(self.words('walk', 40, 12, 49, options=options), **self.who)
            told = json.loads(got.stdout)
            if told['status'] != 'ok':
                self.assertIn('userfaultfd', told['error']['message'])
                print('not measured here: without root:', told['error']['message'],
                      file=sys.stderr)
                continue
            self.assertEqual(set(self.hard_code(told['run'])), set(steps(got.stderr)))

    def test_the_loop_device_is_refused(self):
        got = self.run_words(self.words('walk', 40, options=LOOP), **self.who)
        self.assertEqual(got.returncode, 1)
        self.assertTrue('only root can mount one' in got.stderr or
                        'perf events cannot be used' in got.stderr, got.stderr)

    def test_a_file_of_another_s(self):
        if os.geteuid() != 0:
            return
        os.chown(self.folder / DLL, 0, 0)
        os.chmod(self.folder / DLL, 0o644)
        got = self.run_words(self.words('walk', 40, options=PRELOAD), **self.who)
        self.assertEqual(got.returncode, 1)
        self.assertIn('only the owner', got.stderr)


if __name__ == '__main__':
    unittest.main(argv=[sys.argv[0], '-v'] + sys.argv[3:])
