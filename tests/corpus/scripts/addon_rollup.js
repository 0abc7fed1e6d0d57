// rollup: its JavaScript around a parser and hashes in Rust.  Bundles with source maps, and
// what it says of wrong input.
'use strict';
// It would ask a child process which Windows this is.
require('child_process').spawnSync = () => ({ status: 1 });
const assert = require('assert');
const { rollup } = require('./dist/rollup.js');
const native = require('./dist/rollup.win32-x64-msvc.node');

const big = Array.from({ length: 400 }, (_, i) => `
export class C${i} extends (${i ? `C${i - 1}` : 'Object'}) {
	#secret = ${i}n; static s = \`a\${${i}}b\`;
	get x() {
		label: for (const [a, { b = ${i} }] of this.y?.z ?? []) { if (a) continue label; else break; }
		return /r${i}/gi;
	}
	async *m(...rest) {
		try { yield* await import('lazy'); } catch { throw new.target; } finally { delete rest[0]; }
	}
}
export const f${i} = ({ a, ...b }, [c, , d] = [1, , 2]) =>
	(a ||= b, c **= 2, d) ? void 0 : typeof a;
export default${i ? i : ''} ${i ? '= 1' : 'function () { debugger; }'};`
	.replace(/export default\d+ = 1;/, '')).join('');

const modules = {
	main: `import d, { C3, f7 } from 'big'; import * as all from 'small';
		import data from './data.json' with { type: 'json' };
		console.log(d, new C3(), f7, all.used, data); export { all }; export * from 'small';
		import('lazy').then(x => x.late());`,
	small: `export const used = /*#__PURE__*/ Math.max(1, 2); export let unused = 3;
		export function late() { return import.meta.url; }`,
	lazy: `export { late } from 'small'; if (false) { console.log('dead'); }
		switch (globalThis.x) { case 1: var hoisted; default: hoisted = 2; }`,
	'./data.json': 'export default { "a": [1, null, "\\u{1f600}\\x41"] };',
	big,
};

const plugin = files => ({
	name: 'memory', resolveId: id => id in files ? id : null, load: id => files[id] });

async function bundle(format) {
	const warnings = [];
	const made = await rollup({ input: 'main', plugins: [plugin(modules)],
		onwarn: w => warnings.push(w.code), treeshake: format !== 'system' });
	const { output } = await made.generate({ format, sourcemap: true, dir: 'out', hashCharacters: 'hex',
		entryFileNames: '[name]-[hash].js', chunkFileNames: '[name]-[hash].js' });
	for (const part of output)
		console.log(format, part.fileName, part.type === 'chunk' ? part.code : String(part.source));
	console.log(warnings);
	await made.close();
}

async function wrong(name, text) {
	const made = await rollup({ input: 'm', plugins: [plugin({ m: text })],
		onwarn: w => console.log('warned', w.message) })
		.then(b => b.generate({ format: 'es' })).catch(error => error);
	console.log(name, made.code, made.message, made.pos, made.loc, made.frame);
}

async function main() {
	for (const format of ['es', 'cjs', 'system'])
		await bundle(format);
	await wrong('syntax', 'let a = 1;\nlet b = ;\n');
	await wrong('twice', 'let a = 1; let a = 2;');
	await wrong('end', 'export function f() { return `${1');
	await wrong('missing', 'import { no } from "m"; no();');
	await wrong('number', 'const x = 0b12, y = 1_000_, z = 08n;');
	await wrong('regex', 'const r = /(/u; break;');
	await wrong('deep', '('.repeat(300) + '1' + ')'.repeat(300));
	for (const text of ['', 'abc', 'x'.repeat(5000), '\u00e4\u{1f600}'])
		for (const name of Object.keys(native).filter(n => /^xxhash/.test(n)).sort())
			console.log(name, native[name](Buffer.from(text)));
	const parsed = native.parse(big, false, true);
	console.log(parsed.length, require('crypto').createHash('sha1').update(parsed).digest('hex'));
	assert.ok((await native.parseAsync(big, false, false)).length > 1000);
	assert.throws(() => native.parse());
	console.log('done');
}

main();
