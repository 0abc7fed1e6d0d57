// OpenSSL inside node.exe, against answers that are known: test vectors of the standards, and
// signatures made by openssl's own program.  What is printed is computed again by Python.
'use strict';
const assert = require('assert');
const crypto = require('crypto');

const RSA_KEY =
	'MIICeAIBADANBgkqhkiG9w0BAQEFAASCAmIwggJeAgEAAoGBAMLmg4qjxvxw1nysmkncZCXtFgFz' +
	'gBQHXcaVdoTgbkxf86NB+lv3p2s5h9zyyZ9jvEcyeYsaXYkAhusdFF0gUYCnBVUE8ACMGpCR38rx' +
	'ohPUnq0nS+a2KetQnlgopS2EbfQmRvLyPJhruFJZHbpFpWjQXqlu0pEkHwRhK+4SgOMbAgMBAAEC' +
	'gYEAjRBeoNfNTCU3eOFMgq0bZz/kL4SzbMuwGe1P7PirnGfOZZl5ZVsoN7laFpc7SzvaqAVmZ0Hb' +
	'9S8Gd+GCPa0IjzuongeS7iyWs7hCrcoFEiaQo/8UXobfwENHFfLxTQqqP4yPcDnTl54dT6Ms/Z6E' +
	'UiPGTbVyWOFsfvf3YOpfYWECQQDpmNtL1rnvSggz8Pl/p5SLvxdh2KwpnMeMbO9+VRUDgaa/u5cs' +
	'TsrAxD5dRid/C3EPeXOORgER/aAT6SKojxU5AkEA1ZeZVmTKqFDyU22gCZ41QwIMDYe0+mDTDfOY' +
	'md3wZLusqd8ly+5r8OSnpG3oOSsvnJUGaB7nwxb5OS6rf1uu8wJBAM9Wp79G1j54nZNM3ofZ/NWV' +
	'RXHJ2fYNfGk9/81IQ6CbIaCpJuNjBD/Zb+lmbYQsaavshw7PP//x+HXzxpmKdrECQQC4vG0APx7U' +
	'42Yj6F4R04dHlH6uOSC7qYEBwR3MfxvLVFMrfXhoYKd1a57fZbwDril46Z/n8EsN/lHCNm5YMgkn' +
	'AkAVead0jDpIN+ngYElTPzn09/i77WzbaxTq/uXt7Y0p6MmuY1cn4gFNfOgTPLnH8ZH74m+Wst8z' +
	'LwNnPNciAZYZ';
const RSA_SIGNATURE =
	'qYXWh6Bxq2gDgpY0auYSEJsinjwSo8eQkCbSo4UKazgmx2Rf2nadneQSlb0Jun/mt80MFN7CI6tL' +
	'MIVh3zU0eVWqAamq/ORAUHErEkB2SoxzMbsn8Oya8YHAtRZkNGLTjW7tO7eZ45cdWcN5LN30qoae' +
	'oncKsJ+iWDTJd7iSx5g=';
const EC_KEY =
	'MHcCAQEEIKrh0U+/P1OQvMy/J6kg6kzAqlQgMPxtx0JpKIQBazycoAoGCCqGSM49AwEHoUQDQgAE' +
	'zndZdkWtSq4zLXu7bvqss4ckhT6iALG4Rq/MOMB9A99diR3soLJI0H7/xGTlVeNvI1yW/bHeh1uH' +
	'rc1cJBihbw==';
const EC_SIGNATURE =
	'MEYCIQCAvNSjSDOokbtI2VyRb06hx8QM5WWjC/YmBqOht2PnJAIhAI5IafD/OV+aXo8JEboGjX2w' +
	'mIYBAA8uO4DROaMPfDmM';

const hex = text => Buffer.from(text.replace(/\s/g, ''), 'hex');
const pattern = size => Buffer.from(Array.from({ length: size }, (_, i) => (i * 7 + (i >> 5)) & 255));

function hashes() {
	for (const size of [0, 1, 63, 64, 111, 112, 1000, 70001])
		for (const name of ['md5', 'sha1', 'sha224', 'sha256', 'sha384', 'sha512', 'sha3-256',
			'sha3-512', 'blake2b512', 'blake2s256'])
			console.log('hash', name, size,
				crypto.createHash(name).update(pattern(size)).digest('hex'));
	for (const name of ['md5', 'sha1', 'sha256', 'sha512'])
		for (const size of [0, 20, 64, 131])
			console.log('hmac', name, size, crypto.createHmac(name, pattern(size))
				.update('what do ya want for nothing?').digest('hex'));
	for (const rounds of [1, 1000])
		console.log('pbkdf2', rounds,
			crypto.pbkdf2Sync('password', 'salt', rounds, 40, 'sha256').toString('hex'));
	console.log('scrypt', crypto.scryptSync('password', 'NaCl', 64,
		{ N: 1024, r: 8, p: 16 }).toString('hex'));
}

