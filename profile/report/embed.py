#!/usr/bin/env python3
"""Joins the files of the report's page into one, as C data.

usage: embed.py OUTPUT.c PAGE.html STYLE.css LIBRARY.js LICENCES SCRIPT.js...

The frame is cut where the data belong (@DATA@).  LICENCES is a folder of Debian's
copyright files, /usr/share/doc: those of the library and of all its parts are kept as a
comment in front of it.
"""

import pathlib
import re
import sys

PARTS = 'node-d3*/copyright'


def paragraphs(path):
    """Debian's machine-readable copyright file: paragraphs of fields."""
    text = path.read_text(encoding='utf-8')
    for part in re.split(r'\n\s*\n', text):
        fields = re.findall(r'^([\w-]+):(.*(?:\n[ \t].*)*)', part, re.M)
        yield {name: value.strip() for name, value in fields}


def licences(folder):
    """Who holds what, and each licence once."""
    holders, texts = [], {}
    for path in sorted(pathlib.Path(folder).glob(PARTS)):
        for fields in paragraphs(path):
            if 'Files' in fields and 'debian' not in fields['Files']:
                holders.append(f'{path.parent.name}: {fields.get("Copyright", "")} '
                               f'({fields["License"].splitlines()[0]})')
            if 'License' in fields and '\n' in fields['License']:
                texts.setdefault(fields['License'].splitlines()[0], fields['License'])
    if not holders:
        sys.exit(f'{folder}/{PARTS}: no licence found; install node-d3 with its documents')
    return '\n'.join(holders) + '\n\n' + '\n\n'.join(texts[name] for name in sorted(texts))


def script(text, comment=''):
    if re.search(r'</script|<!--', text, re.I) or '*/' in comment:
        sys.exit('a script holds what would end it')
    return f'<script>{"/*" + comment + "*/" if comment else ""}\n{text}</script>\n'


def c_array(name, data):
    lines = [','.join(map(str, data[i:i + 24])) for i in range(0, len(data), 24)]
    return (f'const char {name}[] = {{\n' + ',\n'.join(lines) + '};\n'
            f'const size_t {name}_size = sizeof({name});\n')


def main(output, page, style, library, folder, *scripts):
    def read(path):
        return pathlib.Path(path).read_text(encoding='utf-8')

    code = script(read(library), '\n' + licences(folder) + '\n')
    code += ''.join(script(read(path)) for path in scripts)
    text = read(page).replace('@STYLE@', '\n' + read(style)).replace('@SCRIPTS@', code)
    head, tail = text.split('@DATA@')
    # Bytes above 127 do not fit a signed char.
    parts = [part.encode('utf-8') for part in (head, tail)]
    signed = [[byte - 256 if byte > 127 else byte for byte in part] for part in parts]
    pathlib.Path(output).write_text(
        '/* Made by profile/report/embed.py. */\n#include "report_frame.h"\n\n'
        + c_array('report_frame_head', signed[0]) + c_array('report_frame_tail', signed[1]),
        encoding='ascii')


main(*sys.argv[1:])
