// The global `fetch` of a plugin. The build puts it where the author's code
// names one of these, and leaves it out of a plugin that does not.

import handler from 'wasi:http/outgoing-handler@0.2.0';
import types from 'wasi:http/types@0.2.0';
import { client } from './http.js';

export const fetch = client(types, handler);
export { Headers, Response } from './http.js';
