// URI templates (RFC 6570, level 1, and `{+name}`): matches URIs, and extracts the values of their
// variables.

/** A URI, or a template of URIs. */
export class UriTemplate {
  #pattern;
  #reserved = [];
  /** The names of the variables, in order. */
  variables = [];

  constructor(template) {
    const wrong = (why) => new TypeError(`the URI ${template} ${why}`);
    const [prefix] = template.split('{', 1);
    if (!/^[a-z][a-z\d+.-]*:/i.test(prefix)) throw wrong('does not begin with a scheme, such as notes:');
    if (/^toolbay:/i.test(prefix)) throw wrong('has the scheme of files next to the plugins: use another one');
    let pattern = '';
    let end = 0;
    for (const { 0: whole, 1: sign, 2: name, index } of template.matchAll(/\{(\+?)([^{}]*)\}/g)) {
      if (!/^[\w.]{1,64}$/.test(name)) throw wrong(`has ${whole}: write {name}, or {+name} for any characters`);
      if (this.variables.includes(name)) throw wrong(`has {${name}} twice`);
      if (end > 0 && index === end) throw wrong(`has nothing between ${whole} and the variable before it`);
      pattern += literal(template.slice(end, index)) + (sign === '+' ? '(.+?)' : '([^/?#]+?)');
      this.variables.push(name);
      this.#reserved.push(sign === '+');
      end = index + whole.length;
    }
    const rest = template.slice(end);
    if (/[{}]/.test(template.replaceAll(/\{[^{}]*\}/g, ''))) throw wrong('has a brace without its other half');
    this.#pattern = new RegExp(`^${pattern}${literal(rest)}$`, 'su');
  }

  /** Returns the values of the variables in `uri`; `undefined` if it does not match. Those of `{name}` are decoded. */
  values(uri) {
    const found = this.#pattern.exec(uri);
    if (found === null) return undefined;
    try {
      return Object.fromEntries(this.variables.map((name, index) => {
        const value = found[index + 1];
        return [name, this.#reserved[index] ? value : decodeURIComponent(value)];
      }));
    } catch {
      // A `%` without digits, or bytes that are not text.
      return undefined;
    }
  }
}

const literal = (text) => text.replaceAll(/[.*+?^${}()|[\]\\/]/g, '\\$&');
