// Run by Wine's own cscript: Windows Script Host, JScript, OLE Automation.
var dictionary = new ActiveXObject('Scripting.Dictionary');
for (var i = 0; i < 300; i++)
	dictionary.add('key' + i * 7 % 300, i);
WScript.Echo(dictionary.count, dictionary.item('key21'), dictionary.exists('no'));
var files = new ActiveXObject('Scripting.FileSystemObject');
WScript.Echo(files.GetExtensionName('a.b.txt'), files.FolderExists('C:\\windows'),
	files.FileExists('C:\\none'));
var list = [];
for (var n = 0; n < 200; n++)
	list.push(n * 7919 % 211);
WScript.Echo(list.sort(function (a, b) { return b - a; }).slice(0, 5).join('|'));
WScript.Echo('2021-12-26'.replace(/(\d+)-(\d+)-(\d+)/g, '$3.$2.$1'), 'a1b2'.match(/\d/g).length,
	escape('\u00e4 b'));
for (var k = 0; k < 3; k++)
	try {
		if (k === 0) throw new Error('thrown');
		if (k === 1) undefined.x;
		new ActiveXObject('No.Such.Class');
	} catch (error) {
		WScript.Echo(error.name, error.message);
	}
WScript.Echo(new Date(Date.UTC(2021, 11, 26)).getUTCDay(), parseFloat('1.5e3'),
	(255).toString(16), Math.round(2.5));
WScript.Quit(7);
