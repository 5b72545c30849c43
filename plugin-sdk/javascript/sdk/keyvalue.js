// `import { open } from 'toolbay/keyvalue'`: state that outlives a call, with
// `wasi:keyvalue`. Tests in Node get keyvalue-memory.js instead.

import atomics from 'wasi:keyvalue/atomics@0.2.0-draft';
import store from 'wasi:keyvalue/store@0.2.0-draft';
import { opener } from './bucket.js';

export const open = opener(store, atomics);
