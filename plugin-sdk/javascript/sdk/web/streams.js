// The streams of the web platform: a published implementation, which takes the global
// `Promise` when it is loaded.

import '#engine';
import { useStreams } from './body-stream.js';
import { ReadableStream } from './vendor/web-streams-ponyfill.js';

useStreams(ReadableStream);

export * from './vendor/web-streams-ponyfill.js';
