// Failures of calls, with messages that the model reads.

import { inspectValue } from './inspect.js';

/** Thrown by a handler whose arguments match the schema but make no sense. */
export class InvalidArguments extends Error {
  name = 'InvalidArguments';
}

/** An operation that the host refuses or cannot do. `fetch` rejects with it, where the standard has a `TypeError`. */
export class RequestError extends TypeError {
  name = 'RequestError';
}

/** Returns the case of a WIT variant that the host threw: the engine wraps it in an error. */
export function thrownCase(thrown) {
  return thrown?.payload ?? thrown;
}

/** Returns the contract's `failure` for a value that a handler threw. */
export function failure(thrown) {
  const tag = thrown instanceof InvalidArguments ? 'invalid-arguments' : 'failed';
  return { tag, val: message(thrown).toWellFormed() };
}

/** Returns the message of `thrown`, with those of its causes. */
export function message(thrown) {
  const said = [];
  const seen = new Set();
  for (let error = thrown; error !== undefined && !seen.has(error); error = error?.cause) {
    seen.add(error);
    said.push(sentence(error));
  }
  return said.join(': ');
}

/** Returns the name of an error only if it is informative: `TypeError` is, `Error` is not. */
function sentence(error) {
  if (!(error instanceof Error)) return inspect(error);
  const own = error.message || 'it failed without saying why';
  const isPlain = error.name === 'Error' || error instanceof InvalidArguments || error instanceof RequestError;
  return isPlain ? own : `${error.name}: ${own}`;
}

/** Returns any value as text for people. */
export function inspect(value) {
  return typeof value === 'string' ? value : inspectValue(value);
}
