#!/usr/bin/env python3
"""The agent under Wine, driven by a program that makes probed images in memory.

usage: agent_traces.py PROBES AGENT AGENT_AGAIN DUMP

PROBES is agent_probes.exe, which says what it touches; AGENT the DLL and AGENT_AGAIN
another build of it; DUMP prints a trace file.  What the program says is compared with
what the files hold.
"""
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from collections import namedtuple

PROBES, AGENT, AGENT_AGAIN, DUMP = (os.path.realpath(a) for a in sys.argv[1:5])
VARIABLE = 'APPULSE_TRACE_DIR'
SECONDS = 120
FILETIME_UNIX_EPOCH = 11644473600  # seconds from 1601 to 1970

Touch = namedtuple('Touch', 'rva thread seq nanoseconds')


def setUpModule():
    global PREFIX, ENVIRONMENT
    PREFIX = tempfile.mkdtemp(prefix='appulse-wine-')
    ENVIRONMENT = dict(os.environ, WINEPREFIX=PREFIX, WINEDEBUG='-all', LC_ALL='C.UTF-8',
                       WINEDLLOVERRIDES='mscoree,mshtml=')
    for name in ('DISPLAY', VARIABLE):
        ENVIRONMENT.pop(name, None)
    subprocess.run(['wineboot', '-i'], env=ENVIRONMENT, check=True, timeout=SECONDS,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def tearDownModule():
    for option in ('-k', '-w'):
        subprocess.run(['wineserver', option], env=ENVIRONMENT, timeout=SECONDS)
    shutil.rmtree(PREFIX, ignore_errors=True)


def wine_path(path):
    return '\\\\?\\unix' + str(path).replace('/', '\\')


class Trace:
    def __init__(self, path):
        text = subprocess.run([DUMP, path], check=True, timeout=SECONDS,
                              stdout=subprocess.PIPE).stdout.decode()
        lines = [line.split('\t') for line in text.splitlines()]
        self.touches = [Touch(*map(int, l[1:])) for l in lines if l[0] == 'touch']
        self.fields = {l[0]: l[1] for l in lines if l[0] != 'touch'}
        self.rvas = [t.rva for t in self.touches]

    def __getitem__(self, name):
        return self.fields[name]

    def number(self, name):
        return int(self.fields[name])


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix='appulse agent \u00fc '))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        shutil.copy(PROBES, self.folder)
        shutil.copy(AGENT, self.folder)
        self.traces = self.folder / 'traces'
        self.traces.mkdir()

    def command(self, mode):
        return ['wine', 'agent_probes.exe', mode]

    def environment(self, value):
        return ENVIRONMENT if value is None else dict(ENVIRONMENT, **{VARIABLE: value})

    def run_to_end(self, mode, value):
        """The lines that the program prints before its last."""
        with open(self.folder / 'out', 'w+b') as out:
            done = subprocess.run(self.command(mode), cwd=self.folder, timeout=SECONDS,
                                  env=self.environment(value), stdin=subprocess.DEVNULL,
                                  stdout=out, stderr=subprocess.DEVNULL)
            out.seek(0)
            lines = out.read().decode().splitlines()
        self.assertEqual(done.returncode, 0, lines)
        self.assertEqual(lines[-1:], ['done'])
        return lines[:-1]

    def run_traced(self, mode):
        return self.run_to_end(mode, wine_path(self.traces))

    def all_traces(self):
        """{image name: trace}"""
        found = [Trace(path) for path in sorted(self.traces.iterdir())]
        for trace in found:
            self.assertEqual(trace.number('incomplete'), 0)
            self.assertEqual(trace.number('empty'), 0)
        return {trace['image']: trace for trace in found}

    def only_trace(self):
        traces = self.all_traces()
        self.assertEqual(len(traces), 1)
        return next(iter(traces.values()))

    def numbers(self, line, word):
        self.assertTrue(line.startswith(word + ' '), line[:80])
        return [int(n) for n in line[len(word):].split()]


