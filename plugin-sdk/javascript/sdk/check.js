// What TypeScript says in the editor, said to those who write JavaScript: while
// the plugin is built. A misspelt option would otherwise do nothing, and a
// member of a wrong type would end the instance without a word.

const TOOL = {
  name: 'string',
  title: 'string',
  description: 'string',
  input: 'object',
  output: 'object',
  annotations: 'object',
  icons: 'object',
  meta: 'object',
  handler: 'function',
};
const ANNOTATIONS = { readOnly: 'boolean', destructive: 'boolean', idempotent: 'boolean', openWorld: 'boolean' };
const ICON = { src: 'string', mimeType: 'string', sizes: 'object', theme: 'string' };

/** Throws unless these are the options of a tool. */
export function check(options) {
  const { name, annotations = {}, icons = [], handler } = options;
  if (typeof name !== 'string' || !/^[\w.-]{1,128}$/.test(name)) {
    throw new TypeError(`the name of a tool is 1 to 128 of A-Z a-z 0-9 _ - . and not ${JSON.stringify(name)}`);
  }
  members(`tool ${name}`, options, TOOL);
  members(`annotations of tool ${name}`, annotations, ANNOTATIONS);
  for (const icon of icons) {
    members(`icon of tool ${name}`, icon, ICON);
    if (icon.src === undefined) throw new TypeError(`icon of tool ${name}: \`src\` is missing`);
    if (!['light', 'dark', undefined].includes(icon.theme)) {
      throw new TypeError(`icon of tool ${name}: \`theme\` is 'light' or 'dark'`);
    }
  }
  if (handler === undefined) throw new TypeError(`tool ${name} has no handler: handler(args) { … }`);
}

function members(where, object, types) {
  for (const [key, value] of Object.entries(object)) {
    const type = types[key];
    if (type === undefined) throw new TypeError(`${where}: \`${key}\` is none of ${Object.keys(types).join(', ')}`);
    if (value !== undefined && typeof value !== type) {
      throw new TypeError(`${where}: \`${key}\` is a ${type}, not a ${typeof value}`);
    }
  }
}
