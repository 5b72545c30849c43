// node toolbay/build.js app.js my-plugin.wasm
//
// Bundles the author's main file with everything that it imports, and makes a
// component of the bundle.

import { existsSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { builtinModules, createRequire, SourceMap } from 'node:module';
import { basename, join, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

const [main, wasm, ...rest] = process.argv.slice(2);
if (wasm === undefined || rest.length > 0) fail('usage: node toolbay/build.js MAIN.js PLUGIN.wasm');
if (!existsSync(main)) fail(`there is no file ${main}`);

const { default: esbuild } = await load('esbuild');
const { componentize } = await load('componentize-qjs');
const bundle = join('build', basename(main).replace(/\.\w+$/, '.js'));
await bundled();
const component = await componentized();
await writeFile(wasm, component);
console.log(`${wasm}: ${Math.round(component.length / 1024)} KiB`);

/** A package of the author's project, wherever this file is kept. */
async function load(name) {
  try {
    return await import(pathToFileURL(createRequire(resolve('package.json')).resolve(name)));
  } catch (error) {
    return fail(`the package ${name} cannot be loaded: run \`npm ci\` in the project's folder (${error.message})`);
  }
}

async function bundled() {
  const entry = `
    import { serve } from 'toolbay/component';
    import * as main from ${JSON.stringify(resolve(main))};
    export const tools = serve(main);
  `;
  try {
    await esbuild.build({
      stdin: { contents: entry, resolveDir: process.cwd(), sourcefile: 'entry.js' },
      outfile: bundle,
      bundle: true,
      charset: 'utf8',
      external: ['toolbay:plugin/*', 'wasi:random/*'],
      format: 'esm',
      logLevel: 'silent',
      mainFields: ['module', 'main'],
      platform: 'neutral',
      sourcemap: 'external',
      // What the engine knows, but for asynchronous functions: see promise.js.
      target: 'es2024',
      supported: { 'async-await': false, 'async-generator': false, 'for-await': false },
    });
  } catch (error) {
    const problems = (error.errors ?? [{ text: error.message }]).map(explained);
    const told = await esbuild.formatMessages(problems, { kind: 'error' });
    fail(`${main} cannot be bundled\n${told.join('')}`);
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
  const missing = /^Could not resolve "(?:node:)?((?:@[\w.-]+\/)?[\w-][\w.-]*)["/]/.exec(problem)?.[1];
  if (missing === undefined) return undefined;
  if (builtinModules.includes(missing)) {
    return 'A plugin runs without Node: take a package that needs only the language.';
  }
  return `A package is added by: npm install --save-dev ${missing}`;
}

async function componentized() {
  try {
    const { component } = await componentize({
      witPath: fileURLToPath(new URL('wit', import.meta.url)),
      world: 'javascript',
      jsSource: await readFile(bundle, 'utf8'),
      jsPath: bundle,
      // Toolbay's engine has no asynchronous calls between components.
      sync: true,
    });
    return component;
  } catch (error) {
    const map = new SourceMap(JSON.parse(await readFile(`${bundle}.map`, 'utf8')));
    const told = error.message.replace(/^.*module evaluation: /, '');
    return fail(`${main} failed as it was loaded\n${traced(told, map)}`);
  }
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
