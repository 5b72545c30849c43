// node toolbay/build.js app.js my-plugin.wasm
//
// Bundles the author's main file with everything that it imports, and builds a
// component from the bundle.

import { existsSync } from 'node:fs';
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { createRequire, SourceMap } from 'node:module';
import { basename, dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { freeNames, problemOf } from './bundle-names.js';
import { reproducibleRuntime } from './runtime.js';
import { globals, importChain, installed, isOurs, isPackage, nodeModules, ownModules } from './bundle-plugins.js';

const [main, wasm, ...rest] = process.argv.slice(2);
if (wasm === undefined || rest.length > 0) fail('usage: node toolbay/build.js MAIN.js PLUGIN.wasm');
if (!existsSync(main)) fail(`there is no file ${main}`);

// componentize-qjs runs the plugin once during the build, with WASI's streams, but
// without HTTP. It cannot provide stubs only for HTTP, because the streams of HTTP
// would then be different types. So the interfaces of HTTP have other names during
// the build, for all of which componentize-qjs provides stubs. The names have the
// same length.
const NAMES = /\bwasi(?=:(?:clocks|io|http)[/@])/g;
const OTHERS = /w4si(?=:(?:clocks|io|http)\/)/g;

const { default: esbuild } = await load('esbuild');
const { componentize } = await load('componentize-qjs');
const { default: acorn } = await load('acorn');
const { default: eslintScope } = await load('eslint-scope');

/** Maximum number of errors that are shown. */
const SHOWN_ERRORS = 5;

const bundle = join('build', basename(main).replace(/\.\w+$/, '.js'));

// The exports of the plugin, as serve() in component.js reports them. They are known
// only after the plugin ran: the first attempt assumes a plugin with only tools. For
// any other plugin, it fails and reports the correct exports.
const OFFERS = 'toolbay:expected-offers';
const TOLD = /toolbay:offers ([a-z ]+);/;
let offers = 'tools';

const needed = await bundled();
const component = await componentized();
await writeFile(wasm, component);
console.log(`${wasm}: ${Math.round(component.length / 1024)} KiB`);

/** Imports a package of the author's project, regardless of the location of this file. */
async function load(name) {
  try {
    return await import(pathToFileURL(createRequire(resolve('package.json')).resolve(name)));
  } catch (error) {
    return fail(`the package ${name} cannot be loaded: run \`npm ci\` in the project's folder (${error.message})`);
  }
}

async function bundled() {
  const missing = new Map();
  try {
    let { metafile } = await bundledWith([], missing);
    // Found only in the code that is bundled.
    const { used, unknown } = await bundledNames();
    if (unknown.length > 0) throw { errors: unknown };
    if (used.length > 0) ({ metafile } = await bundledWith(used, missing));
    note(metafile, missing);
    return Object.values(metafile.outputs).flatMap(({ imports }) => imports.map(({ path }) => path));
  } catch (error) {
    if (error.errors === undefined) throw error;
    const all = error.errors;
    const told = await esbuild.formatMessages(all.slice(0, SHOWN_ERRORS).map(explained), { kind: 'error' });
    const rest = all.length > SHOWN_ERRORS ? `and ${all.length - SHOWN_ERRORS} more errors\n` : '';
    return fail(`${main} cannot be bundled\n${told.join('')}${rest}`);
  }
}

/** Returns the globals that the bundle reaches through the global object, and errors for the author's unknown names. */
async function bundledNames() {
  const [text, map] = [await readFile(bundle, 'utf8'), await sourceMap()];
  const sourceOf = (line, column) => {
    const { originalSource, originalLine, originalColumn } = map.findEntry(line, column);
    if (originalSource === undefined) return undefined;
    return { file: resolve('build', originalSource), line: originalLine, column: originalColumn };
  };
  const isAuthors = (file) => existsSync(file) && !isPackage(file) && !isOurs(file);
  const { used, unknown } = freeNames(text, { acorn, eslintScope, sourceOf, isAuthors, isOurs: (file) => file === undefined || isOurs(file) });
  const errors = unknown.map(async ({ file, line, column, ...one }) => {
    const lineText = (await readFile(file, 'utf8')).split(/\r?\n/)[line] ?? '';
    const location = { file: relative('.', file), line: line + 1, column: Buffer.byteLength(lineText.slice(0, column)), length: one.name.length, lineText };
    return { text: problemOf(one), location };
  });
  return { used, unknown: await Promise.all(errors) };
}

async function sourceMap() {
  return new SourceMap(JSON.parse(await readFile(`${bundle}.map`, 'utf8')));
}

/** Bundles with `names` as members of the global object. */
function bundledWith(names, missing) {
  const sdk = fileURLToPath(new URL('.', import.meta.url));
  const entry = `
    import { serve } from 'toolbay/component';
    import 'toolbay-installed';
    import * as main from ${JSON.stringify(resolve(main))};
    export const { tools, prompts, resources, completion } = serve(main, '${OFFERS}');
  `;
  const provided = globals();
  const aliases = {
    name: 'installed',
    setup(build) {
      build.onResolve({ filter: /^toolbay-installed$/ }, ({ path }) => ({ path, namespace: 'installed' }));
      build.onLoad({ filter: /.*/, namespace: 'installed' }, () => ({ contents: installed(names), resolveDir: sdk }));
    },
  };
  return esbuild.build({
    stdin: { contents: entry, resolveDir: process.cwd(), sourcefile: 'entry.js' },
    outfile: bundle,
    bundle: true,
    charset: 'utf8',
    // Packages that have a build for a browser without a document name it `worker`.
    conditions: ['worker', 'browser', 'module'],
    define: {
      'process.env.NODE_ENV': '"production"',
      global: 'globalThis',
      self: 'globalThis',
    },
    external: ['toolbay:plugin/*', 'wasi:*'],
    format: 'esm',
    // Only in a plugin that uses one of the globals.
    inject: provided.names,
    logLevel: 'silent',
    mainFields: ['browser', 'module', 'main'],
    metafile: true,
    // The SDK can be a link, from whose target the project's packages are not found.
    nodePaths: [resolve('node_modules')],
    platform: 'browser',
    plugins: [ownModules(), aliases, provided.plugin, nodeModules(missing)],
    sourcemap: 'external',
    // The engine's version, except for asynchronous functions: see promise.js.
    target: 'es2024',
    supported: { 'async-await': false, 'async-generator': false, 'for-await': false },
  });
}

/** Reports the modules of Node that packages import and that a plugin does not have. */
function note(metafile, missing) {
  const chains = new Map();
  const isBundled = new Set(Object.values(metafile.outputs).flatMap(({ inputs }) => Object.keys(inputs)));
  for (const { name, importer } of missing.values()) {
    if (!isBundled.has(`missing:${name}`)) continue;
    if (!chains.has(name)) chains.set(name, importChain(metafile, importer));
  }
  for (const [name, chain] of chains) {
    console.error(`note: using Node's module "${name}" will fail; it is imported through ${chain.join(' → ')}`);
  }
}

/** esbuild's own advice is for programs that run in Node or a browser. */
function explained(message) {
  const text = advice(message.text);
  return { ...message, notes: text ? [{ text }] : [] };
}

function advice(problem) {
  if (problem.startsWith('Top-level await')) {
    return 'The top level runs while the plugin is built: await in a handler.';
  }
  if (problem.startsWith('A plugin does not have')) return undefined;
  if (/^`.*` is not defined$/.test(problem)) {
    return 'Declare or import it. The page on JavaScript in the book lists the names that a plugin has.';
  }
  const missing = /^Could not resolve "((?:@[\w.-]+\/)?[\w-][\w.-]*)["/]/.exec(problem)?.[1];
  return missing && `A package is added by: npm install --save-dev ${missing}`;
}

