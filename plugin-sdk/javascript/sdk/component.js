// The component's side of the contract: the exports that the host calls, and
// the globals of JavaScript. The build puts this module before the author's.

import './engine.js';
import host from 'toolbay:plugin/host@0.2.0';
import random from 'wasi:random/random@0.2.0';
import { consoleOf } from './console.js';
import { failure, inspect, InvalidArguments } from './failure.js';
import { Host } from './host.js';
import { offered } from './offer.js';
import { startLoop } from './loop.js';
import { performanceOf } from './performance.js';
import { settle } from './promise.js';
import { cryptoOf, generator } from './random.js';
import { refuseLocales } from './web/locale.js';

// The file's top level runs while the component is built. Every call begins
// with a snapshot of the resulting memory. There is no host yet.
let built = false;

const entropy = (length) => {
  if (!built) throw new Error('randomness is for handlers: at the top level it would be the same in every call');
  return random.getRandomBytes(length);
};

const ours = new Host(host);
let draw = Math.random;

refuseLocales();
Math.random = () => draw();
const { performance, begin } = performanceOf(globalThis.performance);
globalThis.performance = performance;
globalThis.crypto = cryptoOf(entropy);
globalThis.console = consoleOf({ log: (level, message) => built && ours.log(level, message) });

/**
 * Returns the interfaces that the component exports, for the exports of the
 * author's main file. If they differ from those that the build expects, the
 * build is notified.
 */
export function serve(exported, expected) {
  const offers = offered(exported, run);
  const names = Object.keys(offers).join(' ');
  if (names !== expected) throw new Error(`toolbay:offers ${names};`);
  return offers;
}

/** One call: of a tool, a prompt, a resource or a completion. */
function run(find, input) {
  built = true;
  draw = generator(entropy);
  begin();
  startLoop();
  try {
    const one = find();
    return one.finish(settle(one.start(input, ours)), input);
  } catch (thrown) {
    if (thrown instanceof Error && !(thrown instanceof InvalidArguments)) ours.log('debug', inspect(thrown));
    throw failure(thrown);
  }
}
