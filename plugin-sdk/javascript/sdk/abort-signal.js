// `AbortSignal` of a plugin, whose `timeout` needs the clock.

import './clock.js';

export { AbortSignal } from './web/abort.js';
