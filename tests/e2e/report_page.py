#!/usr/bin/env python3
"""The page of `appulse-profile report --html` in a real browser.

usage: report_page.py MADE_TRACE PROFILE_TOOL [SCREENSHOT_FOLDER]

A database of 2,000 functions with hostile names is made, the page is opened from disk, and
its figures are held against those of --json.  With a folder, screenshots are left there.
"""

import json
import pathlib
import random
import sqlite3
import subprocess
import sys
import tempfile

from browser import Browser

HOSTILE = ["</script><script>document.title='broken'</script>", '<img src=x onerror=alert(1)>',
           '<!--<script>', '"quoted" & \'single\'', 'back\\slash', 'new\nline', 'tab\there',
           '\u2028separator', 'gr\u00fc\u00df\u4e16\u754c', '{{x}} ${y}', '\x1b[31mred']
BAD_BYTES = b'bad\xff\xfe\xc3(bytes'
FUNCTIONS = 2000
PARTS = ['summary', 'map', 'touches', 'faults', 'functions', 'runs', 'differences']
SECOND = 10 ** 9
BEGIN = 978307200 * SECOND

failed = []


def check(what, found, expected):
    if found != expected:
        failed.append(what)
        print(f'not ok: {what}: {found!r}, expected {expected!r}')


def names(count):
    for i in range(count):
        yield HOSTILE[i] if i < len(HOSTILE) else f'function_{i}'


