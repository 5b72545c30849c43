// The offers of a plugin: the contract's interfaces for the exports of its main
// file.
//
// This module does not import tools, prompts or resources, so that the build can
// leave out those that the plugin does not use.

/** The base class of the exports of a main file. Each subclass has `interfaces(list, run)`. */
export class Offer {}

/** The interfaces in the order in which the build names them. */
const ORDER = ['tools', 'prompts', 'resources', 'completion'];

/** Completes an argument without a completer. */
const NOTHING = { start() {}, finish: () => ({ values: [], hasMore: false }) };

/**
 * Returns exactly the interfaces that a plugin exports, by name. `run(find,
 * input)` starts the offer that `find` returns with the input, and finishes it.
 */
export function offered(exported, run) {
  const all = [...new Set(Object.values(exported).flat())].filter((one) => one instanceof Offer);
  if (all.length === 0) {
    throw new TypeError('the main file exports no tool, prompt or resource: export const greet = tool({ … })');
  }
  const offers = {};
  for (const Kind of new Set(all.map((one) => one.constructor))) {
    Object.assign(offers, Kind.interfaces(all.filter((one) => one instanceof Kind), run));
  }
  const completing = all.filter(({ completes }) => completes);
  if (completing.length > 0) {
    const completer = (request) => completing.map((one) => one.completer(request)).find(Boolean) ?? NOTHING;
    offers.completion = { complete: (request) => run(() => completer(request), request) };
  }
  return Object.fromEntries(ORDER.filter((name) => name in offers).map((name) => [name, offers[name]]));
}

export const definitions = (list) => list.map(({ definition }) => definition);

/** Returns the offer with that name, which the host has from the definitions. */
export function found(map, what, name) {
  const one = map.get(name);
  if (one === undefined) throw new Error(`there is no ${what} ${name}`);
  return one;
}

/** Returns a map of a list, by a member whose value is unique. */
export function unique(what, list, key) {
  const map = new Map();
  for (const one of list) {
    if (map.has(one[key])) throw new TypeError(`two ${what} ${one[key]}`);
    map.set(one[key], one);
  }
  return map;
}
