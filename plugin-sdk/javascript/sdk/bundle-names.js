// Free names of the bundle: which globals it takes from the global object, and which of the
// author's names nothing defines.

import { ENGINE_GLOBALS, GLOBALS, MEMBERS, MISSING_GLOBALS } from './global-modules.js';

/** Fields of syntax nodes that contain no nodes. */
const PLAIN = new Set(['type', 'start', 'end', 'loc', 'range', 'raw', 'value', 'operator', 'kind', 'name']);

/**
 * Returns the free names of a bundle. `sourceOf(line, column)` returns the place in the author's or a
 * package's file, with `file`, `line` and `column`; lines and columns start at 0. `isAuthors(file)` returns
 * whether the author wrote the file, and `isOurs(file)` whether it is part of the SDK. `acorn` and `eslintScope` are
 * these packages, which the project installs.
 *
 * `used` are the globals that are reached through the global object, and `unknown` the places of
 * the author's names that are not defined anywhere. `free` are all names that the text does not define.
 */
export function freeNames(text, { acorn, eslintScope, sourceOf, isAuthors, isOurs }) {
  const tree = acorn.parse(text, { ecmaVersion: 'latest', sourceType: 'module', locations: true, ranges: true });
  const parents = parentsOf(tree);
  // A package that calls `eval` does not define names of the bundle with it.
  const scopes = eslintScope.analyze(tree, { ecmaVersion: 2025, sourceType: 'module', ignoreEval: true });
  const free = scopes.globalScope.through.filter(({ identifier }) => identifier.type === 'Identifier');
  const place = ({ loc }) => sourceOf(loc.start.line - 1, loc.start.column);

  const uses = new GlobalUses(parents, scopes);
  for (const { identifier } of free) if (identifier.name === 'globalThis') uses.follow(identifier);
  const used = new Set();
  for (const { name, node } of uses.members) {
    if (Object.hasOwn(GLOBALS, name) && !isOurs(place(node)?.file)) used.add(name);
  }
  // In a file that passes the object on, every member may be a global: one that it takes or one that it sets.
  const unclear = new Set(uses.escapes.map((node) => place(node)?.file).filter((file) => !isOurs(file)));
  const undefinedNames = free.filter(({ identifier: { name } }) => !ENGINE_GLOBALS.has(name) && !Object.hasOwn(GLOBALS, name));
  const set = new Set(uses.members.map(({ name }) => name));
  for (const { name, node } of mentions(parents)) {
    if (Object.hasOwn(MEMBERS, name) && !used.has(name) && !isOurs(place(node)?.file)) used.add(name);
  }
  if (unclear.size > 0) {
    const isNeeded = new Set([...Object.keys(GLOBALS), ...undefinedNames.map(({ identifier }) => identifier.name)]);
    for (const { name, node } of mentions(parents)) {
      if (!isNeeded.has(name) || !unclear.has(place(node)?.file)) continue;
      if (Object.hasOwn(GLOBALS, name)) used.add(name);
      else set.add(name);
    }
  }
  const unknown = unknownNames(undefinedNames.filter(({ identifier }) => !set.has(identifier.name)), parents, place, isAuthors);
  return { used: [...used].sort(), unknown, free: [...new Set(free.map(({ identifier }) => identifier.name))] };
}

/** Returns the message for an unknown name. */
export function problemOf({ name, advice }) {
  return advice === undefined ? `\`${name}\` is not defined` : `A plugin does not have \`${name}\`: ${advice}`;
}

/** Returns each author's use of a name that is not defined, except for those that a check precedes. */
function unknownNames(references, parents, place, isAuthors) {
  const places = references.map(({ identifier }) => ({ identifier, name: identifier.name, place: place(identifier) }));
  const checked = new Set(places.filter(({ identifier }) => isTypeof(parents.get(identifier))).map(({ name, place }) => `${name} ${place?.file}`));
  const seen = new Set();
  const unknown = [];
  for (const { identifier, name, place: at } of places) {
    if (at === undefined || !isAuthors(at.file) || checked.has(`${name} ${at.file}`) || isInTry(identifier, parents)) continue;
    const key = `${name} ${at.file}:${at.line}:${at.column}`;
    if (seen.has(key)) continue;
    seen.add(key);
    unknown.push({ name, advice: MISSING_GLOBALS[name], ...at });
  }
  return unknown;
}

const isTypeof = (node) => node?.type === 'UnaryExpression' && node.operator === 'typeof';