class Recording(Case):
    def test_touches_in_the_order_of_the_calls(self):
        before = time.time()
        lines = self.run_traced('order')
        after = time.time()
        trace = self.only_trace()
        touched = self.numbers(lines[0], 'touched')
        self.assertEqual(trace.rvas, touched)
        self.assertEqual(trace.number('probes'), self.numbers(lines[1], 'capacity')[0])
        self.assertEqual([t.seq for t in trace.touches], list(range(1, len(touched) + 1)))
        self.assertEqual(len({t.thread for t in trace.touches}), 1)
        times = [t.nanoseconds for t in trace.touches]
        self.assertEqual(times, sorted(times))
        self.assertLess(times[-1], (after - before) * 1e9)
        self.assertEqual(trace['hash'], '01' * 32)
        self.assertEqual(trace['image'], 'order.dll')
        where = str(self.folder).replace('/', '\\') + '\\agent_probes.exe'
        self.assertTrue(trace['executable'].endswith(where), trace['executable'])
        for name in ('start', 'opened'):
            seconds = trace.number(name) / 1e7 - FILETIME_UNIX_EPOCH
            self.assertTrue(before - 1 < seconds < after + 1, name)
        self.assertLessEqual(trace.number('start'), trace.number('opened'))

    def test_each_function_once_when_threads_race(self):
        lines = self.run_traced('threads')
        trace = self.only_trace()
        self.assertEqual(len(set(trace.rvas)), trace.number('probes'))
        self.assertEqual([t.seq for t in trace.touches],
                         list(range(1, trace.number('probes') + 1)))
        orders = {}
        for line in lines:
            head, rvas = line.split(':')
            orders[int(head.split()[1])] = [int(rva) for rva in rvas.split()]
        self.assertEqual(len(orders), 8)
        self.assertTrue({t.thread for t in trace.touches} <= set(orders))
        for thread, order in orders.items():
            place = {rva: i for i, rva in enumerate(order)}
            places = [place[t.rva] for t in trace.touches if t.thread == thread]
            self.assertEqual(places, sorted(places))

    def test_images_of_a_process_share_the_sequence(self):
        self.run_traced('two-images')
        traces = self.all_traces()
        touches = [(t.seq, image) for image, trace in traces.items()
                   for t in trace.touches]
        expected = [(i + 1, 'one.dll' if i % 3 else 'two.dll') for i in range(200)]
        self.assertEqual(sorted(touches), expected)

    def test_an_image_loaded_again_goes_on_in_its_trace(self):
        lines = self.run_traced('reload')
        self.assertEqual(self.only_trace().rvas, self.numbers(lines[0], 'touched'))

    def test_the_agent_outlives_the_images_that_import_it(self):
        self.assertEqual(self.run_traced('unload'), ['stayed'])
        self.assertEqual(len(self.only_trace().rvas), 2)

    def test_images_of_one_name_have_traces_of_their_own(self):
        self.run_traced('namesakes')
        traces = [Trace(path) for path in self.traces.iterdir()]
        self.assertEqual(sorted((t['image'], t['hash']) for t in traces),
                         [('same.dll', '01' * 32), ('same.dll', '02' * 32)])
        self.assertEqual([len(t.touches) for t in traces], [1, 1])

    def test_names_of_images_are_not_believed(self):
        self.run_traced('names')
        self.assertEqual(sorted(self.all_traces()), sorted([
            '..\\..\\up.dll', 'C:\\x:stream', '_[2Jred__.dll', 'bad __ utf', '_',
            'na\u00efve \u20ac.dll',
            'a-name-that-is-as-long-as-a-name-can-be-which-is-63-bytes-xx.dl']))
        for path in self.traces.iterdir():
            self.assertRegex(path.name, r'^[A-Za-z0-9_-][A-Za-z0-9._-]*\.aptrace$')

    def test_what_was_touched_survives_a_kill(self):
        with open(self.folder / 'out', 'w+b') as out:
            program = subprocess.Popen(self.command('wait'), cwd=self.folder, stdout=out,
                                       env=self.environment(wine_path(self.traces)),
                                       stdin=subprocess.DEVNULL, start_new_session=True,
                                       stderr=subprocess.DEVNULL)
            self.addCleanup(program.wait, SECONDS)
            end = time.monotonic() + SECONDS
            lines = []
            while len(lines) < 2 and time.monotonic() < end:
                time.sleep(0.05)
                lines = (self.folder / 'out').read_text().splitlines()
            alive = self.only_trace()
            os.killpg(program.pid, signal.SIGKILL)
            self.assertEqual(program.wait(SECONDS), -signal.SIGKILL)
        touched = self.numbers(lines[0], 'touched')
        self.assertEqual(len(touched), 1000)
        self.assertEqual(alive.rvas, touched)
        self.assertEqual(self.only_trace().rvas, touched)


