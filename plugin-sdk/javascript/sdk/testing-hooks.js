// The hooks of Node's module loader for tests. A file of the plugin cannot use names and modules
// of Node that a plugin does not have. Test files and packages can.

import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { builtinModules, createRequire } from 'node:module';
import { relative, resolve as absolute } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { freeNames, problemOf } from './bundle-names.js';
import { isOurs, isPackage, nodeModuleProblem } from './bundle-plugins.js';
import { GLOBALS } from './global-modules.js';

const require = createRequire(absolute('package.json'));
const acorn = require('acorn');
const eslintScope = require('eslint-scope');

/** Names that Node has too, but with other contents than a plugin. */
const REPLACED = ['process'];

const TYPESCRIPT = /\.[cm]?tsx?$/;

/** Returns the path if the module is a file of the plugin. */
function ownFile(url) {
  if (!url?.startsWith('file:')) return undefined;
  const file = fileURLToPath(url);
  const path = relative('.', file);
  if (isPackage(file) || isOurs(file) || path.startsWith('..') || path.startsWith('toolbay')) return undefined;
  return /\.(test|spec)\.\w+$|(^|[\\/])tests?[\\/]/.test(path) ? undefined : file;
}

export async function resolve(specifier, context, next) {
  const importer = ownFile(context.parentURL);
  const name = specifier.replace(/^node:/, '');
  if (importer !== undefined && (specifier.startsWith('node:') || (builtinModules.includes(name) && !existsSync(absolute('node_modules', name))))) {
    const problem = nodeModuleProblem(name);
    if (problem !== undefined) throw new Error(`${relative('.', importer)}: ${problem}`);
  }
  try {
    return await next(specifier, context);
  } catch (error) {
    // The SDK can be a link, from whose target the project's packages are not found.
    if (!/^[.\/]|:/.test(specifier) && context.parentURL?.startsWith('file:') && isOurs(fileURLToPath(context.parentURL))) {
      return next(specifier, { ...context, parentURL: pathToFileURL(absolute('package.json')).href });
    }
    // As the build does, and TypeScript's own resolution.
    if (!/^\.{1,2}\//.test(specifier) || error.code === 'ERR_INVALID_MODULE_SPECIFIER') throw error;
    for (const ending of ['.ts', '.js', '/index.ts', '/index.js']) {
      const url = new URL(specifier + ending, context.parentURL);
      if (existsSync(fileURLToPath(url))) return next(url.href, context);
    }
    throw error;
  }
}

export async function load(url, context, next) {
  const isTypeScript = url.startsWith('file:') && TYPESCRIPT.test(new URL(url).pathname);
  const file = ownFile(url);
  if (!isTypeScript && (file === undefined || !/\.m?jsx?$/.test(file))) return next(url, context);
  const loaded = isTypeScript
    ? { format: 'module', shortCircuit: true, source: await compiled(fileURLToPath(url)) }
    : await next(url, context);
  if (loaded.format !== 'module' || file === undefined) return loaded;
  return { ...loaded, source: checked(String(loaded.source), file) };
}

async function compiled(file) {
  const { transform } = require('esbuild');
  const { code } = await transform(await readFile(file, 'utf8'), {
    loader: file.endsWith('x') ? 'tsx' : 'ts',
    sourcefile: file,
    sourcemap: 'inline',
    target: 'es2022',
  });
  return code;
}

/** Returns the source with imports of what Node does not have. They are at its end, so that its lines stay. */
function checked(source, file) {
  const { unknown, free } = freeNames(source, {
    acorn,
    eslintScope,
    sourceOf: (line, column) => ({ file, line, column }),
    isAuthors: () => true,
    isOurs: () => false,
  });
  if (unknown.length > 0) {
    const lines = unknown.map((one) => `${relative('.', file)}${TYPESCRIPT.test(file) ? '' : `:${one.line + 1}:${one.column + 1}`}: ${problemOf(one)}`);
    throw new Error(`the build of the plugin will fail\n${lines.join('\n')}`);
  }
  const imports = free
    .filter((name) => Object.hasOwn(GLOBALS, name) && (REPLACED.includes(name) || !(name in globalThis)))
    .map((name) => `import { ${name} } from ${JSON.stringify(new URL(GLOBALS[name], import.meta.url).href)};`);
  return imports.length === 0 ? source : `${source}\n${imports.join('\n')}`;
}
