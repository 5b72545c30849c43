// Descriptions of arguments and results: functions that generate JSON Schema.

/** A value's JSON Schema, and the handling of a missing value. */
export class Schema {
  /**
   * `presence` is `required`, `optional` or `default`; `fill` adds defaults to a
   * valid value.
   */
  constructor(json, { presence = 'required', fallback, fill = (value) => value } = {}) {
    this.json = Object.freeze(json);
    this.presence = presence;
    this.fallback = fallback;
    this.fill = fill;
  }

  /** The value may be left out. Then the handler receives `undefined`. */
  optional() {
    return new Schema(this.json, { presence: 'optional', fill: this.fill });
  }

  /** The value may be left out. Then the handler receives `fallback`. */
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

/** Returns `schema`, or throws an error if it is not a schema. */
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

/** Returns a copy of a default, which is JSON: a handler that changes it must not affect later calls. */
const copy = (value) => (typeof value === 'object' ? JSON.parse(JSON.stringify(value)) : value);

/** The builder: each function takes a description for the model, and JSON Schema's own options. */
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
  /** A value that matches at least one of several descriptions. */
  union: (schemas, description) =>
    new Schema(described({ anyOf: schemas.map((schema) => checked(schema, 'an alternative').json) }, description)),
  /** A handwritten JSON Schema, for types that the other functions cannot describe. */
  json: (json) => new Schema(json),
};