class Folders(Case):
    def trace_in(self, folder, value):
        folder.mkdir(parents=True, exist_ok=True)
        self.run_to_end('quick', value)
        self.traces = folder
        self.assertEqual(sorted(self.all_traces()), ['quick.dll', 'quicker.dll'])

    def test_spaces_and_unicode(self):
        folder = self.traces / 'with space \u20ac \u65e5\u672c'
        self.trace_in(folder, wine_path(folder))

    def test_a_drive(self):
        folder = self.traces / 'a b'
        self.trace_in(folder, 'Z:' + str(folder).replace('/', '\\') + '\\')

    def test_forward_slashes(self):
        folder = self.traces / 'deep' / 'er'
        self.trace_in(folder, 'Z:' + str(folder))

    def test_relative(self):
        self.trace_in(self.traces, 'traces')

    def test_longer_than_max_path(self):
        folder = self.traces / ('d' * 120) / ('e' * 120) / ('f' * 120)
        self.trace_in(folder, 'Z:' + str(folder).replace('/', '\\'))


class Untraced(Case):
    def check_untraced(self, value, reason, error=''):
        lines = self.run_to_end('quick', value)
        self.assertEqual(lines, ['debug: appulse: quick.dll runs untraced: '
                                 + reason + error])

    def test_without_the_variable(self):
        self.check_untraced(None, VARIABLE + ' is not set')
        self.assertEqual(list(self.traces.iterdir()), [])

    def test_an_empty_variable(self):
        self.check_untraced('', VARIABLE + ' is not set')

    def test_a_folder_that_is_not_there(self):
        self.check_untraced(wine_path(self.traces / 'none'),
                            'cannot make a trace file in the folder of ' + VARIABLE,
                            ' (error 3)')

    def test_a_file_in_the_folder_s_place(self):
        (self.traces / 'file').write_text('mine')
        self.check_untraced(wine_path(self.traces / 'file'),
                            'cannot make a trace file in the folder of ' + VARIABLE,
                            ' (error 267)')
        self.assertEqual((self.traces / 'file').read_text(), 'mine')

    def test_a_folder_s_name_that_is_too_long(self):
        self.check_untraced('x' * 32760, VARIABLE + ' is not a usable path')

    def test_a_full_disk_leaves_no_file(self):
        lines = self.run_traced('disk-full')
        self.assertEqual(lines, ['debug: appulse: disk_full.dll runs untraced: cannot make '
                                 f'a trace file in the folder of {VARIABLE} (error 112)'])
        self.assertEqual(list(self.all_traces()), ['later.dll'])


class Transparency(Case):
    def test_every_register_comes_back(self):
        lines = dict(line.split(' changed:') for line in self.run_traced('registers'))
        spoilt = lines.pop('spoiler').split()
        for name in ['flags', 'stack0', 'x87-control0', 'mxcsr0',
                     *(f'r{n}' for n in range(16) if n not in (4, 5)),
                     *(f'st{n}' for n in range(8)), *(f'xmm{n}' for n in range(16))]:
            self.assertIn(name, spoilt)
        flags = pathlib.Path('/proc/cpuinfo').read_text().split()
        for flag, names in (('avx', ['ymm0']), ('avx512f', ['k0', 'zmm0', 'zmm160'])):
            if flag in flags:
                self.assertLessEqual(set(names), set(spoilt))
        self.assertIn('last-error', lines.pop('error spoiler').split())
        self.assertEqual(lines, dict.fromkeys(
            ['first touch', 'touch', 'touch without flags', 'later call'], ''))
        self.assertEqual(len(self.only_trace().rvas), 3)

    def test_a_walk_leads_out_of_the_agent(self):
        # common + 14 is behind its call; below the caller's rsp lie the function's
        # return address, common's return address into the stub, and rax.
        self.assertEqual(self.run_traced('walk'),
                         ['walk: function 5, common + 14, rsp -24, rbx kept'])
        self.assertEqual(len(self.only_trace().rvas), 1)


class Making(Case):
    """What other threads may do while one makes the trace file."""

    def test_a_thread_may_wait_under_the_loader_lock(self):
        self.run_traced('loader-lock')
        self.assertEqual(len(self.only_trace().rvas), 2)

    def test_the_maker_may_be_ended(self):
        self.run_traced('maker-dies')
        self.assertEqual(len(self.only_trace().rvas), 2)

    def test_latecomers_are_recorded(self):
        self.run_traced('latecomers')
        self.assertEqual(len(self.only_trace().rvas), 8)

    def test_a_hooked_system_function_may_be_probed(self):
        self.run_traced('reentered')
        self.assertEqual(len(self.only_trace().rvas), 2)


class Building(unittest.TestCase):
    def test_same_sources_same_bytes(self):
        one, other = pathlib.Path(AGENT), pathlib.Path(AGENT_AGAIN)
        self.assertNotEqual(one, other)
        self.assertEqual(one.read_bytes(), other.read_bytes())


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1])
