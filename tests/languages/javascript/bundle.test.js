// Builds small plugins. Their top level runs in the engine during the build, so it can contain assertions.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, test } from 'node:test';
import { GLOBALS } from './toolbay/global-modules.js';

const folders = [];
after(() => folders.forEach((folder) => rmSync(folder, { recursive: true })));

const TOOL = "import { tool } from 'toolbay';\nexport const go = tool({ name: 'go', description: 'Goes.', handler: () => f() });\n";

/** Builds a plugin of `f` with these files, and returns the build's exit code, messages, bundle and component. */
function build(source, files = {}, project = newProject()) {
  for (const [name, text] of Object.entries({ 'app.js': source + '\n' + TOOL, ...files })) {
    mkdirSync(dirname(join(project, name)), { recursive: true });
    writeFileSync(join(project, name), text);
  }
  const { status, stderr } = spawnSync(process.execPath, ['toolbay/build.js', 'app.js', 'app.wasm'], { cwd: project, encoding: 'utf8' });
  const read = (name, encoding) => (status === 0 ? readFileSync(join(project, name), encoding) : undefined);
  return { status, stderr, bundle: read('build/app.js', 'utf8'), component: read('app.wasm') };
}

function newProject() {
  const project = mkdtempSync(join(tmpdir(), 'toolbay-bundle-'));
  folders.push(project);
  mkdirSync(join(project, 'node_modules'));
  for (const name of readdirSync('node_modules')) {
    if (!name.startsWith('.')) symlinkSync(realpathSync(join('node_modules', name)), join(project, 'node_modules', name));
  }
  symlinkSync(realpathSync('toolbay'), join(project, 'toolbay'));
  writeFileSync(join(project, 'package.json'), '{ "type": "module" }');
  return project;
}

const inPackage = (name, text) => ({
  [`node_modules/${name}/package.json`]: JSON.stringify({ name, version: '1.0.0', main: 'index.js' }),
  [`node_modules/${name}/index.js`]: text,
});

function built(...given) {
  const result = build(...given);
  assert.equal(result.status, 0, result.stderr);
  return result;
}

test('an unknown name is an error with its place', () => {
  const { status, stderr } = build("const ö = '👋';\nconst f = () => ö + windwo.x;\nexport const g = () => [document.body, __dirname, new Intl.Locale('de')];");
  assert.equal(status, 1);
  assert.match(stderr, /`windwo` is not defined\n\n {4}app\.js:2:21:/);
  assert.match(stderr, /A plugin does not have `document`: a plugin has no page/);
  assert.match(stderr, /A plugin does not have `__dirname`: a plugin has no files/);
  assert.match(stderr, /A plugin does not have `Intl`: the engine has no locale data/);
  const assigned = build('const f = () => { total = 1; return total; };');
  assert.match(assigned.stderr, /`total` is not defined\n\n {4}app\.js:1:18:/);
});

test('a name that is checked, caught or set is not an error', () => {
  built(`
    globalThis.mine = 1;
    Object.defineProperty(globalThis, 'yours', { value: 2 });
    const f = () => {
      if (typeof Intl !== 'undefined') return Intl.name;
      try { return WebSocket.name; } catch { return mine + yours; }
    };`);
  // A package may never use it.
  built("import x from 'page'; const f = () => x;", inPackage('page', 'module.exports = () => document.body.foo;'));
});

test('a plugin contains only the globals that it reaches', () => {
  const used = built("const root = typeof globalThis === 'undefined' ? self : globalThis;\nconst f = () => [typeof root.Headers, 'Headers' in root];");
  assert.match(used.bundle, /globalThis\.Headers/);
  const settings = built("const { isNaN: x } = globalThis;\nconst settings = { fetch: 1, Buffer: 2 };\n// globalThis.URL\nconst f = () => settings.fetch + settings.Buffer + 'URL';");
  assert.doesNotMatch(settings.bundle, /wasi:http|whatwg|globalThis\.(?:fetch|Buffer|URL)/);
  const passed = built('const f = ((root) => () => typeof root.structuredClone)(globalThis);');
  assert.match(passed.bundle, /globalThis\.structuredClone/);
  const own = built('const self = { fetch: 3 };\nconst f = () => self.fetch;');
  assert.doesNotMatch(own.bundle, /wasi:http/);
});

