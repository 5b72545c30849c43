// Replaces the engine's own promises. All modules that use promises at the top level import
// this one first.

import { enqueue, SyncPromise } from './promise.js';

globalThis.Promise = SyncPromise;
globalThis.queueMicrotask = enqueue;
