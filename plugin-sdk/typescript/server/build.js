// node build.js
//
// Bundles src/app.ts with the MCP SDK, and builds a component that handles HTTP
// requests from the bundle.

import { componentize } from '@bytecodealliance/componentize-js';
import { build } from 'esbuild';
import { writeFile } from 'node:fs/promises';

const bundle = await build({
  entryPoints: ['src/app.ts'],
  bundle: true,
  format: 'esm',
  write: false,
  // The builds of packages for runtimes with the APIs of the web.
  conditions: ['workerd', 'worker', 'browser'],
  // While the component is built, there is no request, and so no location.
  define: { 'self.location': 'undefined' },
}).catch(() => process.exit(1)); // esbuild has printed the errors.
const { component } = await componentize(bundle.outputFiles[0].text, {
  witPath: 'wit/server.wit',
  worldName: 'server',
  sourceName: 'app.js',
});
await writeFile('{{name}}.wasm', component);
console.log(`{{name}}.wasm: ${Math.round(component.length / 1024)} KiB`);
