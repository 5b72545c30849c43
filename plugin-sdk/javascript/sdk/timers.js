// The timers of a plugin. The build inserts them if the author's code uses one of these names.

import './clock.js';

export {
  clearImmediate,
  clearInterval,
  clearTimeout,
  setImmediate,
  setInterval,
  setTimeout,
} from './web/timers.js';
