// The exports for plugins: `import { tool, t, InvalidArguments } from 'toolbay'`.

export { form, roots, sampling, visit } from './ask.js';
export { beginningWith } from './completion.js';
export { audio, image, reply, resourceLink, text } from './content.js';
export { InvalidArguments } from './failure.js';
export { prompt } from './prompt.js';
export { contents, resource } from './resource.js';
export { t } from './schema.js';
export { tool } from './tool.js';
