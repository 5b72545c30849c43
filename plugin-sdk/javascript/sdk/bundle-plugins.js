// Extensions of the bundler: modules of Node, and globals that the engine lacks.

import { readFile } from 'node:fs/promises';
import { builtinModules } from 'node:module';
import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { existsSync, readFileSync } from 'node:fs';
import { GLOBALS, MEMBERS } from './global-modules.js';

const SDK = dirname(fileURLToPath(import.meta.url));

/** The modules of Node that work in a plugin, and the file or package of each. */
const NODE_MODULES = {
  assert: 'assert/build/assert.js',
  'assert/strict': './node/assert-strict.cjs',
  buffer: 'buffer/index.js',
  crypto: './node/crypto.cjs',
  events: 'events/events.js',
  os: './node/os.cjs',
  path: 'path-browserify',
  'path/posix': 'path-browserify',
  process: './node/process.js',
  punycode: 'punycode/punycode.js',
  querystring: './node/querystring.cjs',
  string_decoder: 'string_decoder/lib/string_decoder.js',
  url: './node/url.cjs',
  util: './node/util.cjs',
};

/** What replaces some of the modules that cannot exist. */
const INSTEAD = {
  fs: 'import a file into the plugin, or take resources or state',
  'fs/promises': 'import a file into the plugin, or take resources or state',
  http: 'use `fetch`',
  https: 'use `fetch`',
  net: 'use `fetch`',
  tls: 'use `fetch`',
  child_process: 'a plugin cannot start programs',
  worker_threads: 'a plugin has one thread',
};
const instead = (name) => INSTEAD[name] ?? 'take a package that needs only the language';

/** Returns the message for a module of Node that a plugin does not have. */
export function nodeModuleProblem(name) {
  return Object.hasOwn(NODE_MODULES, name) ? undefined : `A plugin does not have Node's module "${name}": ${instead(name)}`;
}

export const isPackage = (file) => /[\\/]node_modules[\\/]/.test(file);
export const isOurs = (file) => resolve(file).startsWith(SDK);

/**
 * Provides modules of Node. `missing` collects the modules that a package imports and that
 * a plugin does not have.
 */
export function nodeModules(missing) {
  const names = new Set(builtinModules.filter((name) => !name.startsWith('_')));
  return {
    name: 'node-modules',
    setup(build) {
      build.onResolve({ filter: /^(node:)?[a-z_0-9]+(\/[a-z_0-9]+)?\/?$/ }, async (given) => {
        const { path, importer, kind, pluginData } = given;
        if (pluginData === SDK || isOurs(importer) || given.namespace === 'missing') return undefined;
        const isNode = path.startsWith('node:');
        const name = path.replace(/^node:/, '').replace(/\/$/, '');
        if (!isNode && !names.has(name)) return undefined;
        const options = { kind, resolveDir: given.resolveDir, importer, pluginData: SDK };
        const replaced = browserField(importer)?.[path];
        if (replaced === false) return { path: name, namespace: 'empty' };
        if (typeof replaced === 'string') return build.resolve(replaced, options);
        // A package of this name, such as `punycode/`, that the importer depends on.
        if (path.endsWith('/')) return undefined;
        if (Object.hasOwn(NODE_MODULES, name)) {
          return build.resolve(NODE_MODULES[name], { ...options, kind: 'require-call', resolveDir: SDK });
        }
        if (!isNode && !isPackage(importer) && existsSync(join('node_modules', name))) return undefined;
        if (!isPackage(importer)) {
          return { errors: [{ text: nodeModuleProblem(name) }] };
        }
        missing.set(`${name} ${importer}`, { name, importer: relative('.', importer) });
        return { path: name, namespace: 'missing', sideEffects: false };
      });
      // Without this, every plugin contains it.
      build.onResolve({ filter: /^buffer\/index\.js$/ }, async ({ path, kind, resolveDir, pluginData }) => {
        if (pluginData === SDK) return undefined;
        return { ...(await build.resolve(path, { kind, resolveDir, pluginData: SDK })), sideEffects: false, pluginData: undefined };
      });
      // The tables of internationalized names are larger than the rest of `URL`.
      build.onResolve({ filter: /^tr46$/ }, ({ importer }) =>
        /[\\/]whatwg-url[\\/]/.test(importer) ? { path: join(SDK, 'web/idna.cjs') } : undefined,
      );
      // The build converts asynchronous generators, so that their prototype does not exist. `URL` does not use it.
      build.onLoad({ filter: /[\\/]whatwg-url[\\/]lib[\\/]utils\.js$/ }, async ({ path }) => ({
        contents: (await readFile(path, 'utf8')).replace(
          'Object.getPrototypeOf(Object.getPrototypeOf(async function* () {}).prototype)',
          'Object.prototype',
        ),
      }));
      // It creates a `TextEncoder` while it loads.
      build.onLoad({ filter: /[\\/]whatwg-url[\\/]lib[\\/]encoding\.js$/ }, async ({ path }) => ({
        contents: `const { TextEncoder, TextDecoder } = require(${JSON.stringify(join(SDK, 'web/encoding.js'))});
          ${await readFile(path, 'utf8')}`,
      }));
      build.onLoad({ filter: /.*/, namespace: 'empty' }, () => ({ contents: 'module.exports = {};' }));
      build.onLoad({ filter: /.*/, namespace: 'missing' }, ({ path }) => ({
        contents: `module.exports = require('./node/missing.cjs')(${JSON.stringify(path)}, ${JSON.stringify(instead(path))});`,
        resolveDir: SDK,
      }));
    },
  };
}