test('crypto.subtle is in a plugin that names it', () => {
  assert.match(built("const f = () => crypto.subtle.digest('SHA-256', new Uint8Array());").bundle, /crypto\.subtle/);
  assert.doesNotMatch(built('const f = () => crypto.randomUUID();').bundle, /SubtleCrypto/);
});

test('CommonJS packages can use each global as they load, in any order', () => {
  const text = (name) => `const value = ${name}; if (value === undefined) throw new Error('${name} is undefined');
    if (/^[A-Z]/.test(value.name) && value.prototype) exports.Derived = class extends value {}; exports.kind = typeof value;`;
  const names = Object.keys(GLOBALS);
  const packages = Object.assign({}, ...names.map((name) => inPackage(`at-load-${name.toLowerCase()}`, text(name))));
  for (const order of [names, names.toReversed?.() ?? [...names].reverse()]) {
    const imports = order.map((name, at) => `import p${at} from 'at-load-${name.toLowerCase()}';`).join('\n');
    built(`${imports}\nconst f = () => p0.kind;`, packages);
  }
});

test('a package that calls eval can be in a plugin', () => {
  built("import p from 'p';\nconst f = () => p();", inPackage('p', "module.exports = () => eval('1 + 1');"));
});

test('modules of Node work in the engine', () => {
  built(`
    import assert from 'node:assert/strict';
    import { Buffer } from 'buffer';
    import { createHash, createHmac, timingSafeEqual } from 'node:crypto';
    import { EventEmitter } from 'events';
    import os from 'os';
    import path from 'node:path';
    import posix from 'path/posix';
    import process from 'node:process';
    import punycode from 'punycode';
    import querystring from 'node:querystring';
    import { StringDecoder } from 'string_decoder';
    import url from 'node:url';
    import util from 'util';
    assert.equal(Buffer.from('héé').toString('base64'), 'aMOpw6k=');
    assert.equal(createHash('sha256').update('abc').digest('hex'), 'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad');
    assert.equal(createHmac('sha1', 'key').update('x').digest('hex').length, 40);
    assert.ok(timingSafeEqual(Buffer.from('a'), Buffer.from('a')));
    const seen = []; const emitter = new EventEmitter(); emitter.on('x', (value) => seen.push(value)); emitter.emit('x', 1);
    assert.deepEqual(seen, [1]);
    assert.deepEqual([os.EOL, os.platform()], ['\\n', 'wasi']);
    assert.throws(() => os.cpus(), /cpus. of Node is used/);
    assert.throws(() => process.exit(1), /cannot end its process/);
    const started = process.hrtime();
    const [seconds, nanoseconds] = process.hrtime(started);
    assert.ok(seconds >= 0 && nanoseconds >= 0 && typeof process.hrtime.bigint() === 'bigint');
    assert.equal(path.join('a', '..', 'b'), 'b');
    assert.equal(posix.basename('/a/b.js', '.js'), 'b');
    assert.deepEqual([process.platform, process.env.HOME, process.env.NODE_ENV], ['wasi', undefined, 'production']);
    assert.equal(punycode.toASCII('münchen.de'), 'xn--mnchen-3ya.de');
    assert.equal(querystring.stringify({ a: [1, 2], b: 'ö' }), 'a=1&a=2&b=%C3%B6');
    assert.equal(new StringDecoder('utf8').write(Buffer.from([0xe2, 0x82])), '');
    assert.equal(url.parse('http://a.b/c?d=e').pathname, '/c');
    assert.equal(util.format('%s is %d', 'x', 3, { a: 1 }), 'x is 3 {"a":1}');
    assert.throws(() => assert.equal(1, 2), /1/);
    const f = () => 1;`);
});

