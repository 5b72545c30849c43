// Descriptions of arguments and results: JSON Schema out of plain calls.

/** A value's JSON Schema, and what to do when the value is missing. */
export class Schema {
  /**
   * `presence` is `required`, `optional` or `default`; `fill` puts defaults
   * into a value that fits.
   */
  constructor(json, { presence = 'required', fallback, fill = (value) => value } = {}) {
    this.json = Object.freeze(json);
    this.presence = presence;
    this.fallback = fallback;
    this.fill = fill;
  }

  /** The value may be left out; the handler then sees `undefined`. */
  optional() {
    return new Schema(this.json, { presence: 'optional', fill: this.fill });
  }

  /** The value may be left out; the handler then sees `fallback`. */
  default(fallback) {
    return new Schema({ ...this.json, default: fallback }, { presence: 'default', fallback, fill: this.fill });
  }

  /** The value may be `null`. */
  nullable() {
    const { description, ...json } = this.json;
    const fill = (value) => (value === null ? null : this.fill(value));
    return new Schema(described({ anyOf: [json, { type: 'null' }] }, description), { ...this, fill });
  }
}

const described = (json, description, options = {}) => ({
  ...json,
  ...(description === undefined ? {} : { description }),
  ...options,
});

const plain = (type) => (description, options) => new Schema(described({ type }, description, options));

/** `schema` itself, or words for an author who wrote something else. */
function checked(schema, what) {
  if (schema instanceof Schema) return schema;
  throw new TypeError(`${what} is described by \`t\`, such as t.string('What it is.'), not by ${typeof schema}`);
}

/** An object with exactly these fields. */
export function object(fields, description) {
  const entries = Object.entries(fields);
  for (const [key, schema] of entries) checked(schema, `the field \`${key}\``);
  const required = entries.filter(([, schema]) => schema.presence === 'required').map(([key]) => key);
  const json = {
    type: 'object',
    properties: Object.fromEntries(entries.map(([key, schema]) => [key, schema.json])),
    ...(required.length > 0 ? { required } : {}),
    additionalProperties: false,
  };
  const fill = (value) => {
    const filled = { ...value };
    for (const [key, schema] of entries) {
      if (Object.hasOwn(filled, key)) filled[key] = schema.fill(filled[key]);
      else if (schema.presence === 'default') filled[key] = copy(schema.fallback);
    }
    return filled;
  };
  return new Schema(described(json, description), { fill });
}

/** Defaults are JSON; a handler that changes one must not change the next. */
const copy = (value) => (typeof value === 'object' ? JSON.parse(JSON.stringify(value)) : value);

/** The builder: each takes a description for the model, and JSON Schema's own options. */
export const t = {
  string: plain('string'),
  number: plain('number'),
  integer: plain('integer'),
  boolean: plain('boolean'),
  /** One of a few values. */
  choice: (values, description) => {
    const [type, ...others] = new Set(values.map((value) => typeof value));
    return new Schema(described({ ...(others.length === 0 ? { type } : {}), enum: [...values] }, description));
  },
  list: (item, description, options) =>
    new Schema(described({ type: 'array', items: checked(item, 'an item').json }, description, options), {
      fill: (value) => value.map(item.fill),
    }),
  object,
  /** An object with keys of the caller's choice. */
  map: (item, description) =>
    new Schema(described({ type: 'object', additionalProperties: checked(item, 'a value').json }, description), {
      fill: (value) => Object.fromEntries(Object.entries(value).map(([key, held]) => [key, item.fill(held)])),
    }),
  /** What fits one of several descriptions. */
  union: (schemas, description) =>
    new Schema(described({ anyOf: schemas.map((schema) => checked(schema, 'an alternative').json) }, description)),
  /** A JSON Schema written by hand, for what the others cannot say. */
  json: (json) => new Schema(json),
};
