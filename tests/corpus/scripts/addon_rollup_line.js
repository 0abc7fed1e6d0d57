// rollup's addon at its start: it parses one line.
'use strict';
const native = require('./dist/rollup.win32-x64-msvc.node');

const tree = native.parse('export const a = 1;', false, false);
console.log(tree.length, 'bytes, done');
