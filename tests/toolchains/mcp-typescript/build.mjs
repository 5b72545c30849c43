// Bundles app.js with the SDK, and builds a component from the bundle.

import { componentize } from '@bytecodealliance/componentize-js';
import { build } from 'esbuild';
import { writeFile } from 'node:fs/promises';

const bundle = await build({
  entryPoints: ['app.js'],
  bundle: true,
  format: 'esm',
  write: false,
  conditions: ['workerd', 'worker', 'browser'],
  // While the component is built, there is no request, and so no location.
  define: { 'self.location': 'undefined' },
});
const { component } = await componentize(bundle.outputFiles[0].text, {
  witPath: 'server.wit',
  worldName: 'server',
  sourceName: 'app.js',
});
await writeFile('mcp-typescript.wasm', component);
