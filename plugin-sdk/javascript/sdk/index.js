// The exports for plugins: `import { tool, t, InvalidArguments } from 'toolbay'`.

export { audio, image, reply, resource, resourceLink, text } from './content.js';
export { InvalidArguments } from './failure.js';
export { t } from './schema.js';
export { tool } from './tool.js';
