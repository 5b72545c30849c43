// Stands for a module of Node that a plugin does not have. Packages can import it. Using
// it throws.

/** Returns the module `name`, whose members throw when they are used. `given` has members that exist. */
module.exports = function missing(name, instead, given = {}) {
  const refuse = (member) => {
    throw new Error(`\`${member}\` of Node is used, which a plugin does not have: ${instead}`);
  };
  const standIn = (path) => {
    const members = new Map();
    const proxy = new Proxy(function () {}, {
      get(target, key) {
        if (key === Symbol.toPrimitive) return () => refuse(path);
        // Otherwise, the code that TypeScript generates for an import copies the members, of which there is no list.
        if (key === '__esModule') return path === name;
        if (typeof key === 'symbol' || key === 'then') return undefined;
        if (path === name && Object.hasOwn(given, key)) return given[key];
        if (key === 'default' && path === name) return proxy;
        if (key === 'prototype') return target.prototype;
        if (!members.has(key)) members.set(key, standIn(`${path}.${key}`));
        return members.get(key);
      },
      apply: () => refuse(path),
      construct: () => refuse(path),
      set: () => refuse(path),
      // The build's conversion to a module copies the prototype, not the members.
      getPrototypeOf: () => (path === name ? proxy : Function.prototype),
    });
    return proxy;
  };
  return standIn(name);
};
