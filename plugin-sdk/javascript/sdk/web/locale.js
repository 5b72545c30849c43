// Methods that need the data of `Intl`, which the engine does not have. Where the engine
// ignores a locale, they throw.

const INSTEAD = 'the engine has no locale data: format the value in the code, or take a package that brings its own data';

/** Replaces the methods whose results would be wrong. Without a locale, they format as in `en-US` and UTC. */
export function refuseLocales() {
  replaceCompare();
  const refuse = (prototype, name, isRefused, format) => {
    const own = format ?? Object.getOwnPropertyDescriptor(prototype, name)?.value;
    // The engine lacks some of them.
    if (own === undefined) return;
    Object.defineProperty(prototype, name, {
      configurable: true,
      writable: true,
      value: {
        [name](...args) {
          if (isRefused(this, args)) {
            const problem = `\`${name}\` with a locale, options or letters outside ASCII would be wrong`;
            throw new Error(`${problem}: ${INSTEAD}`);
          }
          return own.apply(this, args);
        },
      }[name],
    });
  };
  const isGiven = (args) => args.some((arg) => arg !== undefined);
  const methods = [
    [Number, 'toLocaleString', formatNumber],
    [BigInt, 'toLocaleString', formatInteger],
    [Date, 'toLocaleString', formatTime((date) => `${day(date)}, ${timeOfDay(date)}`)],
    [Date, 'toLocaleDateString', formatTime(day)],
    [Date, 'toLocaleTimeString', formatTime(timeOfDay)],
    [Array, 'toLocaleString', undefined],
  ];
  for (const [type, name, format] of methods) refuse(type.prototype, name, (_, args) => isGiven(args), format);
  for (const name of ['toLocaleUpperCase', 'toLocaleLowerCase']) {
    refuse(String.prototype, name, (_, [locale]) => /^(?:az|lt|tr)\b/i.test(String(locale ?? '')));
  }
}

const grouped = (digits) => digits.replace(/\B(?=(?:\d{3})+$)/g, ',');

/** Formats a BigInt as in `en-US`. */
export function formatInteger() {
  const text = String(this);
  return text.startsWith('-') ? `-${grouped(text.slice(1))}` : grouped(text);
}

/** Formats a number as in `en-US`, with at most three digits after the point. */
export function formatNumber() {
  const value = Number(this);
  if (Number.isNaN(value)) return 'NaN';
  const sign = value < 0 || Object.is(value, -0) ? '-' : '';
  if (!Number.isFinite(value)) return `${sign}∞`;
  const [whole, fraction = ''] = rounded(Math.abs(value));
  return `${sign}${grouped(whole)}${fraction && `.${fraction}`}`;
}

/** Rounds the shortest decimal form of a number half up, as `Intl` does. `toFixed` rounds its exact value. */
function rounded(value) {
  if (value >= 2 ** 53) return [decimal(value)];
  const [, whole, fraction = '', exponent = '0'] = /^(\d+)(?:\.(\d+))?(?:e([+-]\d+))?$/.exec(String(value));
  const digits = (whole + fraction).padStart(1 - Number(exponent) + fraction.length, '0');
  const point = digits.length - fraction.length + Number(exponent);
  const kept = BigInt(digits.slice(0, point + 3).padEnd(point + 3, '0')) + ((digits[point + 3] ?? '0') >= '5' ? 1n : 0n);
  const text = String(kept).padStart(4, '0');
  return [text.slice(0, -3), text.slice(-3).replace(/0+$/, '')];
}

/** Writes a large number with the digits of its shortest form, and zeros. */
function decimal(value) {
  const [, whole, fraction = '', exponent = '0'] = /^(\d+)(?:\.(\d+))?(?:e\+(\d+))?$/.exec(String(value));
  return (whole + fraction).padEnd(whole.length + Number(exponent), '0');
}

const day = (date) => `${date.getUTCMonth() + 1}/${date.getUTCDate()}/${year(date.getUTCFullYear())}`;
const year = (number) => (number > 0 ? number : 1 - number);

function timeOfDay(date) {
  const two = (number) => String(number).padStart(2, '0');
  const hours = date.getUTCHours();
  const half = hours < 12 ? 'AM' : 'PM';
  return `${hours % 12 || 12}:${two(date.getUTCMinutes())}:${two(date.getUTCSeconds())} ${half}`;
}

/** Returns a method of dates that formats with `format`. */
export function formatTime(format) {
  return function () {
    return Number.isNaN(this.getTime()) ? 'Invalid Date' : format(this);
  };
}

export const formats = { day, timeOfDay };

// ASCII in the order of the Unicode Collation Algorithm, with the letters in lower case.
const ORDER = ' _-,;:!?.\'"()[]{}@*/\\&#%`^+<=>|~$0123456789abcdefghijklmnopqrstuvwxyz';

/** `localeCompare` for ASCII. The engine's own compares code points. */
function localeCompare(other, ...rest) {
  const texts = [String(this), String(other)];
  if (rest.some((arg) => arg !== undefined) || !texts.every((text) => /^[ -~]*$/.test(text))) {
    throw new Error(`\`localeCompare\` with a locale, options or letters outside ASCII would be wrong: ${INSTEAD}`);
  }
  const [one, two] = texts.map((text) => text.toLowerCase());
  for (let at = 0; at < Math.min(one.length, two.length); at += 1) {
    if (one[at] !== two[at]) return ORDER.indexOf(one[at]) < ORDER.indexOf(two[at]) ? -1 : 1;
  }
  if (one.length !== two.length) return one.length < two.length ? -1 : 1;
  // Lower case is before upper case, if nothing else differs.
  if (texts[0] === texts[1]) return 0;
  const at = [...texts[0]].findIndex((letter, index) => letter !== texts[1][index]);
  return texts[0][at] === one[at] ? -1 : 1;
}

/** Replaces `localeCompare`. */
export function replaceCompare(prototype = String.prototype) {
  Object.defineProperty(prototype, 'localeCompare', { configurable: true, writable: true, value: localeCompare });
}
