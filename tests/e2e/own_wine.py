"""A Wine prefix and server of a test program's own, for what ends servers or times runs."""

import os
import shutil
import subprocess
import tempfile
import time

SECONDS = 240


class OwnWine:
    """`environment` is for the programs."""

    def __init__(self):
        self.prefix = tempfile.mkdtemp(prefix='appulse-wine-')
        # One for all: Debian's Wine finds its server by it.
        self.temporary = tempfile.mkdtemp(prefix='appulse-temporary-')
        self.environment = dict(os.environ, WINEPREFIX=self.prefix, WINEDEBUG='-all',
                                TMPDIR=self.temporary, WINEDLLOVERRIDES='mscoree,mshtml=')
        self.environment.pop('DISPLAY', None)
        subprocess.run(['wineboot', '-i'], env=self.environment, check=True,
                       timeout=SECONDS, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        # What the start writes is on the disk when the server has ended by itself.
        self.server('-w')

    def server(self, word, seconds=SECONDS):
        subprocess.run(['wineserver', word], env=self.environment, timeout=seconds)

    def end_server(self):
        """And all its programs.  One that was starting may have begun a new server."""
        until = time.monotonic() + SECONDS
        while True:
            self.server('-k')
            try:
                return self.server('-w', 10)
            except subprocess.TimeoutExpired:
                if time.monotonic() > until:
                    raise

    def remove(self):
        self.end_server()
        shutil.rmtree(self.prefix, ignore_errors=True)
        shutil.rmtree(self.temporary, ignore_errors=True)
