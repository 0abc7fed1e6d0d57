// Worker threads, shared memory, files, a child process and sockets inside node.exe.
'use strict';
const assert = require('assert');
const { execFileSync } = require('child_process');
const fs = require('fs');
const net = require('net');
const path = require('path');
const { Worker, isMainThread, parentPort, workerData } = require('worker_threads');

const THREADS = 3, ROUNDS = 20000;

function work() {
	const counters = new Int32Array(workerData.shared);
	for (let i = 0; i < ROUNDS; i++)
		Atomics.add(counters, 0, workerData.number);
	Atomics.add(counters, 1, 1);
	Atomics.notify(counters, 1);
	if (workerData.number === 2)
		throw new TypeError('thrown in a worker');
	const hash = require('crypto').createHash('sha1').update(String(workerData.number)).digest('hex');
	parentPort.postMessage({ number: workerData.number, hash, map: new Map([[1, [2n]]]) });
}

async function threads() {
	const shared = new SharedArrayBuffer(8);
	const told = await Promise.all(Array.from({ length: THREADS }, (_, i) => new Promise(done => {
		const worker = new Worker(__filename, { workerData: { shared, number: i + 1 } });
		const said = [];
		worker.on('message', message => said.push(message));
		worker.on('error', error => said.push(`${error.name}: ${error.message}`));
		worker.on('exit', code => done([...said, code]));
	})));
	console.log(told);
	const counters = new Int32Array(shared);
	assert.strictEqual(counters[0], ROUNDS * (THREADS * (THREADS + 1) / 2));
	assert.strictEqual(counters[1], THREADS);
	const endless = new Worker('for (;;);', { eval: true });
	await new Promise(done => endless.on('online', done));
	console.log('terminated', await endless.terminate());
}

async function files() {
	const folder = path.join(process.cwd(), 'node_files');
	fs.rmSync(folder, { recursive: true, force: true });
	fs.mkdirSync(path.join(folder, 'deep', 'er'), { recursive: true });
	const name = path.join(folder, 'deep', 'r\u00e4t.txt');
	await fs.promises.writeFile(name, 'x'.repeat(100000));
	fs.appendFileSync(name, 'y');
	fs.renameSync(name, name + '2');
	console.log(fs.statSync(name + '2').size, fs.readdirSync(path.join(folder, 'deep')).sort());
	assert.throws(() => fs.readFileSync(name), { code: 'ENOENT' });
	await new Promise((done, fail) => fs.createReadStream(name + '2').pipe(
		fs.createWriteStream(path.join(folder, 'copy'))).on('finish', done).on('error', fail));
	console.log(fs.readFileSync(path.join(folder, 'copy')).length);
	fs.rmSync(folder, { recursive: true });
}

async function sockets() {
	const server = net.createServer(socket => socket.on('data', data =>
		socket.end(data.toString().toUpperCase())));
	await new Promise(done => server.listen(0, '127.0.0.1', done));
	const socket = net.connect(server.address().port, '127.0.0.1', () => socket.write('hello'));
	let said = '';
	for await (const data of socket)
		said += data;
	server.close();
	console.log('socket', said);
}

async function main() {
	await threads();
	await files();
	await sockets();
	console.log('child', execFileSync(process.execPath, ['-p', '6*7'],
		{ stdio: ['ignore', 'pipe', 'inherit'] }).toString());
	await assert.rejects(() => fs.promises.open('no/such/file'), { code: 'ENOENT' });
	console.log('done');
}

if (isMainThread)
	main();
else
	work();