/** Takes every module of the SDK from the folder of this file: another copy would have a state of its own. */
export function ownModules() {
  const { exports } = JSON.parse(readFileSync(join(SDK, 'package.json'), 'utf8'));
  return {
    name: 'own-modules',
    setup(build) {
      build.onResolve({ filter: /^toolbay(\/|$)/ }, ({ path, importer, kind }) => {
        const target = exports[`.${path.slice('toolbay'.length)}`];
        const file = typeof target === 'string' ? target : target?.default;
        return file === undefined ? undefined : build.resolve(file, { resolveDir: SDK, importer, kind });
      });
    },
  };
}

/** Returns the map in the field `browser` of the package that contains `file`. */
function browserField(file) {
  for (let folder = dirname(file); isPackage(`${folder}/`); folder = dirname(folder)) {
    const manifest = join(folder, 'package.json');
    if (!existsSync(manifest)) continue;
    const { name, browser } = JSON.parse(readFileSync(manifest, 'utf8'));
    if (name !== undefined) return typeof browser === 'object' ? browser : undefined;
  }
  return undefined;
}

/** Inserts the modules of globals where a file uses them as free names. */
export function globals() {
  const files = Map.groupBy?.(Object.keys(GLOBALS), (name) => GLOBALS[name]) ?? grouped();
  return {
    names: [...files.keys()].map((file) => `toolbay-globals:${file}`),
    plugin: {
      name: 'globals',
      setup(build) {
        build.onResolve({ filter: /^toolbay-globals:/ }, ({ path }) => ({
          path: path.replace('toolbay-globals:', ''),
          namespace: 'globals',
          sideEffects: false,
        }));
        build.onLoad({ filter: /.*/, namespace: 'globals' }, ({ path: file }) => {
          return { contents: `export { ${files.get(file).join(', ')} } from './${file}';`, resolveDir: SDK };
        });
      },
    },
  };
}

function grouped() {
  const files = new Map();
  for (const [name, file] of Object.entries(GLOBALS)) files.set(file, [...(files.get(file) ?? []), name]);
  return files;
}

/** Returns a module that sets these names on the global object, or on another global. */
export function installed(names) {
  return names
    .map((name) => {
      const { owner = 'globalThis', file = GLOBALS[name] } = MEMBERS[name] ?? {};
      return `import { ${name} } from './${file}';\n${owner}.${name} ??= ${name};\n`;
    })
    .join('');
}

/** Returns the chain of imports from the author's file to `file`. */
export function importChain(metafile, file) {
  const from = new Map();
  const queue = ['entry.js', '<stdin>'].filter((name) => metafile.inputs[name]);
  for (const at of queue) {
    for (const { path } of metafile.inputs[at]?.imports ?? []) {
      if (from.has(path)) continue;
      from.set(path, at);
      queue.push(path);
    }
  }
  const chain = [];
  for (let at = file; at !== undefined && at !== 'entry.js' && at !== '<stdin>'; at = from.get(at)) chain.unshift(at);
  return chain;
}