def make_database(path, made_trace, runs=3, count=FUNCTIONS):
    """Two scenarios over an image, a relink that lays the touched functions in front."""
    for image in 'out.dll', 'app.dll':
        subprocess.run([made_trace, 'image', path, image, '1000:16:f'], check=True)
    chance = random.Random(1)
    database = sqlite3.connect(path)
    ids = dict(database.execute('SELECT name, id FROM images'))
    database.execute('DELETE FROM functions')
    functions, rva = [], 0x1000
    for i, name in enumerate(names(count)):
        size = chance.choice([16, 100, 700, 3000])
        pins = None if i % 40 else 'hidden-reference,code-constant'
        functions.append((ids['app.dll'], rva, size, name, pins is None, pins))
        rva += size + 15 & ~15
    database.executemany('INSERT INTO functions(image, rva, size, name, movable, pins)'
                         ' VALUES(?, ?, ?, ?, ?, ?)', functions)
    database.execute('UPDATE images SET size = ? WHERE id = ?', (rva, ids['app.dll']))
    database.execute('UPDATE functions SET name = CAST(? AS TEXT) WHERE rva = ?',
                     (BAD_BYTES, functions[len(HOSTILE)][1]))
    hot = [*range(20), *chance.sample(range(20, count), count // 4)]
    for r in range(runs):
        order = [f for f in hot if f < 20 or chance.random() < 0.8]
        for _ in range(20):
            moved = order.pop(chance.randrange(20, len(order)))
            order.insert(chance.randrange(20, len(order)), moved)
        add_run(database, chance, ids['app.dll'], r, ['start', 'pr<i>nt'][r % 2],
                [functions[f] for f in order])
    database.execute("INSERT INTO relinks VALUES(1, ?, ?, 'first-touch', NULL, 'exchange')",
                     (ids['app.dll'], ids['out.dll']))
    new, ranks = 0x1000, {f: i for i, f in enumerate(hot)}
    for f in sorted(range(FUNCTIONS), key=lambda f: ranks.get(f, count + f)):
        database.execute('INSERT INTO moves VALUES(1, ?, ?, ?)',
                         (functions[f][1], new, functions[f][2]))
        new += functions[f][2] + 15 & ~15
    database.commit()
    database.close()


def add_run(database, chance, image, number, scenario, functions):
    run = database.execute(
        'INSERT INTO runs(identity, kind, scenario, weight, started_ns) VALUES(?, ?, ?, 1, ?)',
        (f'run {number}', 'trace', scenario, BEGIN + number * SECOND)).lastrowid
    process = database.execute('INSERT INTO processes(run, pid, started_ns) VALUES(?, ?, ?)',
                               (run, 100 + number, BEGIN + number * SECOND)).lastrowid
    trace = database.execute('INSERT INTO traces(process, image, identity, records, incomplete)'
                             ' VALUES(?, ?, ?, ?, 0)',
                             (process, image, f'trace {number}', len(functions))).lastrowid
    time = SECOND // 10
    for seq, function in enumerate(functions, 1):
        time += chance.choice([1000, 20000, 500000])
        database.execute('INSERT INTO touches VALUES(?, ?, ?, ?, ?)',
                         (trace, seq, function[1], 101 + seq % 3, time))


def text_of(browser, selector):
    return browser.run('return [...document.querySelectorAll(arguments[0])]'
                       '.map((e) => e.textContent)', selector)


def rows_of(browser, table):
    return browser.run('return [...document.querySelectorAll(arguments[0] + " tbody tr")]'
                       '.map((r) => [...r.cells].map((c) => c.textContent))', table)


def thousands(n):
    return f'{n:,}'


def change(before, after):
    return f'{"−" if after < before else "+" if after > before else ""}' \
           f'{abs(100 * (after - before) / before):.1f} %'


def go_to(browser, part):
    """Parts are drawn when they come into sight."""
    browser.run('document.getElementById(arguments[0]).scrollIntoView()', part)
    browser.wait(f'document.getElementById("{part}").dataset.drawn', f'{part} is drawn')


def drawn(browser):
    return browser.run('return [...document.querySelectorAll("section[data-drawn]")]'
                       '.map((s) => s.id)')


def check_opening(browser):
    """Opening draws what is seen, and what lies below only when it is looked for."""
    browser.run('return new Promise((done) => requestAnimationFrame(() => '
                'requestAnimationFrame(done)))')
    check('the part in sight is drawn', 'summary' in drawn(browser), True)
    check('parts far below are not', {'functions', 'runs', 'differences'} & {*drawn(browser)},
          set())
    check('what only they need is not worked out', browser.run(
        'return ["names", "coverage", "touchedBy"].filter((key) => '
        '!Object.getOwnPropertyDescriptor(App.image, key).get)'), [])
    for part in PARTS:
        go_to(browser, part)
    check('all parts are drawn', drawn(browser), PARTS)


def check_summary(browser, image):
    tiles = text_of(browser, '#tiles b')
    check('tiles', tiles, [thousands(image[key]) for key in (
        'functions', 'functions_touched', 'functions_never_touched', 'movable_functions')]
        + [str(len(image['runs']))])
    relink = image['relinks'][0]
    check('summary', rows_of(browser, '#summary-table')[0],
          ['pages of touched functions', thousands(image['linked_pages']),
           thousands(relink['linked_pages']),
           change(image['linked_pages'], relink['linked_pages']), thousands(image['floor_pages'])])
    check('pins', rows_of(browser, '#pins-table'),
          [[p['reason'], thousands(p['functions']), thousands(p['bytes'])] for p in image['pins']])
    check('runs', rows_of(browser, '#run-table'),
          [[str(r['run']), r['scenario'], '1', *(thousands(r[key]) for key in (
              'functions_touched', 'bytes_touched', 'linked_pages', 'floor_pages', 'processes',
              'threads'))] for r in image['runs']])


def check_faults(browser, image):
    for cluster in {p['cluster'] for p in image['predictions']}:
        browser.run('const c = document.getElementById("cluster"); c.value = arguments[0];'
                    'c.dispatchEvent(new Event("change"))', str(cluster))
        last = image['runs'][-1]['run']
        rows = [p for p in image['predictions'] if (p['run'], p['cluster']) == (last, cluster)]
        found = [row[1:3] for row in rows_of(browser, '#fault-table')]
        check(f'faults of cluster {cluster}', found,
              [[thousands(p['pages']), thousands(p['faults'])] for p in rows])
        check(f'curves of cluster {cluster}', text_of(browser, '#fault-chart .curve title'),
              [f'{"first-touch, exchange" if p["relink"] else "as linked"}: {p["faults"]} faults'
               for p in rows])


def shown_functions(browser):
    return text_of(browser, '#function-table .body .row > :first-child')


def check_functions(browser, image):
    check('all functions', text_of(browser, '#function-count'),
          [f'{thousands(FUNCTIONS)} of {thousands(FUNCTIONS)} functions'])
    check('hostile names', shown_functions(browser)[:len(HOSTILE)], HOSTILE)
    check('bytes that are no text', shown_functions(browser)[len(HOSTILE)], 'bad???(bytes')
    check('rows in the page', len(shown_functions(browser)) < 60, True)
    browser.type('#search', 'function_1999')
    browser.wait('document.getElementById("function-count").textContent.startsWith("1 of")',
                 'search')
    check('found', shown_functions(browser), ['function_1999'])
    browser.run('const s = document.getElementById("search"); s.value = "";'
                's.dispatchEvent(new Event("input"))')
    browser.wait('document.getElementById("function-count").textContent.startsWith("2,000 of")',
                 'search is over')
    browser.click('#function-table [role=columnheader]:nth-child(3) button')
    sizes = [int(t.replace(',', '')) for t in text_of(
        browser, '#function-table .body .row > :nth-child(3)')]
    check('sorted by size', sizes, sorted(sizes, reverse=True))
    check('the largest first', sizes[0], 3000)
    check('order is told', browser.run('return document.querySelector("#function-table '
          '[role=columnheader]:nth-child(3)").getAttribute("aria-sort")'), 'descending')
    browser.run('document.querySelector("#function-table .body").scrollTop = 1e9')
    browser.wait('[...document.querySelectorAll("#function-table .body .row")].pop()'
                 '.getAttribute("aria-rowindex") === "2001"', 'scrolled to the end')
    browser.click('#never button')
    check('never touched', text_of(browser, '#function-count'),
          [f'{thousands(image["functions_never_touched"])} of {thousands(FUNCTIONS)} functions'])


def check_map(browser, image):
    captions = text_of(browser, '#maps figcaption')
    last = [p for p in image['predictions'] if p['run'] == image['runs'][-1]['run']
            and p['cluster'] == 1]
    check('pages touched in the maps', [caption.split(': ')[1].split(' of ')[0]
                                        for caption in captions],
          [thousands(p['pages']) for p in last])
    browser.point('#maps canvas', 4, 4)
    tip = browser.run('return document.getElementById("tip").textContent')
    check('hover on a page', tip.startswith('as linked, page 0x1000: first touched at 0'), True)
    check('hover names functions', HOSTILE[1] in tip, True)
    browser.run('document.querySelector("#maps canvas").focus()')
    browser.type('#maps canvas', '\ue014')  # arrow right
    detail = browser.run('return document.getElementById("page-detail").textContent')
    check('the next page by key', 'page 0x2000:' in detail, True)


def check_zoom(browser):
    domain = 'return App.scatter.scales(App.scatter.panels[0].canvas.clientWidth).x.domain()'
    whole = browser.run(domain)
    browser.wheel('#scatters canvas', 200, 100, -300)
    browser.wait('App.scatter.transform.k > 1', 'zoom by wheel')
    near = browser.run(domain)
    check('zoomed in', near[1] - near[0] < whole[1] - whole[0], True)
    browser.click('#zoom-reset')
    check('whole again', browser.run(domain), whole)
    browser.run("""const [left, right] = App.scatter.stripX.range();
        const box = document.querySelector('#strip .overlay').getBoundingClientRect();
        const at = (share, type, target) => target.dispatchEvent(new MouseEvent(type, {
          bubbles: true, cancelable: true, view: window, clientX: box.left + share * box.width,
          clientY: box.top + 10}));
        at(0.25, 'mousedown', document.querySelector('#strip .overlay'));
        at(0.5, 'mousemove', window); at(0.5, 'mouseup', window);""")
    part = browser.run(domain)
    # To a pixel or two of the strip.
    near = [abs(t / whole[1] - share) < 0.01 for t, share in zip(part, (0.25, 0.5))]
    check(f'brushed to a quarter ({part} of {whole})', near, [True, True])
    browser.click('#zoom-reset')
    touch = browser.run("""const s = App.scatter; const t = s.touches;
        const c = s.panels[0].canvas; const k = s.scales(c.clientWidth);
        return [k.x(t.ms[100]), k.y(s.panels[0].rva[t.f[100]])]""")
    browser.point('#scatters canvas', touch[0], touch[1])
    browser.wait('!document.getElementById("tip").hidden', 'hover on a touch')
    tip = browser.run('return document.getElementById("tip").textContent')
    check('a touch is named', ' bytes: ' in tip and 'thread 10' in tip, True)


def touched(path, run):
    database = sqlite3.connect(path)
    found = [row[0] for row in database.execute(
        'SELECT rva FROM v_first_touch WHERE run = ? ORDER BY seq', (run,))]
    database.close()
    return found


def longest_rising(values):
    """The naive way, in square time."""
    best = []
    for i, v in enumerate(values):
        best.append(1 + max((best[k] for k in range(i) if values[k] < v), default=0))
    return max(best, default=0)


def check_differences(browser, before, after, told):
    """`before` and `after` are the RVAs in their order, `told` what --json says of them."""
    common = [rva for rva in after if rva in set(before)]
    places = {rva: i for i, rva in enumerate(before)}
    moved = len(common) - longest_rising([places[rva] for rva in common])
    check('some have moved', moved > 0, True)
    check('differences', text_of(browser, '#diff-tiles b'),
          [thousands(n) for n in (len(set(after) - set(before)), len(set(before) - set(after)),
                                  moved, len(common))])
    check('differences of --json', [told[key] for key in ('new', 'gone', 'moved', 'common')],
          [len(set(after) - set(before)), len(set(before) - set(after)), moved, len(common)])
    rows = browser.run('return App.differences.rows.map((r) => [r.what, '
                       'Data.rvaOf(App.image, r.f), Data.sizeOf(App.image, r.f), r.from, r.to])')
    check('each difference', sorted(map(str, rows)), sorted(str([
        f[key] for key in ('what', 'rva', 'size', 'from', 'to')]) for f in told['functions']))


def check_access(browser):
    check('controls without a label', browser.run(
        'return [...document.querySelectorAll("select, input")].filter((e) => !e.labels.length)'
        '.map((e) => e.id)'), [])
    check('drawings without a text', browser.run(
        'return [...document.querySelectorAll("main canvas, main > section > svg")].filter((e) => '
        '!e.closest("[hidden]") && !e.getAttribute("aria-label") && '
        '!e.getAttribute("aria-labelledby")).length'), 0)
    check('what is loaded from elsewhere', browser.run(
        'return performance.getEntriesByType("resource").map((e) => e.name)'), [])


def check_paper(browser, page):
    """All of it is printed, dark on white, without what only a screen can do."""
    browser.open(page)
    browser.wait('document.documentElement.dataset.ready', 'the page')
    browser.run("""addEventListener('beforeprint', () => { window.paper = {
        drawn: [...document.querySelectorAll('section[data-drawn]')].map((s) => s.id),
        ground: getComputedStyle(document.body).backgroundColor,
        ink: getComputedStyle(document.body).color,
        rows: document.querySelectorAll('#function-table .body .row').length,
        rest: document.querySelector('#function-table .empty').textContent}; });""")
    check('a document', browser.print()[:5], b'%PDF-')
    paper = browser.run('return window.paper')
    rows = paper.pop('rows')
    check('printed', paper, {'drawn': PARTS, 'ground': 'rgb(255, 255, 255)',
                             'ink': 'rgb(27, 31, 36)',
                             'rest': f'and {thousands(FUNCTIONS - rows)} more'})
    check('more rows than on the screen', rows > 60, True)
    go_to(browser, 'functions')
    browser.wait('!document.querySelector("[data-paper], #function-table .empty")',
                 'the screen again')
    browser.show_as('print')
    browser.run('dispatchEvent(new Event("beforeprint"))')
    check('what makes no sense on paper', browser.run(
        'return [...document.querySelectorAll("button, nav, .hint, .detail, #search, .tip")]'
        '.filter((e) => e.checkVisibility() && !e.closest(".head")).map((e) => e.outerHTML)'), [])
    check('what was chosen is told', browser.run(
        'return ["run", "relink", "cluster"].map((id) => '
        'document.getElementById(id).checkVisibility())'), [True] * 3)
    check('what is cut off', browser.run(
        'return [...document.querySelectorAll(".grid, .grid .body, .grid .row > *, .scroll")]'
        '.filter((e) => getComputedStyle(e).overflow !== "visible").length'), 0)
    browser.run('dispatchEvent(new Event("afterprint"))')
    browser.show_as('')
    check('console', browser.problems(), [])


def check_big(folder, made_trace, tool):
    """100,000 functions and 20 runs: the file stays small, and the browser shows it."""
    path, page = folder / 'big.db', folder / 'big.html'
    make_database(path, made_trace, 20, 100000)
    subprocess.run([tool, 'report', '--db', path, '--html', page], check=True, capture_output=True)
    size = page.stat().st_size
    check(f'{size} bytes are below 15 MB', size < 15000000, True)
    with Browser() as browser:
        browser.open(page)
        browser.wait('document.documentElement.dataset.ready', 'the big page')
        check_opening(browser)
        check('all of the functions', text_of(browser, '#function-count'),
              ['100,000 of 100,000 functions'])
        check('console', browser.problems(), [])


def look(browser, page, image, path, told):
    browser.open(page)
    browser.wait('document.documentElement.dataset.ready', 'the page')
    check('title', browser.run('return document.title'), 'Appulse report: app.dll')
    check_opening(browser)
    check_summary(browser, image)
    check_functions(browser, image)
    check_map(browser, image)
    check_zoom(browser)
    check_faults(browser, image)
    runs = [run['run'] for run in image['runs']]
    check_differences(browser, touched(path, runs[-2]), touched(path, runs[-1]), told)
    check_access(browser)
    check('wider than the window', browser.run(
        'return document.documentElement.scrollWidth - innerWidth'), 0)
    check('console', browser.problems(), [])


def take_screenshots(page, folder):
    for width, dark in ((1280, False), (1280, True), (420, False), (420, True)):
        with Browser(width, 1000, dark) as browser:
            browser.open(page)
            browser.wait('document.documentElement.dataset.ready', 'the page')
            for part in PARTS:
                go_to(browser, part)
            height = browser.run('return document.documentElement.scrollHeight')
            browser.call('POST', '/window/rect', {'width': width, 'height': min(height, 6000)})
            browser.wait(f'innerWidth <= {max(width, 500)}', 'the size')
            browser.screenshot(pathlib.Path(folder) /
                               f'report-{width}-{"dark" if dark else "light"}.png')


def main(made_trace, tool, screenshots=None):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        path, other, page = folder / 't.db', folder / 'other.db', folder / 'report.html'
        make_database(path, made_trace)
        make_database(other, made_trace, 1)

        def report(*words):
            return subprocess.run([tool, 'report', '--db', path, *words], check=True,
                                  capture_output=True).stdout

        def differences(*words):
            """Of the image with functions."""
            told = json.loads(report('--json', *words))['differences']
            return next(d for d in told if d['image'] == image['image'])

        image = next(i for i in json.loads(report('--json'))['images'] if i['functions'])
        told = differences('--from-run', str(image['runs'][-2]['run']))
        report('--html', page)
        once = page.read_bytes()
        report('--html', page, '--force')
        check('the same page again', page.read_bytes() == once, True)
        with Browser() as browser:
            look(browser, page, image, path, told)
        with Browser(420, 900, dark=True) as browser:
            look(browser, page, image, path, told)
            check_paper(browser, page)
        report('--html', page, '--force', '--against', other)
        with Browser() as browser:
            browser.open(page)
            browser.wait('document.documentElement.dataset.ready', 'the page')
            go_to(browser, 'differences')
            check_differences(browser, touched(other, 1), touched(path, image['runs'][-1]['run']),
                              differences('--against', other))
            check('console', browser.problems(), [])
        # The run that was asked for is chosen on the page too.
        runs = [run['run'] for run in image['runs']]
        for words, where in (['--from-run', str(runs[0])], 0), (
                ['--from-run', str(runs[0]), '--against', other], len(runs)):
            report('--html', page, '--force', *words)
            with Browser() as browser:
                browser.open(page)
                browser.wait('document.documentElement.dataset.ready', 'the page')
                check(' '.join(map(str, words)),
                      browser.run("return document.getElementById('diff-from').value"),
                      str(where))
        check_big(folder, made_trace, tool)
        if screenshots:
            take_screenshots(page, screenshots)
    return 1 if failed else 0


sys.exit(main(*sys.argv[1:]))
