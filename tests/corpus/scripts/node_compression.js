// zlib and brotli inside node.exe.  The packed bytes are printed for Python to unpack.
'use strict';
const assert = require('assert');
const zlib = require('zlib');

let state = 12345;
const next = () => (state = (Math.imul(state, 1103515245) + 12345) & 0x7fffffff) >> 8;
const words = Array.from({ length: 300 }, () => next().toString(36));
const text = Buffer.from(Array.from({ length: 9000 }, () => words[next() % 300]).join(' '));
const noise = Buffer.from(Array.from({ length: 5000 }, () => next() & 255));

function show(name, packed) {
	console.log('packed', name, packed.toString('base64'));
}

function deflate() {
	for (const level of [0, 1, 3, 6, 9])
		for (const strategy of [zlib.constants.Z_DEFAULT_STRATEGY, zlib.constants.Z_HUFFMAN_ONLY,
			zlib.constants.Z_RLE, zlib.constants.Z_FIXED]) {
			const packed = zlib.deflateSync(text, { level, strategy });
			assert.ok(zlib.inflateSync(packed).equals(text));
			console.log('deflate', level, strategy, packed.length);
		}
	show('zlib', zlib.deflateSync(text));
	show('gzip', zlib.gzipSync(text, { level: 9 }));
	show('raw', zlib.deflateRawSync(noise));
	assert.ok(zlib.unzipSync(zlib.gzipSync(noise)).equals(noise));
	console.log('text', text.toString('base64').length, zlib.crc32 ? 'crc' : '');
}

function brotli() {
	for (const quality of [0, 4, 9, 11])
		for (const mode of [zlib.constants.BROTLI_MODE_GENERIC, zlib.constants.BROTLI_MODE_TEXT]) {
			const packed = zlib.brotliCompressSync(text.subarray(0, 20000), { params: {
				[zlib.constants.BROTLI_PARAM_QUALITY]: quality,
				[zlib.constants.BROTLI_PARAM_MODE]: mode } });
			assert.ok(zlib.brotliDecompressSync(packed).equals(text.subarray(0, 20000)));
			console.log('brotli', quality, mode, packed.length);
		}
}

function damaged() {
	const packed = zlib.gzipSync(text);
	packed[packed.length >> 1] ^= 0xff;
	for (const [name, act] of [['gunzip', () => zlib.gunzipSync(packed)],
		['inflate', () => zlib.inflateSync(Buffer.from('nothing of that kind'))],
		['short', () => zlib.inflateSync(zlib.deflateSync(text).subarray(0, 100))],
		['brotli', () => zlib.brotliDecompressSync(Buffer.from('nor of this'))]])
		assert.throws(act, error => { console.log('error', name, error.code); return true; });
}

function streams() {
	const pieces = [];
	const gzip = zlib.createGzip().on('data', piece => pieces.push(piece));
	for (let at = 0; at < text.length; at += 997)
		gzip.write(text.subarray(at, at + 997));
	gzip.end(() => setImmediate(() => {
		assert.ok(zlib.gunzipSync(Buffer.concat(pieces)).equals(text));
		console.log('done');
	}));
}

deflate();
brotli();
damaged();
streams();
