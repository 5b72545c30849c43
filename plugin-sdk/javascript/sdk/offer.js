// What a plugin offers: the contract's interfaces for what its main file exports.
//
// This knows no tool, prompt or resource, so that the build leaves out of a
// plugin what the plugin does not use.

/** What a main file can export. A kind of it has `interfaces(list, run)`. */
export class Offer {}

/** The interfaces in the order in which the build names them. */
const ORDER = ['tools', 'prompts', 'resources', 'completion'];

/** Completes an argument for which nobody suggests anything. */
const NOTHING = { start() {}, finish: () => ({ values: [], hasMore: false }) };

/**
 * The interfaces that a plugin exports, by name, and no other. `run(find, input)`
 * starts what `find` returns with the input, and finishes it.
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

/** The one of that name, which the host knows from the definitions. */
export function found(map, what, name) {
  const one = map.get(name);
  if (one === undefined) throw new Error(`there is no ${what} ${name}`);
  return one;
}

/** A list by a member that is different for each. */
export function unique(what, list, key) {
  const map = new Map();
  for (const one of list) {
    if (map.has(one[key])) throw new TypeError(`two ${what} ${one[key]}`);
    map.set(one[key], one);
  }
  return map;
}
