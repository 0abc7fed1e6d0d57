// V8 and ICU inside node.exe: interpreter, optimizing compilers, regular expressions,
// exceptions with their stacks, numbers, dates and collation.
'use strict';
const assert = require('assert');
const util = require('util');
const vm = require('vm');

const frames = error => error.stack.split('\n').map(line => line.replace(/\(?[A-Za-z]:\\.*\\/, '('));

function optimized() {
	const sieve = new Uint8Array(200000);
	let primes = 0;
	for (let i = 2; i < sieve.length; i++) {
		if (sieve[i])
			continue;
		primes++;
		for (let j = i * 2; j < sieve.length; j += i)
			sieve[j] = 1;
	}
	let float = 0;
	for (let i = 1; i < 300000; i++)
		float += Math.sin(i) / i + Math.pow(i, -1.5) + Math.atan2(i, 7) * 1e-9;
	const fib = n => n < 2 ? n : fib(n - 1) + fib(n - 2);
	const shapes = [{ a: 1 }, { b: 2, a: 3 }, { c: 0, b: 0, a: 5 }, [7], 'nine',
		{ get a() { return 11; } }];
	let sum = 0;
	for (let i = 0; i < 200000; i++)
		sum += shapes[i % 6].a || shapes[i % 6].length;
	console.log(primes, float.toFixed(9), fib(24), sum, 2n ** 300n % 1000007n,
		(123456789n ** 20n).toString(36));
}

function expressions() {
	const text = ('On 2021-12-26 and 1999-01-31, \u00e4pfel & \u{1f600} cost 12,50 or 3.75; ' +
		'foo(bar(baz))').repeat(50);
	console.log(text.replace(/(?<y>\d{4})-(?<m>\d\d)-(?<d>\d\d)/g, '$<d>.$<m>.$<y>')
		.slice(0, 60));
	console.log([...text.matchAll(/\p{L}+/gu)].length, text.split(/\b(?=\w)/).length,
		text.match(/(?<=\()\w+/g).length, /^(?:a+)+$/.test('a'.repeat(20) + 'b'),
		/(\w)\1/.exec(text)[0]);
	console.log('x'.replace(/(?:(a)|b|x)*?$/y, '[$1]'), 'aBc'.replace(/[a-z]/gi, c => c.charCodeAt(0)),
		text.search(/[^\x00-\x7f]/), RegExp('(' + 'a|'.repeat(300) + 'b)').exec('cab').index);
	assert.throws(() => new RegExp('('), SyntaxError);
}

function deep(n) {
	return n ? deep(n - 1) : (() => { throw new RangeError('at the bottom'); })();
}

function exceptions() {
	const told = [];
	for (const act of [() => deep(3), () => null.x, () => undefinedName, () => JSON.parse('{"a":'),
		() => new Array(-1), () => { throw { plain: 'object' }; }, () => vm.runInNewContext('let ='),
		() => decodeURIComponent('%'), () => 'x'.repeat(2 ** 30), () => 1n + 1, () => Symbol() + '',
		() => { const endless = () => endless() + 1; return endless(); }])
		try {
			act();
		} catch (error) {
			told.push(error instanceof Error || error.name ? `${error.name}: ${error.message}` : error);
			if (error.message === 'at the bottom')
				console.log(frames(error).slice(0, 6).join('\n'));
		} finally {
			told.push('finally');
		}
	console.log(told);
}

function international() {
	const number = 1234567.891;
	for (const locale of ['en-US', 'de-DE', 'ar-EG', 'hi-IN', 'ja-JP'])
		console.log(locale,
			new Intl.NumberFormat(locale, { style: 'currency', currency: 'EUR' }).format(number),
			new Intl.DateTimeFormat(locale,
				{ dateStyle: 'full', timeStyle: 'long', timeZone: 'Asia/Tokyo' })
				.format(new Date(86400000 * 365)),
			new Intl.PluralRules(locale).select(2),
			new Intl.RelativeTimeFormat(locale).format(-3, 'month'),
			['z', '\u00e4', 'a', 'Z'].sort(new Intl.Collator(locale).compare).join(''));
	console.log([...new Intl.Segmenter('th', { granularity: 'word' })
		.segment('\u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35\u0e0a\u0e32\u0e27\u0e42\u0e25\u0e01')].length,
	'\u0041\u030a'.normalize('NFC').length, 'I\u0307'.toLocaleLowerCase('tr'), '\u00df'.toUpperCase());
}

function structures() {
	const value = { list: [1, 2.5, -0, NaN, 1e21, 5e-324], map: new Map([[{ a: 1 }, new Set('abc')]]),
		date: new Date(0), typed: new Float64Array([0.1, 0.2]), nested: { a: { b: { c: { d: 1 } } } },
		big: 10n ** 25n, text: '\u2028"\\\n', error: new TypeError('x').message };
	console.log(util.inspect(value, { depth: 9 }));
	console.log(JSON.stringify({ ...value, map: 0, big: 0 }, null, 1));
	const copy = structuredClone(value);
	assert.deepStrictEqual(copy, value);
	const list = Array.from({ length: 5000 }, (_, i) => ({ key: (i * 7919) % 5003, i }));
	console.log(list.sort((a, b) => a.key - b.key).slice(100, 103), list.findLast?.(x => x.key < 9).i);
	const { buffer } = new Uint8Array([1, 2, 3, 4, 5, 6, 7, 8]);
	console.log(new DataView(buffer).getFloat64(0), new DataView(buffer).getBigInt64(0, true));
	console.log(Buffer.from('\u{1f600}gr\u00fc\u00dfe').toString('base64'), encodeURIComponent('\u20ac'),
		new URL('http://b\u00fccher.example:80/%7Efoo/../bar?q=\u00e9#x').href);
}

async function later() {
	const order = [];
	const immediate = new Promise(done =>
		setImmediate(() => { order.push('immediate'); done(); }));
	process.nextTick(() => order.push('tick'));
	Promise.resolve().then(() => order.push('micro'));
	await immediate;   // on a busy machine timers may be due before it
	await Promise.all([30, 10, 20].map(ms => new Promise(done =>
		setTimeout(() => { order.push(ms); done(); }, ms * 5))));
	async function* numbers() {
		for (let i = 0; i < 3; i++)
			yield i;
	}
	for await (const n of numbers())
		order.push(n);
	console.log(order);
	await assert.rejects(Promise.any([Promise.reject(new Error('a')),
		Promise.reject(new Error('b'))]), AggregateError);
}

function webassembly() {
	// (func (export "f") (param i32) (result i32): sum of 1 to n by a loop)
	const code = Uint8Array.from([0, 97, 115, 109, 1, 0, 0, 0, 1, 6, 1, 96, 1, 127, 1, 127,
		3, 2, 1, 0, 7, 5, 1, 1, 102, 0, 0, 10, 27, 1, 25, 1, 1, 127, 3, 64, 32, 1, 32, 0, 106,
		33, 1, 32, 0, 65, 1, 107, 34, 0, 13, 0, 11, 32, 1, 11]);
	console.log('wasm', new WebAssembly.Instance(new WebAssembly.Module(code)).exports.f(1000));
	assert.throws(() => new WebAssembly.Module(code.subarray(0, 50)), WebAssembly.CompileError);
}

optimized();
expressions();
exceptions();
international();
structures();
webassembly();
later().then(() => {
	console.log('done');
	throw new Error('last words');
});
process.on('uncaughtException', error => {
	console.log('uncaught', error.message);
	process.exitCode = 13;
});
process.on('exit', code => console.log('exit', code));
