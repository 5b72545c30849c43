// Checks for authors who write JavaScript, which TypeScript does in the editor. They
// run while the plugin is built. Without them, a misspelt option would have no effect,
// and a member of a wrong type would end the instance without a message.

const ICON = { src: 'string', mimeType: 'string', sizes: 'object', theme: 'string' };

/** The options that every definition has in addition to its own. */
const COMMON = { title: 'string', description: 'string', icons: 'object', meta: 'object', handler: 'function' };

const ANNOTATIONS = { readOnly: 'boolean', destructive: 'boolean', idempotent: 'boolean', openWorld: 'boolean' };

/** Throws unless the options are among `own` or those that every definition has. */
export function checkOptions(where, options, own, handler) {
  members(where, options, { ...own, ...COMMON });
  members(`annotations of ${where}`, options.annotations ?? {}, ANNOTATIONS);
  for (const icon of options.icons ?? []) {
    members(`icon of ${where}`, icon, ICON);
    if (icon.src === undefined) throw new TypeError(`icon of ${where}: \`src\` is missing`);
    if (!['light', 'dark', undefined].includes(icon.theme)) {
      throw new TypeError(`icon of ${where}: \`theme\` is 'light' or 'dark'`);
    }
  }
  if (options.handler === undefined) throw new TypeError(`${where} has no handler: ${handler}`);
}

/** Throws unless `name` can be the name of `what`. */
export function checkName(what, name) {
  if (typeof name === 'string' && /^[\w.-]{1,128}$/.test(name)) return;
  throw new TypeError(`the name of ${what} is 1 to 128 of A-Z a-z 0-9 _ - . and not ${JSON.stringify(name)}`);
}

/** Throws unless `size` is a number of bytes, or left out. */
export function checkSize(size) {
  if (size !== undefined && !(Number.isSafeInteger(size) && size >= 0)) {
    throw new RangeError(`\`size\` is a number of bytes, not ${size}`);
  }
}

/** Returns `audience` as a list. */
export function audienceOf(audience = []) {
  const list = [audience].flat();
  for (const who of list) {
    if (who !== 'user' && who !== 'assistant') {
      throw new TypeError(`\`audience\` is 'user' or 'assistant', not ${who}`);
    }
  }
  return list;
}

/** Returns icons as the contract's record. */
export const iconsOf = (icons = []) => icons.map(({ sizes = [], ...icon }) => ({ ...icon, sizes }));

/** Throws unless the members of `object` are among `types`, and of these types. */
export function members(where, object, types) {
  for (const [key, value] of Object.entries(object)) {
    if (!Object.hasOwn(types, key)) {
      throw new TypeError(`${where}: \`${key}\` is none of ${Object.keys(types).join(', ')}`);
    }
    const type = types[key];
    if (value !== undefined && type !== undefined && typeof value !== type) {
      throw new TypeError(`${where}: \`${key}\` is a ${type}, not a ${typeof value}`);
    }
  }
}
