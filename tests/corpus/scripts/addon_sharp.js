// sharp with libvips, by llvm-mingw, Rust and assembly: reads and writes images of all its
// formats, changes them in many ways, draws SVG, and says what is wrong.
'use strict';
const assert = require('assert');
const crypto = require('crypto');
const Module = require('module');

// What sharp asks of two small packages, which are about other systems than this.
const standIns = {
	semver: { coerce: () => ({ version: '0' }), satisfies: () => true, gte: () => true },
	'detect-libc': { familySync: () => null, versionSync: () => null,
		isNonGlibcLinuxSync: () => false },
};
const load = Module._load;
Module._load = function (name, ...rest) {
	return standIns[name] || load.call(this, name, ...rest);
};
const sharp = require('sharp');

const width = 150, height = 100, channels = 3;
const pixels = Buffer.alloc(width * height * channels);
for (let i = 0; i < pixels.length; i++)
	pixels[i] = i * 7 + (i >> 5) & 255;
const smooth = Buffer.from(pixels.map((_, i) => (i % 450 >> 1) + (i / 900 | 0) & 255));

const hash = bytes => crypto.createHash('sha256').update(bytes).digest('hex').slice(0, 24);
const picture = bytes => sharp(bytes, { raw: { width, height, channels } });

async function formats() {
	for (const [name, options] of [['png', {}], ['png', { palette: true, colours: 32 }],
		['png', { progressive: true, compressionLevel: 9, adaptiveFiltering: true }],
		['jpeg', {}], ['jpeg', { mozjpeg: true, quality: 40, chromaSubsampling: '4:4:4' }],
		['webp', {}], ['webp', { lossless: true }], ['webp', { nearLossless: true, effort: 1 }],
		['gif', { colours: 16, dither: 0.5 }], ['tiff', { compression: 'lzw', predictor: 'horizontal' }],
		['tiff', { compression: 'deflate', tile: true, pyramid: true }],
		['tiff', { compression: 'jpeg', quality: 70 }], ['avif', { effort: 2 }],
		['avif', { lossless: true, effort: 0 }]]) {
		const packed = await picture(smooth)[name](options).toBuffer();
		const { pages, exif, icc, ...facts } = await sharp(packed).metadata();
		const read = await sharp(packed).raw().toBuffer({ resolveWithObject: true });
		console.log(name, JSON.stringify(options), packed.length, hash(packed),
			JSON.stringify(facts), JSON.stringify(read.info), hash(read.data));
		if (options.lossless || name === 'png' && !options.palette)
			assert(read.info.channels === 3 && read.data.equals(smooth), name);
	}
	const png = await picture(pixels).png({ adaptiveFiltering: false }).toBuffer();
	console.log('packed', png.toString('base64'));
}

const ways = {
	cubic: x => x.resize(400, 311, { kernel: 'cubic' }),
	lanczos: x => x.resize(97, 33, { kernel: 'lanczos2', fit: 'contain' }),
	mitchell: x => x.resize(40, 120, { kernel: 'mitchell', fit: 'inside' }),
	attention: x => x.resize(60, 60, { fit: 'cover', position: 'attention' }),
	entropy: x => x.resize(60, 60, { fit: 'cover', position: 'entropy' }),
	rotate: x => x.rotate(33, { background: '#123456' }), right: x => x.rotate(90),
	affine: x => x.affine([[1, 0.3], [0.1, 0.7]], { interpolator: 'nohalo' }),
	bicubic: x => x.affine([[0.8, 0], [0.2, 1.1]], { interpolator: 'bicubic' }),
	flip: x => x.flip().flop(), trim: x => x.trim(), extend: x => x.extend({ top: 9, left: 4,
		extendWith: 'mirror' }), extract: x => x.extract({ left: 10, top: 20, width: 70, height: 55 }),
	blur: x => x.blur(3.3), quick: x => x.blur(), sharpen: x => x.sharpen({ sigma: 2, m1: 1 }),
	median: x => x.median(5), dilate: x => x.dilate(2), erode: x => x.erode(2),
	convolve: x => x.convolve({ width: 3, height: 3, kernel: [-1, 0, 1, -2, 0, 2, -1, 0, 1] }),
	clahe: x => x.clahe({ width: 30, height: 30 }), normalise: x => x.normalise(),
	gamma: x => x.gamma(2.1), negate: x => x.negate(), threshold: x => x.threshold(100),
	linear: x => x.linear(1.3, -5), tint: x => x.tint('#f80'), grey: x => x.greyscale(),
	modulate: x => x.modulate({ brightness: 1.2, saturation: 0.7, hue: 77 }),
	recomb: x => x.recomb([[0.3, 0.5, 0.2], [0.1, 0.8, 0.1], [0.2, 0.2, 0.6]]),
	lab: x => x.toColourspace('lab'), cmyk: x => x.toColourspace('cmyk'),
	wide: x => x.toColourspace('rgb16'), alpha: x => x.ensureAlpha(0.4).unflatten(),
	channel: x => x.extractChannel('green'), join: x => x.joinChannel(smooth,
		{ raw: { width, height, channels } }),
	boolean: x => x.boolean(smooth, 'eor', { raw: { width, height, channels } }),
};

