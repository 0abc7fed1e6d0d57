// duckdb.node: the addon between JavaScript and duckdb.dll.
'use strict';
const assert = require('assert');
const duckdb = require('./duckdb.node');

function told(error) {
	console.log(error.message);
	return true;
}

async function main() {
	console.log(duckdb.library_version());
	const connection = await duckdb.connect(await duckdb.open());
	const result = await duckdb.query(connection, "SELECT 42, 'x' || i FROM range(3) t(i)");
	console.log(duckdb.row_count(result), duckdb.column_count(result),
		duckdb.column_name(result, 1));
	const chunk = await duckdb.fetch_chunk(result);
	console.log(duckdb.data_chunk_get_size(chunk),
		duckdb.vector_get_data(duckdb.data_chunk_get_vector(chunk, 1), 48));
	await assert.rejects(duckdb.query(connection, 'SELECT nope'), told);
	const prepared = await duckdb.prepare(connection, 'SELECT $1 + 1, $2');
	duckdb.bind_int32(prepared, 1, 41);
	duckdb.bind_varchar(prepared, 2, 'gr\u00fcn');
	console.log(duckdb.nparams(prepared),
		duckdb.row_count(await duckdb.execute_prepared(prepared)));
	assert.throws(() => duckdb.bind_int32(prepared, 7, 41), told);
	for (const value of [duckdb.create_varchar('abc'), duckdb.create_int64(5n),
		duckdb.create_double(1.5), duckdb.create_timestamp({ micros: 5n }),
		duckdb.create_bool(true), duckdb.create_hugeint(-(10n ** 30n))])
		console.log(duckdb.get_varchar(value));
	for (const bad of [() => duckdb.create_int64('x'), () => duckdb.connect(),
		() => duckdb.row_count({}), () => duckdb.create_decimal(7)])
		try {
			await bad();
			console.log('accepted');
		} catch (error) {
			console.log(error.name, error.message);
		}
	const appender = duckdb.appender_create;
	console.log(typeof appender, duckdb.StatementType && duckdb.StatementType.SELECT);
	console.log('done');
}

main();