test('globals of the web platform work in the engine', () => {
  built(`
    import assert from 'node:assert/strict';
    assert.equal(new URL('../a?b=c#d', 'http://x.y/z/w').href, 'http://x.y/a?b=c#d');
    assert.equal(new URLSearchParams({ a: 'b c' }).toString(), 'a=b+c');
    assert.equal(new TextDecoder().decode(new TextEncoder().encode('é👋')), 'é👋');
    assert.equal(new Headers({ A: 'b' }).get('a'), 'b');
    assert.equal(new Request('http://a.b/', { method: 'post', body: 'x' }).method, 'POST');
    assert.equal(new Response('x', { status: 201 }).status, 201);
    assert.equal(new Blob(['ab', 'c']).size, 3);
    const form = new FormData(); form.append('a', 'b'); assert.equal(form.get('a'), 'b');
    const controller = new AbortController(); controller.abort(); assert.equal(controller.signal.aborted, true);
    let heard = 0; const target = new EventTarget(); target.addEventListener('x', () => heard++); target.dispatchEvent(new CustomEvent('x'));
    assert.equal(heard, 1);
    assert.equal(new DOMException('x', 'AbortError').code, 20);
    assert.equal(structuredClone(new Map([[1, new Date(0)]])).get(1).getTime(), 0);
    const buffer = new ArrayBuffer(8); structuredClone(buffer, { transfer: [buffer] }); assert.equal(buffer.detached, true);
    assert.equal(new ReadableStream().locked, false);
    assert.equal(Buffer.from('ff', 'hex')[0], 255);
    assert.equal(typeof setTimeout(() => {}, 1000), 'object');
    assert.equal(navigator.userAgent, 'Toolbay');
    assert.equal(atob(btoa('x')), 'x');
    assert.equal(Promise.name, 'Promise');
    assert.deepEqual([performance.now(), Date.now()], [0, 0]);
    const f = () => 1;`);
});

test('a module of Node that a plugin does not have is an error, and in a package a note', () => {
  const own = build("import { readFileSync } from 'node:fs';\nconst f = () => readFileSync;");
  assert.match(own.stderr, /A plugin does not have Node's module "fs"[^]*app\.js:1:29/);
  const { stderr } = built("import x from 'reads'; const f = () => x();", inPackage('reads', "const fs = require('fs'); module.exports = () => fs.readFileSync('x');"));
  assert.match(stderr, /using Node's module "fs" will fail; it is imported through app\.js → node_modules\/reads\/index\.js/);
  const tried = build("import x from 'reads'; const f = () => 1; x();", inPackage('reads', "const fs = require('fs'); module.exports = () => fs.readFileSync('x');"));
  assert.match(tried.stderr, /`fs\.readFileSync` of Node is used, which a plugin does not have/);
});

test('TypeScript, Babel and packages import modules of Node in their own ways', () => {
  const star = `const os = ((mod) => {
    if (mod && mod.__esModule) return mod;
    const all = {};
    for (const key of Object.getOwnPropertyNames(mod)) all[key] = mod[key];
    return { ...all, default: mod };
  })(require('os'));
  const fs = ((mod) => (mod && mod.__esModule ? mod : { default: mod }))(require('fs'));
  exports.platform = os.platform();
  exports.read = () => fs.default.readFileSync('x');`;
  built(
    `import assert from 'node:assert/strict';
    import { platform, read } from 'compiled';
    import all, { hostname } from 'os';
    import * as star from 'node:os';
    assert.deepEqual([platform, hostname(), all.platform(), star.type()], ['wasi', 'localhost', 'wasi', 'WASI']);
    assert.throws(read, /readFileSync. of Node is used/);
    const f = () => 1;`,
    inPackage('compiled', star),
  );
});

test('the texts of the build can be in the plugin', () => {
  const { bundle } = built("const f = () => 'toolbay:expected-offers wasi:http/types w4si';");
  assert.match(bundle, /wasi:http\/types w4si/);
});

test('the same source is the same component', () => {
  const source = "import x from 'node:util';\nconst started = [Date.now(), performance.now()];\nconst f = () => x.inspect([started, new Map()]) + fetch.name;";
  const [first, second] = [built(source), built(source)];
  assert.ok(first.component.equals(second.component));
  // With the engine that the first build stored.
  const project = newProject();
  built('const f = () => 1;', {}, project);
  assert.ok(built(source, {}, project).component.equals(first.component));
  assert.ok(!built(source.replace('Map', 'Set')).component.equals(first.component));
});
