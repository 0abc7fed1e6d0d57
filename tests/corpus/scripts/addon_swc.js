// swc: a small loader that unpacks a Rust compiler into memory.
'use strict';
const swc = require('./swc.node');

const options = more => Buffer.from(JSON.stringify({
	jsc: { parser: { syntax: 'typescript', tsx: true }, target: 'es5', ...more },
	sourceMaps: true, filename: 'a.tsx' }));
const minified = Buffer.from(JSON.stringify(
	{ jsc: { minify: { compress: true, mangle: true } }, minify: true }));
const source = `
enum E { A, B = 2 } abstract class K<T> {
	#x?: T = a ?? b; static { K.y **= 2; } declare z: number; async *g() { yield* [1]; } }
const e = <div {...p} k="v">{list.map(x => <b key={x}>{x}</b>)}</div>;
export { e as default }; import type { T } from 't';
for (const [a, { b = 1, ...c }] of new Map())
	label: while (a) { if (c) continue label; else break label; }
`;

console.log(swc.getTargetTriple());
console.log(swc.transformSync(source, false, options()));
console.log(swc.transformSync('function f(a, b) { var unused = 1; if (true) { return a + b; }' +
	' return 0; } f(1, 2);', false, minified));
for (const text of ['let = ;', 'class A { constructor() {} constructor() {} }', '<a></b>'])
	try {
		console.log(swc.transformSync(text, false, options()));
	} catch (error) {
		console.log(error.message.split('\n\n\nCaused by')[0]);
	}
swc.transform(source, false, options({ target: 'es2022' })).then(result => {
	console.log(result.code);
	console.log('done');
});
