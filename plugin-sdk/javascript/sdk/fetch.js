// The `fetch` of a plugin. The build inserts it if the author's code uses its name.

import './poll.js';
import handler from 'wasi:http/outgoing-handler@0.2.0';
import types from 'wasi:http/types@0.2.0';
import { client } from './http.js';

export const fetch = client(types, handler);