/** Returns the parts of WASI that the bundle imports. */
function parts() {
  return ['clocks', 'http', 'keyvalue'].filter((part) => needed.some((path) => path.startsWith(`wasi:${part}/`)));
}

/** Returns the world with exactly the imports of the bundle and the offers of the plugin. */
function world() {
  const includes = ['javascript', ...parts().map((part) => `javascript-${part}`)].map((name) => `include ${name};`);
  const exports = offers.split(' ').map((name) => `export ${name};`);
  return `package toolbay:plugin@0.2.0;\n\nworld built {\n    ${[...includes, ...exports].join('\n    ')}\n}\n`;
}

async function componentized() {
  const source = await readFile(bundle, 'utf8');
  try {
    const { component } = await componentize({
      witPath: await disguisedWit(),
      world: 'built',
      jsSource: disguised(withOffers(source)),
      jsPath: bundle,
      // Toolbay has no asynchronous calls between components.
      ...engine(),
    });
    return undisguised(component);
  } catch (error) {
    const other = TOLD.exec(error.message)?.[1];
    if (other !== undefined && other !== offers) {
      offers = other;
      return componentized();
    }
    const told = error.message.replace(/^.*module evaluation: /, '');
    return fail(`${main} failed as it was loaded\n${traced(told, await sourceMap())}`);
  }
}

/** Returns the bundle with the exports of the plugin. The entry is its last part, so other uses of the text are not the build's. */
function withOffers(source) {
  const at = source.lastIndexOf(OFFERS);
  return source.slice(0, at) + offers + source.slice(at + OFFERS.length);
}

/** Returns the option for the engine that makes two builds of the same source equal, or for that of componentize-qjs. */
function engine() {
  const native = Object.keys(createRequire(import.meta.url).cache).find((file) => file.endsWith('.node') && file.includes('componentize-qjs'));
  try {
    return { runtimeBytes: reproducibleRuntime(native, 'build') };
  } catch (error) {
    console.error(`note: two builds of this source will differ: the engine of componentize-qjs is not known to the SDK (${error.message})`);
    return { sync: true };
  }
}

/** Replaces the names in `text`, if the plugin sends requests. */
function disguised(text) {
  return parts().includes('http') ? text.replaceAll(NAMES, 'w4si') : text;
}

/** Returns the folder with the WIT under these names. */
async function disguisedWit() {
  const [from, to] = [fileURLToPath(new URL('wit', import.meta.url)), join('build', 'wit')];
  await rm(to, { recursive: true, force: true });
  for (const file of await readdir(from, { recursive: true })) {
    if (!file.endsWith('.wit')) continue;
    const text = disguised(await readFile(join(from, file), 'utf8'));
    await mkdir(dirname(join(to, file)), { recursive: true });
    await writeFile(join(to, file), text);
  }
  await writeFile(join(to, 'built.wit'), world());
  return to;
}

/** Returns the component with the names of WASI. */
function undisguised(component) {
  for (const { index } of component.toString('latin1').matchAll(OTHERS)) component.write('wasi', index, 'latin1');
  return component;
}

/** Maps a stack trace of the bundle to the author's files. */
function traced(message, map) {
  return message.replace(/\(?\S*\/build\/[^\s:]+:(\d+):(\d+)\)?/g, (place, line, column) => {
    const { originalSource, originalLine, originalColumn } = map.findEntry(line - 1, column - 1);
    if (originalSource === undefined) return place;
    return `(${resolve('build', originalSource)}:${originalLine + 1}:${originalColumn + 1})`;
  });
}

function fail(message) {
  console.error(`build: ${message}`);
  process.exit(1);
}
