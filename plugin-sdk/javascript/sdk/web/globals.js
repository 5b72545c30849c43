// The globals of the web platform that need nothing of the host.

export { AbortController } from './abort.js';
export { Blob, File } from './blob.js';
export { DOMException } from './dom-exception.js';
export { CustomEvent, Event, EventTarget } from './event.js';
export { FormData } from './form-data.js';
export { Headers } from './headers.js';
export { Request } from './request.js';
export { Response } from './response.js';
