"""A real browser without a window, driven by the W3C WebDriver protocol.

Chromium and its driver come from Debian.  The driver listens on the loopback device only;
the browser has a profile of its own in a folder that goes away with it.

    with Browser() as browser:
        browser.open(path_of_a_file)
        text = browser.run('return document.title')
"""

import base64
import json
import os
import pathlib
import re
import subprocess
import tempfile
import time
import urllib.error
import urllib.request

START_SECONDS = 60
ANSWER_SECONDS = 120


class BrowserError(Exception):
    pass


class Browser:
    def __init__(self, width=1280, height=900, dark=False):
        self.size = width, height
        self.dark = dark

    def __enter__(self):
        self.folder = tempfile.TemporaryDirectory(prefix='browser-')
        self.driver = subprocess.Popen(['chromedriver', '--port=0'], stdout=subprocess.PIPE,
                                       stderr=subprocess.DEVNULL, text=True, cwd=self.folder.name,
                                       env=os.environ | {'HOME': self.folder.name})
        try:
            self.url = f'http://127.0.0.1:{self.port()}'
            self.url += '/session/' + self.new_session()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_):
        try:
            self.call('DELETE', '')
        except (OSError, BrowserError):
            pass
        self.stop()

    def stop(self):
        self.driver.kill()
        self.driver.wait()
        self.driver.stdout.close()
        self.folder.cleanup()

    def port(self):
        """The driver says which port it was given."""
        for line in self.driver.stdout:
            found = re.search(r'successfully on port (\d+)', line)
            if found:
                return int(found.group(1))
        raise BrowserError('chromedriver does not start')

    def new_session(self):
        arguments = ['--headless=new', '--disable-gpu', '--hide-scrollbars', '--no-first-run',
                     '--disable-dev-shm-usage', '--force-device-scale-factor=1',
                     f'--user-data-dir={self.folder.name}/profile',
                     f'--window-size={self.size[0]},{self.size[1]}']
        if os.geteuid() == 0:
            arguments.append('--no-sandbox')
        if self.dark:
            arguments.append('--blink-settings=preferredColorScheme=0')
        wanted = {'browserName': 'chrome', 'goog:chromeOptions': {'args': arguments},
                  'goog:loggingPrefs': {'browser': 'ALL'},
                  'timeouts': {'pageLoad': ANSWER_SECONDS * 1000, 'script': ANSWER_SECONDS * 1000}}
        answer = self.call('POST', '/session', {'capabilities': {'alwaysMatch': wanted}})
        return answer['sessionId']

    def call(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, method=method,
                                         headers={'Content-Type': 'application/json'})
        # No proxy may come between.
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(request, timeout=ANSWER_SECONDS) as answer:
                return json.load(answer)['value']
        except urllib.error.HTTPError as error:
            value = json.load(error).get('value', {})
            raise BrowserError(value.get('message', str(error))) from None

    def open(self, path):
        self.call('POST', '/url', {'url': pathlib.Path(path).resolve().as_uri()})

    def run(self, script, *arguments):
        return self.call('POST', '/execute/sync', {'script': script, 'args': list(arguments)})

    def wait(self, condition, what):
        """Until the expression is true."""
        end = time.monotonic() + START_SECONDS
        while not self.run(f'return !!({condition})'):
            if time.monotonic() > end:
                raise BrowserError(f'{what}: not within {START_SECONDS} seconds')
            time.sleep(0.05)

    def find(self, selector):
        """A reference to an element, which can be an argument of a script or of an action."""
        return self.call('POST', '/element', {'using': 'css selector', 'value': selector})

    def click(self, selector):
        element = self.find(selector)
        self.call('POST', f'/element/{next(iter(element.values()))}/click', {})

    def type(self, selector, text):
        element = self.find(selector)
        self.call('POST', f'/element/{next(iter(element.values()))}/value', {'text': text})

    def point(self, selector, x, y):
        """Moves the mouse to a place in an element, from its upper left corner."""
        box = self.run('arguments[0].scrollIntoView({block: "center"});'
                       'const r = arguments[0].getBoundingClientRect(); return [r.x, r.y]',
                       self.find(selector))
        move = {'type': 'pointerMove', 'duration': 0, 'x': round(box[0] + x),
                'y': round(box[1] + y), 'origin': 'viewport'}
        self.call('POST', '/actions', {'actions': [
            {'type': 'pointer', 'id': 'mouse', 'parameters': {'pointerType': 'mouse'},
             'actions': [move]}]})

    def wheel(self, selector, x, y, by):
        box = self.run('arguments[0].scrollIntoView({block: "center"});'
                       'const r = arguments[0].getBoundingClientRect(); return [r.x, r.y]',
                       self.find(selector))
        self.call('POST', '/actions', {'actions': [
            {'type': 'wheel', 'id': 'wheel', 'actions': [
                {'type': 'scroll', 'duration': 0, 'x': round(box[0] + x), 'y': round(box[1] + y),
                 'deltaX': 0, 'deltaY': by, 'origin': 'viewport'}]}]})

    def print(self):
        """The page on A4 paper, as PDF."""
        paper = {'page': {'width': 21.0, 'height': 29.7}}
        return base64.b64decode(self.call('POST', '/print', paper))

    def show_as(self, medium):
        """Takes the style of `print` or `screen`; '' is what it was."""
        self.call('POST', '/goog/cdp/execute', {
            'cmd': 'Emulation.setEmulatedMedia', 'params': {'media': medium}})

    def problems(self):
        """What the console has of warnings and errors."""
        log = self.call('POST', '/se/log', {'type': 'browser'})
        return [entry['message'] for entry in log if entry['level'] in ('SEVERE', 'WARNING')]

    def screenshot(self, path):
        pathlib.Path(path).write_bytes(base64.b64decode(self.call('GET', '/screenshot')))
