// Connects the event loop to the host's clock. Only a plugin that uses timers imports this.

import './poll.js';
import clock from 'wasi:clocks/monotonic-clock@0.2.0';
import { useClock } from './loop.js';

useClock(clock);
