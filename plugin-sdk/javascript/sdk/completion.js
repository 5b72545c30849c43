// Values that an argument could have, which a client suggests while its user types.

const COMPLETIONS = { values: 'object', total: 'number', hasMore: 'boolean' };

/** Completes one argument: from a list, or with a function of the author. */
class Completer {
  #suggest;

  constructor(suggest) {
    this.#suggest = suggest;
  }

  /** Starts with the contract's `completion-request`. Its result, or the promise of it, is passed to `finish`. */
  start({ value, context }, host) {
    if (typeof this.#suggest !== 'function') return beginningWith(value, this.#suggest);
    return this.#suggest(value, Object.fromEntries(context), host);
  }

  /** Returns the contract's record `completions`. */
  finish(answer) {
    const { values, total, hasMore = false } = Array.isArray(answer) ? { values: answer } : parts(answer);
    return { values: texts(values).map((value) => value.toWellFormed()), total, hasMore };
  }
}

/**
 * Returns the completers of the option `complete`. `where` names the definition
 * that has the option, and `names` are the names of its arguments.
 */
export function completersOf(where, complete = {}, names) {
  const completers = new Map();
  for (const [name, suggest] of Object.entries(complete)) {
    if (suggest === undefined) continue;
    if (!names.includes(name)) {
      const known = names.length > 0 ? `is none of ${names.join(', ')}` : 'is no argument: there are none';
      throw new TypeError(`${where}: \`${name}\` in \`complete\` ${known}`);
    }
    if (typeof suggest !== 'function' && !isTexts(suggest)) {
      throw new TypeError(`${where}: \`${name}\` is completed by a list of texts, or by a function that returns one`);
    }
    completers.set(name, new Completer(suggest));
  }
  return completers;
}

/** Returns those of `values` that begin with the text that the user has typed, ignoring case. */
export function beginningWith(typed, values) {
  const begin = typed.toLowerCase();
  return values.filter((value) => value.toLowerCase().startsWith(begin));
}

const isTexts = (values) => Array.isArray(values) && values.every((value) => typeof value === 'string');

function texts(values) {
  if (isTexts(values)) return values;
  throw new TypeError('a completion is a list of texts, or { values, total, hasMore }');
}

function parts(answer) {
  if (typeof answer !== 'object' || answer === null) return { values: answer };
  for (const [key, value] of Object.entries(answer)) {
    if (COMPLETIONS[key] === undefined || (value !== undefined && typeof value !== COMPLETIONS[key])) return {};
  }
  const { total } = answer;
  if (total !== undefined && !(Number.isInteger(total) && total >= 0 && total < 2 ** 32)) {
    throw new RangeError(`\`total\` of a completion is how many values there are, not ${total}`);
  }
  return answer;
}
