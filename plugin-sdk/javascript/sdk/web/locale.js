// Methods that need the data of `Intl`, which the engine does not have. Where the engine
// ignores a locale, they throw.

const INSTEAD = 'the engine has no locale data: format the value in the code, or take a package that brings its own data';

/** Replaces the methods whose results would be wrong. */
export function refuseLocales() {
  replaceCompare();
  const refuse = (prototype, name, isRefused) => {
    const own = Object.getOwnPropertyDescriptor(prototype, name)?.value;
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
  for (const type of [Number, Date, BigInt, Array]) refuse(type.prototype, 'toLocaleString', (_, args) => isGiven(args));
  for (const name of ['toLocaleDateString', 'toLocaleTimeString']) {
    refuse(Date.prototype, name, (_, args) => isGiven(args));
  }
  for (const name of ['toLocaleUpperCase', 'toLocaleLowerCase']) {
    refuse(String.prototype, name, (_, [locale]) => /^(?:az|lt|tr)\b/i.test(String(locale ?? '')));
  }
}

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
