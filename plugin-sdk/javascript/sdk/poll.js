// Connects the event loop to `wasi:io/poll`. Only a plugin that sends requests or uses timers imports this.

import './engine.js';
import poll from 'wasi:io/poll@0.2.0';
import { usePoll } from './loop.js';

usePoll(poll);
