#!/usr/bin/env python3
"""appulse-profile compare, with a program and copies of its DLL whose differences are known.

usage: compares.py PROFILE APPULSE FIXTURES

Times are never limits: what must be seen is a copy that sleeps a tenth of a second, and of
what must not be seen only the form is checked.  tests/bench/verdicts.py tries it many times.
"""
import contextlib
import ctypes
import json
import os
import pathlib
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
import unittest

sys.dont_write_bytecode = True
from own_wine import OwnWine  # noqa: E402

PROFILE, APPULSE = (os.path.realpath(word) for word in sys.argv[1:3])
FIXTURES = pathlib.Path(sys.argv[3])
REORDER = pathlib.Path(APPULSE).parent / 'appulse-reorder'
DLL, OTHER, EXE = 'page_steps.dll', 'other.dll', 'page_walker.exe'
RUNS = 7
SECONDS = 300
TIMED = ['run phase', 'wall time', 'working set']
COUNTED = ['hard faults', 'code pages']


def setUpModule():
    global WINE, ENVIRONMENT
    WINE = OwnWine()
    ENVIRONMENT = WINE.environment
    # Kept while runs are timed.
    WINE.server('-p')


def tearDownModule():
    WINE.remove()


def deny_perf_events():
    """For a child before its exec: a filter of system calls (seccomp(2)) that answers
    perf_event_open with EPERM."""
    libc = ctypes.CDLL(None, use_errno=True)
    perf_event_open, errno_1, allow = 298, 0x00050001, 0x7fff0000
    code = [(0x20, 0, 0, 0), (0x15, 0, 1, perf_event_open), (0x06, 0, 0, errno_1),
            (0x06, 0, 0, allow)]
    text = ctypes.create_string_buffer(b''.join(struct.pack('HBBI', *line) for line in code))
    program = struct.pack('HxxxxxxP', len(code), ctypes.addressof(text))
    # PR_SET_NO_NEW_PRIVS; PR_SET_SECCOMP, SECCOMP_MODE_FILTER
    if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, program, 0, 0):
        raise OSError(ctypes.get_errno(), 'no filter of system calls')


def state(folder):
    """Everything of a folder that must not change."""
    return {path.name: (path.read_bytes(), path.stat().st_ino, path.stat().st_mtime_ns,
                        path.stat().st_mode) for path in folder.iterdir()}


class Case(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix='appulse compare ',
                                                    dir=FIXTURES.parent))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        for name in (DLL, EXE):
            shutil.copy(FIXTURES / name, self.folder / name)
        shutil.copy(FIXTURES / DLL, self.folder / OTHER)

    def command(self, *words, options=('--times-only',), program=None):
        program = program or ['wine', EXE, *words]
        return [str(word) for word in (PROFILE, 'compare', '--json', '--runs', RUNS, *options,
                                       DLL, OTHER, '--', *program)]

    def run_words(self, words, **more):
        # Into files: what outlives the program would keep a pipe open.
        with tempfile.TemporaryFile('w+') as out, tempfile.TemporaryFile('w+') as err:
            got = subprocess.run([str(word) for word in words], cwd=self.folder,
                                 env=ENVIRONMENT, timeout=SECONDS, stdout=out, stderr=err,
                                 stdin=subprocess.DEVNULL, **more)
            out.seek(0)
            err.seek(0)
            return subprocess.CompletedProcess(got.args, got.returncode, out.read(),
                                               err.read())

    def compare(self, *words, **more):
        """The tool's object; the folder is as before."""
        before = state(self.folder)
        got = self.run_words(self.command(*words, **more))
        self.assertEqual(state(self.folder), before)
        return json.loads(got.stdout)

    def ok(self, *words, **more):
        told = self.compare(*words, **more)
        self.assertEqual(told['status'], 'ok', told)
        return {metric['name']: metric for metric in told['metrics']}, told

    def fails(self, status, text, *words, **more):
        told = self.compare(*words, **more)
        self.assertEqual(told['status'], status, told)
        self.assertIn(text, told['error']['message'])

    def sleeping(self, ms):
        shutil.copy(FIXTURES / f'page_steps_sleeps_{ms}.dll', self.folder / OTHER)


