// The host's functions for a handler, which use those of the contract.

import { json } from './content.js';
import { inspect, thrownCase } from './failure.js';

const LEVELS = ['debug', 'info', 'notice', 'warning', 'error', 'critical', 'alert', 'emergency'];

/** The second parameter of a handler. */
export class Host {
  #functions;

  constructor(functions) {
    this.#functions = functions;
  }

  log(level, message) {
    if (!LEVELS.includes(level)) throw new TypeError(`the level of a log line is one of ${LEVELS.join(', ')}`);
    this.#functions.log(level, inspect(message).toWellFormed());
  }

  progress(done, total, message) {
    const said = message === undefined ? undefined : String(message).toWellFormed();
    this.#functions.progress(Number(done), total === undefined ? undefined : Number(total), said);
  }

  cancelled() {
    return this.#functions.cancelled();
  }

  config(key) {
    return this.#functions.config(String(key).toWellFormed()) ?? undefined;
  }

  configAll() {
    return Object.fromEntries(this.#functions.configAll());
  }

  resourceUpdated(uri) {
    this.#functions.resourceUpdated(String(uri).toWellFormed());
  }

  ask(key, question) {
    return this.askAll(Object.fromEntries([[key, question]]))?.[key];
  }

  askAll(questions) {
    const asked = Object.entries(questions);
    for (const [key, question] of asked) {
      if (typeof question?.read === 'function') continue;
      throw new TypeError(`the question \`${key}\` is made by \`form\`, \`visit\`, \`sampling\` or \`roots\``);
    }
    const results = this.#results(asked);
    const answer = ([key, { read }], index) => [key, read(JSON.parse(results[index]))];
    return results && Object.fromEntries(asked.map(answer));
  }

  /** Returns the client's results in the order of the questions; `undefined` if it cannot answer an optional one. */
  #results(asked) {
    try {
      return this.#functions.ask(
        asked.map(([key, { kind, params, required }]) => ({ key, kind, params: json(params), required })),
      );
    } catch (thrown) {
      const why = thrownCase(thrown);
      if (why?.tag === 'unsupported' && asked.some(([, { required }]) => !required)) return undefined;
      if (why?.tag === 'unsupported' || why?.tag === 'invalid') throw new Error(why.val);
      throw thrown;
    }
  }
}