async function changes() {
	const results = await Promise.all(Object.values(ways).map(way =>
		way(picture(pixels)).raw().toBuffer({ resolveWithObject: true })));
	Object.keys(ways).forEach((name, i) =>
		console.log(name, JSON.stringify(results[i].info), hash(results[i].data)));
	const { channels: seen, ...all } = await picture(smooth).stats();
	console.log(JSON.stringify(all), seen.map(c => [c.min, c.max, c.sum, c.mean, c.stdev]));
}

const drawing = Buffer.from(`<svg xmlns="http://www.w3.org/2000/svg" width="200" height="160">
	<defs><radialGradient id="g"><stop offset="0" stop-color="red"/>
	<stop offset="1" stop-color="blue" stop-opacity=".3"/></radialGradient>
	<filter id="f"><feTurbulence baseFrequency=".05" numOctaves="3"/>
	<feDisplacementMap in="SourceGraphic" scale="9"/><feGaussianBlur stdDeviation="2"/></filter>
	<clipPath id="c"><rect width="150" height="100" transform="rotate(10)"/></clipPath></defs>
	<circle cx="100" cy="80" r="70" fill="url(#g)" clip-path="url(#c)"/>
	<path d="M10 10C20 150,100 0,190 150A9 9 0 0 1 5 5Z" stroke="green" fill="none"
	stroke-width="5" stroke-dasharray="9 3" stroke-linejoin="round" filter="url(#f)"/></svg>`);

async function drawings() {
	console.log('svg', hash(await sharp(drawing, { density: 144 }).raw().toBuffer()));
	for (const blend of ['over', 'multiply', 'screen', 'overlay', 'darken', 'colour-dodge',
		'hard-light', 'soft-light', 'difference', 'exclusion', 'xor', 'dest-atop'])
		console.log(blend, hash(await picture(smooth).resize(240, 200).composite([
			{ input: drawing, blend, gravity: 'southeast' }]).raw().toBuffer()));
}

async function errors() {
	const png = await picture(pixels).png().toBuffer();
	const broken = Buffer.from(png).fill(255, 100, 200);
	for (const bytes of [Buffer.from('nonsense'), Buffer.alloc(0), broken, png.subarray(0, 900),
		Buffer.from('<svg'), Buffer.from('GIF89a\x01')])
		await assert.rejects(async () => sharp(bytes, { failOn: 'warning' }).raw().toBuffer(), error => {
			console.log(error.message.split('\n')[0]);
			return true;
		});
	assert.throws(() => picture(pixels).resize(-1), /positive integer/);
	await assert.rejects(picture(pixels).extract({ left: 9, top: 9, width: 999, height: 9 })
		.toBuffer(), /bad extract area/);
}

(async () => {
	await formats();
	await changes();
	await drawings();
	await errors();
	console.log('done');
})();
