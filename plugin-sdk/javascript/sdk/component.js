// The component's own end: what the host calls, and what JavaScript expects to
// find around it. The build puts this module before the author's.

import host from 'toolbay:plugin/host@0.2.0';
import random from 'wasi:random/random@0.2.0';
import { failure, inspect, InvalidArguments } from './failure.js';
import { consoleOf, Host } from './host.js';
import { enqueue, settle, SyncPromise } from './promise.js';
import { cryptoOf, generator } from './random.js';
import { Tool } from './tool.js';

// The file's top level runs while the component is built, and what it leaves in
// memory is where every call begins. No host is there yet to be asked.
let built = false;

const entropy = (length) => {
  if (!built) throw new Error('randomness is for handlers: at the top level it would be the same in every call');
  return random.getRandomBytes(length);
};

const ours = new Host(host);
let draw = Math.random;

globalThis.Promise = SyncPromise;
globalThis.queueMicrotask = enqueue;
Math.random = () => draw();
globalThis.crypto = cryptoOf(entropy);
globalThis.console = consoleOf({ log: (level, message) => built && ours.log(level, message) });

/** The contract's interface `tools`, for what the author's main file exports. */
export function serve(exported) {
  const tools = new Map();
  for (const tool of Object.values(exported).flat()) {
    if (!(tool instanceof Tool)) continue;
    if ((tools.get(tool.name) ?? tool) !== tool) throw new TypeError(`two tools are named ${tool.name}`);
    tools.set(tool.name, tool);
  }
  if (tools.size === 0) throw new TypeError('the main file exports no tool: export const greet = tool({ … })');
  return {
    listTools: () => [...tools.values()].map((tool) => tool.definition),

    callTool(name, args) {
      built = true;
      draw = generator(entropy);
      try {
        const tool = tools.get(name);
        if (tool === undefined) throw new Error(`there is no tool ${name}`);
        return tool.finish(settle(tool.start(JSON.parse(args), ours)));
      } catch (thrown) {
        if (thrown instanceof Error && !(thrown instanceof InvalidArguments)) ours.log('debug', inspect(thrown));
        throw failure(thrown);
      }
    },
  };
}
