// Values as text for people, as `console.log` shows them.

/** The depth and the number of members up to which a value is shown. */
const MAX_DEPTH = 6;
const MAX_MEMBERS = 100;

/** Returns `value` as text. Strings inside other values are quoted. */
export function inspectValue(value, depth = 0, within = []) {
  if (typeof value === 'string') return JSON.stringify(value);
  if (typeof value === 'bigint') return `${value}n`;
  if (typeof value === 'function') return `[Function${value.name ? `: ${value.name}` : ''}]`;
  if (Object.is(value, -0)) return '-0';
  if (typeof value !== 'object' || value === null) return String(value);
  if (within.includes(value)) return '[Circular]';
  if (value instanceof Error) return errorText(value, depth, within);
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? 'Invalid Date' : value.toISOString();
  if (value instanceof RegExp) return String(value);
  const name = nameOf(value);
  if (depth >= MAX_DEPTH) return `[${name || 'Object'}]`;
  const show = (member) => inspectValue(member, depth + 1, [...within, value]);
  if (Array.isArray(value)) return `[${list(value, show)}]`;
  if (value instanceof Map) return `Map(${value.size}) {${list(value, ([key, held]) => `${show(key)} => ${show(held)}`)}}`;
  if (value instanceof Set) return `Set(${value.size}) {${list(value, show)}}`;
  if (value instanceof ArrayBuffer) return `ArrayBuffer(${value.byteLength})`;
  if (ArrayBuffer.isView(value) && !(value instanceof DataView)) return `${name}(${value.length}) [${list(value, show)}]`;
  const members = Object.getOwnPropertyNames(value).filter((key) => Object.getOwnPropertyDescriptor(value, key).enumerable);
  return `${name && name !== 'Object' ? `${name} ` : ''}{${list(members, (key) => `${keyText(key)}:${member(value, key, show)}`)}}`;
}

function list(values, show) {
  const shown = [];
  for (const value of values) {
    if (shown.length === MAX_MEMBERS) {
      shown.push('…');
      break;
    }
    shown.push(show(value));
  }
  return shown.join(',');
}

/** Returns a member's value as text, without calling a getter. */
function member(value, key, show) {
  const { get, set, value: held } = Object.getOwnPropertyDescriptor(value, key);
  return get || set ? '[Getter]' : show(held);
}

const keyText = (key) => JSON.stringify(key);

function nameOf(value) {
  try {
    return Object.getPrototypeOf(value)?.constructor?.name ?? '';
  } catch {
    return '';
  }
}

function errorText(error, depth, within) {
  const own = error.stack ? `${error}\n${error.stack}` : String(error);
  if (error.cause === undefined) return own;
  return `${own.trimEnd()}\ncaused by: ${inspectValue(error.cause, depth + 1, [...within, error])}`;
}
