// lightningcss: minifies, lowers nesting and colours for old browsers, bundles, and says what
// is wrong.
'use strict';
// Its pool of threads runs into its own locks now and then, which another run does not do.
process.env.RAYON_NUM_THREADS = '1';
const assert = require('assert');
const fs = require('fs');
const css = require('./node/index.js');

const sheet = `
@import url("other.css") layer(base) supports(display: grid) screen and (width >= 600px);
@charset "utf-8"; @namespace svg url(http://www.w3.org/2000/svg);
:root { --brand: lab(52.2% 40.1 59.9); --space: calc(2 * (3px + 1em)); }
.card, .card > a:is(:hover, :focus-visible):not(.off) { color: rgb(255 0 0 / 50%);
  background: linear-gradient(to right, red 0%, #00ff00 50%, hsl(240deg 100% 50%) 100%)
    no-repeat center / cover;
  margin: 0px 0px 0px 0px; padding-left: 10px; padding-right: 10px;
  transition: all 300ms ease-in-out 0s, color .5s cubic-bezier(.1,.7,1,.1);
  & .title { font: italic bold 1.2em/2 "Fira Sans", sans-serif; &::before { content: "\\201C"; }
    @media (prefers-color-scheme: dark) { color: oklch(70% 0.1 200); } }
  @nest .dark & { border: 1px solid currentColor; }
  inset: 1px 2px 3px 4px; user-select: none; }
@media (100px <= width <= 200px) and (resolution > 2dppx), not print {
  .a { color: color-mix(in lab, red 30%, blue); } .a { color: light-dark(#fff, #000); } }
@supports (display: grid) and (not (display: inline-grid)) { .grid { display: grid;
  grid-template: [start] "a b" 1fr [mid] "c d" minmax(10px, 2fr) [end] / auto repeat(2, 1fr); } }
@font-face { font-family: X; src: url(x.woff2) format("woff2"), local(X);
  unicode-range: U+0025-00FF, u+4?? ; }
@keyframes spin { from { transform: rotate(0deg) translate3d(0,0,0) }
  50.5% { transform: scale(1.5,1.5) } to { transform: matrix(1,0,0,1,10,20) } }
@container side (min-width: 400px) { .b { animation: spin 1s linear infinite; } }
@layer base, theme; @layer theme { .c { all: unset; } }
@property --x { syntax: '<length>+'; inherits: false; initial-value: 1px; }
@page :first { margin: 1in; @top-left { content: counter(page); } }
@counter-style thumbs { system: cyclic; symbols: "\\1F44D"; suffix: " "; }
a[href^='http' i]:nth-child(2n + 1 of .x)::part(foo) {
  clip-path: polygon(0 0, 100% 0, 50% 100%); mask: url(m.svg) luminance; }
`;

// In Rust's order, which is another one each time.
const sorted = exports => exports && Object.keys(exports).sort().map(name => [name, exports[name]]);

// Prints what an error says, up to what depends on the machine.
const toldUpTo = end => error => {
	console.log(error.message.split(end)[0]);
	return true;
};

function transforms() {
	for (const [name, more] of [
		['plain', {}],
		['minify', { minify: true, sourceMap: true }],
		['old', { minify: true, targets: { chrome: 60 << 16, safari: 9 << 16, ie: 11 << 16 } }],
		['new', { targets: { chrome: 120 << 16, firefox: 120 << 16 } }],
		['modules', { cssModules: { pattern: '[local]_[hash]', dashedIdents: true },
			minify: true }],
		['dependencies', { analyzeDependencies: true }],
		['visitor', { visitor: { Color: c => c.type === 'rgb' ? { ...c, r: 1 } : undefined,
			Length: l => ({ unit: 'px', value: l.value * 2 }),
			Selector: s => [...s, { type: 'class', name: 'seen' }] } }],
		['drafts', { drafts: { customMedia: true }, nonStandard: { deepSelectorCombinator: true },
			errorRecovery: true }],
	]) {
		const result = css.transform({ filename: 'a.css', code: Buffer.from(sheet), ...more });
		console.log(name, result.code.toString(), result.map ? result.map.toString() : '',
			JSON.stringify([sorted(result.exports), result.dependencies, result.warnings]));
	}
	for (let i = 0, code = sheet; i < 3; i++) {
		code = code.repeat(3).replace(/@(import|charset|namespace)[^;]*;/g, '');
		code = css.transform({ filename: 'a.css', code: Buffer.from(code), minify: true })
			.code.toString();
		console.log('again', code.length);
	}
	console.log(css.transformStyleAttribute({
		code: Buffer.from('color: #ff0000; margin: 0 0 0 0'), minify: true }).code.toString());
}

function errors() {
	for (const [name, code] of Object.entries({ open: 'a { color: ', close: 'a{b:c}}} x{',
		selector: 'a >> b:not( { }', media: '@media (width >) { }', string: 'a { b: "c\n }',
		nesting: 'a { &b& { } } & &', import: 'a{} @import "x" foo(;',
		keyframes: '@keyframes { }', unicode: '\u{1f600}{\u0000}' }))
		try {
			console.log(name, css.transform({ filename: 'b.css', code: Buffer.from(code) })
				.code.toString());
		} catch (error) {
			console.log(name, error.message, error.loc, error.data);
		}
	assert.throws(() => css.transform({}), toldUpTo('\n'));
	assert.throws(() => css.transform({ filename: 'c.css', code: Buffer.from(sheet),
		visitor: { Color() { throw new Error('by the visitor'); } } }), /by the visitor/);
}

async function bundles() {
	fs.mkdirSync('sheets', { recursive: true });
	fs.writeFileSync('sheets/main.css',
		'@import "./part.css" layer(x); @import "./part.css" print; .m { color: yellow }');
	fs.writeFileSync('sheets/part.css',
		'.p { composes: q from "./q.css"; color: rebeccapurple }');
	fs.writeFileSync('sheets/q.css', '.q { margin: 1px 1px }');
	console.log(css.bundle({ filename: 'sheets/main.css', minify: true }).code.toString());
	const result = await css.bundleAsync({ filename: 'main', resolver: {
		read: f => f === 'main' ? '@import "b"; a{b:c}' : 'd{e:f}', resolve: s => s } });
	console.log(result.code.toString());
	await assert.rejects(css.bundleAsync({ filename: 'main',
		resolver: { read() { throw new Error('unread'); } } }), /unread/);
	assert.throws(() => css.bundle({ filename: 'sheets/none.css' }), toldUpTo('('));
}

transforms();
errors();
bundles().then(() => console.log('done'));
