// node-pty: the addons for pseudo consoles, and as much of them as Wine lets run.
'use strict';
const fs = require('fs');
const conpty = require('./prebuilds/win32-x64/conpty.node');
const winpty = require('./prebuilds/win32-x64/pty.node');
const list = require('./prebuilds/win32-x64/conpty_console_list.node');

// Under Wine the agent of winpty dies; on a busy machine the wait for it ends before that.
const plain = text => String(text).replace(/Z:\\\S*\\/gi, '').replace(/\d{3,}/g, 'N')
	.replace(/agent (died|timed out)/, 'agent failed').split('\n')[0];

function attempt(name, act) {
	try {
		const result = act();
		console.log(name, plain(JSON.stringify(result)));
	} catch (error) {
		console.log(name, 'throws', plain(error.message));
	}
}

function calls() {
	for (const [name, addon] of Object.entries({ conpty, winpty, list }))
		for (const key of Object.keys(addon).sort()) {
			attempt(`${name}.${key}()`, () => addon[key]());
			attempt(`${name}.${key}(text)`, () => addon[key]('text', {}, [], null));
		}
	attempt('console list of nobody', () => list.getConsoleProcessList(1));
	attempt('resize of nothing', () => conpty.resize(77, 1, 1, false));
	attempt('kill of nothing', () => conpty.kill(5, false));
	attempt('exit code of nothing', () => winpty.getExitCode(4));
	attempt('processes of nothing', () => winpty.getProcessList(99));
	attempt('winpty of no file', () =>
		winpty.startProcess('none.exe', '', ['a=b'], process.cwd(), 80, 24, false));
	attempt('winpty of a program', () => winpty.startProcess(
		'C:\\windows\\system32\\cmd.exe', 'cmd /c exit', ['a=b'], process.cwd(), 80, 24, true));
}

// The event may come before the exit code: it tells that the output has ended, and a thread of
// its own waits for the process.
function told(terminal) {
	const exitCode = terminal._agent.exitCode;
	if (exitCode === undefined)
		return setTimeout(told, 50, terminal);
	console.log('exit', exitCode, exitCode === 7 ? 'done' : '');
	process.exit(3);
}

function spawned() {
	const pty = require('./lib/index.js');
	const terminal = pty.spawn('cmd.exe', ['/c', 'echo hello & exit 7'],
		{ cols: 80, rows: 24, useConpty: true });
	terminal.onData(() => {});
	terminal.onExit(() => told(terminal));
	attempt('conpty.dll', () =>
		pty.spawn('cmd.exe', [], { useConpty: true, useConptyDll: true }));
	attempt('resize', () => terminal.resize(100, 40));
}

calls();
spawned();