// McGrew and Viega, The Galois/Counter Mode of Operation, test cases 4 and 16; RFC 8439 2.8.2.
function sealed() {
	const plain = hex('d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a72' +
		'1c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39');
	const added = hex('feedfacedeadbeeffeedfacedeadbeefabaddad2');
	const nonce = hex('cafebabefacedbaddecaf888');
	for (const [name, key, code, tag] of [
		['aes-128-gcm', 'feffe9928665731c6d6a8f9467308308',
			'42831ec2217774244b7221b784d0d49ce3aa212f2c02a4e035c17e2329aca12e' +
			'21d514b25466931c7d8f6a5aac84aa051ba30b396a0aac973d58e091',
			'5bc94fbc3221a5db94fae95ae7121a47'],
		['aes-256-gcm', 'feffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308',
			'522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa' +
			'8cb08e48590dbb3da7b08b1056828838c5f61e6393ba7a0abcc9f662',
			'76fc6ece0f4e1768cddf8853bb2d551b']]) {
		const cipher = crypto.createCipheriv(name, hex(key), nonce);
		cipher.setAAD(added);
		assert.strictEqual(cipher.update(plain, null, 'hex') + cipher.final('hex'), code);
		assert.strictEqual(cipher.getAuthTag().toString('hex'), tag);
		for (const good of [true, false]) {
			const back = crypto.createDecipheriv(name, hex(key), nonce);
			back.setAAD(added);
			back.setAuthTag(good ? hex(tag) : hex(tag).fill(0));
			assert.ok(back.update(hex(code)).equals(plain));
			if (good)
				back.final();
			else
				assert.throws(() => back.final(), /unable to authenticate/);
		}
	}
	const cipher = crypto.createCipheriv('chacha20-poly1305',
		hex('808182838485868788898a8b8c8d8e8f909192939495969798999a9b9c9d9e9f'),
		hex('070000004041424344454647'), { authTagLength: 16 });
	cipher.setAAD(hex('50515253c0c1c2c3c4c5c6c7'));
	cipher.update("Ladies and Gentlemen of the class of '99: If I could offer you only one " +
		'tip for the future, sunscreen would be it.');
	cipher.final();
	assert.strictEqual(cipher.getAuthTag().toString('hex'), '1ae10b594f09e26a7e902ecbd0600691');
}

// Long runs through the wide implementations, there and back; each way has its own code.
function ciphers() {
	const data = pattern(100003);
	for (const name of ['aes-128-cbc', 'aes-256-cbc', 'aes-128-ctr', 'aes-192-ctr', 'aes-256-ecb',
		'aes-256-gcm', 'aes-128-ccm', 'chacha20-poly1305', 'camellia-128-cbc', 'aria-128-ctr',
		'des-ede3-cbc', 'aes-256-xts']) {
		const info = crypto.getCipherInfo(name);
		const key = pattern(info.keyLength);
		const iv = info.ivLength ? pattern(name.endsWith('ccm') ? 12 : info.ivLength) : null;
		const options = name.endsWith('ccm') || name.endsWith('1305') ? { authTagLength: 16 } : {};
		const there = crypto.createCipheriv(name, key, iv, options);
		const code = Buffer.concat([there.update(data), there.final()]);
		const back = crypto.createDecipheriv(name, key, iv, options);
		if (there.getAuthTag && /gcm|ccm|1305/.test(name))
			back.setAuthTag(there.getAuthTag());
		assert.ok(Buffer.concat([back.update(code), back.final()]).equals(data), name);
		console.log('cipher', name, crypto.createHash('sha256').update(code).digest('hex'));
	}
}

function signatures() {
	const rsa = crypto.createPrivateKey(
		{ key: Buffer.from(RSA_KEY, 'base64'), format: 'der', type: 'pkcs8' });
	assert.strictEqual(crypto.sign('sha256', 'appulse', rsa).toString('base64'), RSA_SIGNATURE);
	const ec = crypto.createPrivateKey(
		{ key: Buffer.from(EC_KEY, 'base64'), format: 'der', type: 'sec1' });
	const open = crypto.createPublicKey(ec);
	assert.ok(crypto.verify('sha256', 'appulse', open, Buffer.from(EC_SIGNATURE, 'base64')));
	assert.ok(!crypto.verify('sha256', 'Appulse', open, Buffer.from(EC_SIGNATURE, 'base64')));
	assert.ok(crypto.verify('sha256', 'x', open, crypto.sign('sha256', 'x', ec)));
	const secret = crypto.publicEncrypt(rsa, Buffer.from('oaep'));
	assert.strictEqual(crypto.privateDecrypt(rsa, secret).toString(), 'oaep');
	for (const curve of ['secp384r1', 'secp521r1', 'secp256k1', 'brainpoolP256r1']) {
		const [a, b] = [crypto.createECDH(curve), crypto.createECDH(curve)];
		a.generateKeys();
		b.generateKeys();
		assert.ok(a.computeSecret(b.getPublicKey()).equals(b.computeSecret(a.getPublicKey())));
	}
	// RFC 8032 7.1, test 2.
	const seed = Buffer.concat([hex('302e020100300506032b657004220420'),
		hex('4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb')]);
	const ed = crypto.createPrivateKey({ key: seed, format: 'der', type: 'pkcs8' });
	assert.strictEqual(crypto.sign(null, hex('72'), ed).toString('hex'),
		'92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da' +
		'085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00');
	const group = crypto.getDiffieHellman('modp5');
	group.setPrivateKey?.(hex('0123456789abcdef'));
	assert.strictEqual(crypto.generateKeyPairSync('rsa', { modulusLength: 768 })
		.publicKey.asymmetricKeyDetails.modulusLength, 768);
	assert.ok(crypto.generatePrimeSync(128, { bigint: true }) > 1n << 127n);
}

hashes();
sealed();
ciphers();
signatures();
for (const bad of [() => crypto.createHash('nothing'), () => crypto.createCipheriv('aes-128-cbc',
	'short', 'iv'), () => crypto.createPrivateKey('no key')])
	assert.throws(bad, error => { console.log('error', error.code); return true; });
console.log('done');
