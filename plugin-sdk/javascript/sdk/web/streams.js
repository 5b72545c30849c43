// The streams of the web platform: a published implementation, which takes the global
// `Promise` when it is loaded.

import '#engine';

export * from './vendor/web-streams-ponyfill.js';