/** Returns whether a `catch` handles the error of an unknown name. */
function isInTry(node, parents) {
  for (let at = node, parent = parents.get(at); parent !== undefined; at = parent, parent = parents.get(at)) {
    if (parent.type === 'TryStatement' && parent.block === at && parent.handler !== null) return true;
    // A function in the block can be called outside it.
    if (/Function/.test(parent.type)) return false;
  }
  return false;
}

function parentsOf(tree) {
  const parents = new Map();
  visit(tree, (node, parent) => parents.set(node, parent));
  return parents;
}

function visit(tree, act) {
  const stack = [[tree, undefined]];
  while (stack.length > 0) {
    const [node, parent] = stack.pop();
    act(node, parent);
    for (const field of Object.keys(node)) {
      // The value of a property or of a class member is a node, and that of a literal is not.
      if (PLAIN.has(field) && !(field === 'value' && typeof node.value?.type === 'string')) continue;
      const child = node[field];
      if (Array.isArray(child)) {
        for (const one of child) if (typeof one?.type === 'string') stack.push([one, node]);
      } else if (typeof child?.type === 'string') {
        stack.push([child, node]);
      }
    }
  }
}

/** The uses of the global object. */
class GlobalUses {
  /** The members that are named: nodes with their names. */
  members = [];
  /** Uses after which the object has another name, or a member's name is computed. */
  escapes = [];
  #parents;
  #variables = new Map();
  #followed = new Set();

  constructor(parents, scopes) {
    this.#parents = parents;
    for (const scope of scopes.scopes) {
      for (const variable of scope.variables) for (const { name } of variable.defs) this.#variables.set(name, variable);
      for (const { identifier, resolved } of scope.references) if (resolved) this.#variables.set(identifier, resolved);
    }
  }

  /** Records the use of an expression whose value is the global object. */
  follow(node) {
    const parent = this.#parents.get(node);
    switch (parent?.type) {
      case 'MemberExpression':
        if (parent.object === node) this.#member(parent.property, parent.computed, node);
        return;
      case 'ChainExpression':
      case 'ParenthesizedExpression':
      case 'LogicalExpression':
        return this.follow(parent);
      case 'ConditionalExpression':
        return parent.test === node ? undefined : this.follow(parent);
      case 'SequenceExpression':
        return parent.expressions.at(-1) === node ? this.follow(parent) : undefined;
      case 'BinaryExpression':
        if (parent.operator === 'in' && parent.right === node) this.#member(parent.left, true, node);
        return;
      case 'UnaryExpression':
      case 'ExpressionStatement':
      case 'IfStatement':
        return;
      case 'VariableDeclarator':
        return this.#assigned(parent.id, node);
      case 'AssignmentExpression':
        if (parent.left === node) return;
        if (parent.operator === '=') this.follow(parent);
        return this.#assigned(parent.left, node);
      default:
        this.escapes.push(node);
    }
  }

  #member(property, computed, node) {
    if (!computed) this.members.push({ name: property.name, node });
    else if (typeof property.value === 'string') this.members.push({ name: property.value, node });
    else this.escapes.push(node);
  }

  /** The object is the value of a variable or is destructured. */
  #assigned(target, node) {
    if (target.type === 'ObjectPattern') {
      for (const property of target.properties) {
        if (property.type === 'Property') this.#member(property.key, property.computed, node);
        else this.escapes.push(node);
      }
      return;
    }
    const variable = target.type === 'Identifier' ? this.#variables.get(target) : undefined;
    if (variable === undefined) {
      this.escapes.push(node);
      return;
    }
    if (this.#followed.has(variable)) return;
    this.#followed.add(variable);
    for (const { identifier } of variable.references) {
      const isTarget = this.#parents.get(identifier)?.left === identifier || this.#parents.get(identifier)?.id === identifier;
      if (!isTarget) this.follow(identifier);
    }
  }
}

/** Returns the names of members and the texts, with their nodes. */
function* mentions(parents) {
  for (const [node, parent] of parents) {
    if (node.type === 'Literal' && typeof node.value === 'string') yield { name: node.value, node };
    if (node.type !== 'Identifier') continue;
    const isMember = parent?.type === 'MemberExpression' && parent.property === node && !parent.computed;
    const isKey = parent?.type === 'Property' && parent.key === node && !parent.computed;
    if (isMember || isKey) yield { name: node.name, node };
  }
}