class Times(Case):
    def test_an_image_against_itself(self):
        metrics, told = self.ok('walk', 20, 30)
        self.assertEqual(list(metrics), TIMED)
        for metric in metrics.values():
            self.assertEqual(metric['pairs'], RUNS)
            for side in 'ab':
                values = sorted(metric[f'values_{side}'])
                self.assertEqual(len(values), RUNS)
                self.assertEqual(metric[side]['median'], values[RUNS // 2])
                self.assertTrue(values[0] <= metric[side]['low_quartile']
                                <= metric[side]['median'] <= metric[side]['high_quartile']
                                <= metric[side]['percentile_95'] <= values[-1])
            ratios = sorted(b / a for a, b in zip(metric['values_a'], metric['values_b']))
            self.assertAlmostEqual(metric['ratio'], ratios[RUNS // 2])
            self.assertTrue(metric['ratio_low'] <= metric['ratio'] <= metric['ratio_high'])
            self.assertGreaterEqual(metric['runs_for_2_percent'], RUNS)
        for phase, wall in zip(metrics['run phase']['values_a'],
                               metrics['wall time']['values_a']):
            self.assertTrue(0 < phase < wall)
        self.assertTrue(all(value > 1 << 20 for value in metrics['working set']['values_a']))
        self.assertEqual([image['path'] for image in told['images']], [DLL, OTHER])
        self.assertEqual([image['preloaded'] for image in told['images']], [False, False])
        self.assertEqual(told['wine_server_starts'], 0)

    def test_a_process_that_leaves_without_a_word(self):
        script = (f"import mmap, os; file = open('{DLL}', 'rb'); "
                  "mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ); os._exit(0)")
        metrics, told = self.ok(program=[sys.executable, '-c', script])
        self.assertEqual(list(metrics), TIMED[:2])
        self.assertIn('the working set is left out', ' '.join(told['warnings']))

    def test_a_copy_that_sleeps(self):
        self.sleeping(100)
        metrics, _ = self.ok('walk', 20)
        phase = metrics['run phase']
        self.assertEqual(phase['verdict'], 'more', phase)
        self.assertTrue(all(value >= 0.1 for value in phase['values_b']))
        self.assertGreater(phase['ratio_low'], 1)
        (self.folder / DLL).replace(self.folder / 'kept')
        (self.folder / OTHER).replace(self.folder / DLL)
        (self.folder / 'kept').replace(self.folder / OTHER)
        metrics, _ = self.ok('walk', 20)
        self.assertEqual(metrics['run phase']['verdict'], 'less', metrics['run phase'])

    def test_until_a_marker(self):
        metrics, told = self.ok('started', 20,
                                options=['--times-only', '--marker', 'has started'])
        self.assertEqual(told['marker'], 'has started')
        # The program sleeps a fifth of a second after it.
        for phase, wall in zip(metrics['run phase']['values_a'],
                               metrics['wall time']['values_a']):
            self.assertTrue(0 < phase <= wall - 0.2)

    def test_a_child_that_loads_it(self):
        self.sleeping(100)
        metrics, _ = self.ok('child', 20)
        self.assertEqual(metrics['run phase']['verdict'], 'more')

    def test_the_order_is_the_seed_s(self):
        orders = []
        for seed in (1, 1, 2):
            log = self.folder / 'log'
            program = ['sh', '-c', f'cksum < {DLL} >> log; wine {EXE} walk 20']
            self.sleeping(5)
            before = state(self.folder)
            got = self.run_words(self.command(
                options=['--times-only', '--seed', seed], program=program))
            self.assertEqual(got.returncode, 0, got.stderr)
            orders.append(log.read_text())
            log.unlink()
            self.assertEqual(state(self.folder), before)
        self.assertEqual(orders[0], orders[1])
        self.assertNotEqual(orders[0], orders[2])
        lines = orders[0].splitlines()
        self.assertEqual(len(lines), 2 * RUNS + 2)
        for number in range(0, len(lines), 2):
            self.assertEqual(len({lines[number], lines[number + 1]}), 2)

    def test_what_people_read(self):
        self.sleeping(100)
        words = self.command('walk', 20)
        words.remove('--json')
        got = self.run_words(words)
        self.assertEqual(got.returncode, 0, got.stderr)
        self.assertRegex(got.stdout, r'run phase +slower by [\d.]+ % \(95 % interval ')
        self.assertIn('runs that would show a difference of 2 %: run phase ', got.stdout)


class Faults(Case):
    def counted(self, *words, **more):
        """Metrics; None where faults cannot be counted, which the tool then says."""
        metrics, told = self.ok(*words, options=['--cold'], **more)
        self.assertEqual(list(metrics)[:4], [*TIMED, 'pages read'])
        if told['fault_method'] is None:
            self.assertTrue(told['faults_not_counted'])
            print('not measured here:', told['faults_not_counted'], file=sys.stderr)
            return None
        self.assertEqual(list(metrics)[4:], COUNTED)
        return metrics

    def test_cold_runs(self):
        metrics = self.counted('walk', 20, 30, 40)
        if metrics:
            # The three steps and the entry; the same in each run.
            self.assertEqual(set(metrics['code pages']['values_a']), {4})
            self.assertEqual(metrics['code pages']['values_a'],
                             metrics['code pages']['values_b'])
            self.assertEqual(metrics['code pages']['verdict'], 'no-difference-seen')

    def test_fewer_pages_are_seen(self):
        self.run_words([REORDER, DLL, '-o', 'made.dll', '--order', 'random', '--placement',
                        'append', '--file-alignment', '4096'])
        (self.folder / 'made.dll').replace(self.folder / OTHER)
        with contextlib.suppress(FileNotFoundError):
            (self.folder / 'made.dll.map.json').unlink()
        metrics = self.counted('race')
        if metrics:
            code = metrics['code pages']
            self.assertEqual(set(code['values_a']), {41})
            self.assertLess(max(code['values_b']), 41)
            self.assertEqual(code['verdict'], 'less')

    def test_warm_runs_count_faults_too(self):
        metrics, told = self.ok('walk', 20, options=[])
        names = [name for name in metrics if name not in TIMED]
        self.assertEqual(names, COUNTED if told['fault_method'] else [])


    def test_timed_runs_are_not_watched(self):
        """Perf events of the counted runs would cost time in the timed ones."""
        program = ['sh', '-c', f'ls -l /proc/$PPID/fd >> log; echo >> log; wine {EXE} walk 20']
        got = self.run_words(self.command(options=[], program=program))
        self.assertEqual(got.returncode, 0, got.stderr)
        listings = (self.folder / 'log').read_text().split('\n\n')[:-1]
        watched = ['perf_event' in listing for listing in listings]
        timed = 2 * RUNS + 2
        self.assertEqual(watched[-timed:], [False] * timed)
        if json.loads(got.stdout)['fault_counter'] == 'perf':
            self.assertEqual(watched[:-timed], [True] * (2 * RUNS + 1))


class Preloading(Case):
    def test_a_program_that_reads_all(self):
        _, told = self.ok('read', 20)
        for image in told['images']:
            self.assertEqual((image['preloaded'], image['preloaded_how']), (True, 'read'))
        self.assertIn('the program itself reads all', told['warnings'][0])

    def test_an_image_that_is_in_memory_before(self):
        # Too large to come with its headers; and read by a process that nobody sees.
        for name in (DLL, OTHER):
            with open(self.folder / name, 'ab') as file:
                file.write(bytes(1 << 20))
        program = ['sh', '-c', f'LD_PRELOAD= cat {DLL} > /dev/null; wine {EXE} walk 20']
        _, told = self.ok(options=['--times-only', '--cold'], program=program)
        for image in told['images']:
            self.assertEqual((image['preloaded'], image['preloaded_how']), (True, 'resident'))
        _, told = self.ok('walk', 20, options=['--times-only', '--cold'])
        self.assertEqual([image['preloaded'] for image in told['images']], [False, False])


class Failures(Case):
    def test_another_exit_code_with_b(self):
        # Without the functions that the program looks for.
        shutil.copy(FIXTURES / 'bcryptprimitives.dll', self.folder / OTHER)
        told = self.compare('walk', 20)
        self.assertEqual(told['status'], 'command-failed')
        self.assertIn("with B, 'other.dll', and with 0 in its first run, with A",
                      told['error']['message'])

    def test_an_exit_code_is_no_failure(self):
        _, told = self.ok(program=['sh', '-c', f'wine {EXE} walk 20; exit 3'])
        self.assertEqual(told['command_exit_code'], 3)

    def test_a_program_that_does_not_begin_once(self):
        script = f'echo >> log; [ $(wc -l < log) != 4 ] || exit 1; wine {EXE} walk 20'
        before = state(self.folder)
        got = self.run_words(self.command(program=['sh', '-c', script]))
        (self.folder / 'log').unlink()
        self.assertEqual(state(self.folder), before)
        told = json.loads(got.stdout)
        self.assertEqual((told['status'], told['runs_again']), ('ok', 1), told)
        self.assertIn('runs made again', ' '.join(told['warnings']))

    def test_exit_codes_that_change(self):
        program = ['sh', '-c', f'wine {EXE} walk 20; echo >> log; exit $(wc -l < log)']
        got = self.run_words(self.command(program=program))
        self.assertEqual(got.returncode, 1)
        self.assertIn("ended with exit code 2 with B, 'other.dll', and with 1 in its first "
                      "run, with A", got.stderr)

    def test_a_symbolic_link(self):
        (self.folder / DLL).rename(self.folder / 'real.dll')
        (self.folder / DLL).symlink_to('real.dll')
        got = self.run_words(self.command('walk', 20))
        self.assertEqual(got.returncode, 2)
        self.assertIn(f"'{DLL}' is a symbolic link and cannot be swapped", got.stderr)
        self.assertEqual(sorted(os.listdir(self.folder)),
                         sorted([DLL, 'real.dll', OTHER, EXE]))

    def test_a_folder_that_cannot_be_written(self):
        command = self.command('walk', 20)
        if os.geteuid() == 0:
            mount = 'mount --bind . . && mount -o remount,ro,bind . && cd "$PWD" && exec "$@"'
            command = ['unshare', '-m', 'sh', '-c', mount, 'sh', *command]
        else:
            self.folder.chmod(0o555)
            self.addCleanup(self.folder.chmod, 0o755)
        got = self.run_words(command)
        if 'unshare' in got.stderr or 'mount:' in got.stderr:
            self.skipTest(f'no mount of its own: {got.stderr}')
        self.assertEqual(got.returncode, 1)
        self.assertIn(f"cannot write in '.', where '{DLL}' is swapped", got.stderr)

    def test_counts_that_are_lost(self):
        """Without perf events a process that is killed does not tell its pages."""
        kill = (f': > out; wine {EXE} wait 20 > out & until grep -q ready out; do sleep 0.1;'
                ' done; kill -9 $!; wait; exit 0')
        before = state(self.folder)
        got = self.run_words(self.command(options=[], program=['sh', '-c', kill]),
                             preexec_fn=deny_perf_events)
        (self.folder / 'out').unlink(missing_ok=True)
        self.assertEqual(state(self.folder), before)
        told = json.loads(got.stdout)
        if told['status'] == 'ok':
            self.assertNotEqual(told['fault_counter'], 'pagemap')
            self.skipTest(f"not counted here: {told['faults_not_counted']}")
        self.assertEqual((got.returncode, told['status']), (1, 'command-failed'))
        self.assertIn('could not be counted to their end in 3 runs', told['error']['message'])

    def test_an_image_that_is_not_loaded(self):
        self.fails('not-found', f"did not load '{DLL}'", 'exit', 0)

    def test_a_marker_that_does_not_come(self):
        self.fails('not-found', "no line of the program's output holds 'ready'", 'walk', 20,
                   options=['--times-only', '--marker', 'ready'])

    def test_images_that_cannot_be_mapped(self):
        shutil.copy(FIXTURES / 'page_steps_512.dll', self.folder / DLL)
        got = self.run_words(self.command('walk', 20, options=['--cold']))
        self.assertEqual(got.returncode, 3)
        self.assertIn("'appulse-reorder --order original --file-alignment 4096'", got.stderr)
        # Warm, they can be timed.
        metrics, told = self.ok('walk', 20, options=[])
        self.assertEqual(list(metrics), TIMED)
        self.assertIn('--file-alignment 4096', told['faults_not_counted'])
        words = self.command('walk', 20, options=[])
        words.remove('--json')
        self.assertIn(f"hard faults were not counted: '{DLL}' is not mapped by Wine",
                      self.run_words(words).stdout)

    def test_what_is_no_image(self):
        (self.folder / OTHER).write_text('no image')
        got = self.run_words(self.command('walk', 20))
        self.assertEqual(got.returncode, 3)
        self.assertIn(OTHER, got.stderr)


class Kills(Case):
    """A stays, whatever happens."""
    def setUp(self):
        super().setUp()
        self.sleeping(5)
        self.before = state(self.folder)

    def wait_until_swapped(self, tool):
        until = time.monotonic() + SECONDS
        while tool.poll() is None and time.monotonic() < until and \
                not (self.folder / (DLL + '.appulse-original')).exists():
            time.sleep(0.01)

    def kill(self, sent, seconds, program):
        """After so many seconds; None: when A has been swapped."""
        tool = subprocess.Popen(self.command(program=program), cwd=self.folder, env=ENVIRONMENT,
                                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                stderr=subprocess.PIPE, text=True)
        if seconds is None:
            self.wait_until_swapped(tool)
        else:
            time.sleep(seconds)
        tool.send_signal(sent)
        _, errors = tool.communicate(timeout=SECONDS)
        return tool.returncode, errors

    def check_killed(self):
        """Whether A was swapped; it is there in either case."""
        now = state(self.folder)
        self.assertIn(self.before[DLL], (now.get(DLL), now.get(DLL + '.appulse-original')))
        return now != self.before

    # Nothing is loaded in them, but they end before that is noticed.
    PROGRAM = ['sh', '-c', 'sleep 0.2']

    def test_killed(self):
        swapped = 0
        for number in range(12):
            seconds = 0.05 + 0.013 * number if number else None
            self.kill(signal.SIGKILL, seconds, self.PROGRAM)
            swapped += self.check_killed()
            if number % 2:
                # The next comparison puts it right too.
                self.run_words(self.command(program=self.PROGRAM))
            else:
                done = self.run_words([APPULSE, 'restore', DLL])
                self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(state(self.folder), self.before, f'kill {number}')
        self.assertTrue(swapped)

    def test_what_changes_meanwhile(self):
        got = self.run_words(self.command(program=['sh', '-c', f'wine {EXE} walk 20; : > {OTHER}']))
        self.assertEqual(got.returncode, 1)
        self.assertIn(f"'{OTHER}' has been changed", got.stderr)
        self.assertEqual(state(self.folder)[DLL], self.before[DLL])

    def test_signals(self):
        for sent in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
            code, errors = self.kill(sent, None, ['sleep', '60'])
            self.assertEqual(code, 1)
            self.assertIn('interrupted by signal', errors)
            self.assertEqual(state(self.folder), self.before)


if __name__ == '__main__':
    unittest.main(argv=[sys.argv[0], '-v'] + sys.argv[4:])
