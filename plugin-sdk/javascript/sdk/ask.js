// Questions to the caller: forms, pages to visit, texts of the client's model, and the user's folders.

import { Content } from './content.js';
import { checkMessage, isMessage } from './message.js';
import { object } from './schema.js';

/** A question for `host.ask`. */
export class Question {
  /** `kind` and `params` are those of the contract; `read` converts the client's result to the answer. */
  constructor(kind, params, read, required = true) {
    this.kind = kind;
    this.params = params;
    this.read = read;
    this.required = required;
  }

  /** Makes the answer `undefined` if the client cannot answer. Without it, the host ends the call. */
  optional() {
    return new Question(this.kind, this.params, this.read, false);
  }
}

/** The keywords that a field of a form can have, by type: those that clients support. */
const KEYWORDS = {
  string: ['minLength', 'maxLength', 'format', 'enum', 'enumNames', 'oneOf'],
  number: ['minimum', 'maximum'],
  integer: ['minimum', 'maximum'],
  boolean: [],
  array: ['items', 'minItems', 'maxItems'],
};
const ANY = ['type', 'title', 'description', 'default'];
const FORMATS = ['date', 'date-time', 'email', 'uri'];

/** A form for the user to fill in. */
export function form(message, fields) {
  const schema = object(fields);
  // Clients do not support `additionalProperties`: a form has no further fields.
  const { additionalProperties, ...requestedSchema } = schema.json;
  const properties = Object.entries(requestedSchema.properties);
  if (properties.length === 0) throw new TypeError('a form has fields: form(message, { name: t.string() })');
  for (const [key, json] of properties) checkField(key, json);
  const params = { message: said('the message of a form', message), requestedSchema };
  return new Question('form', params, ({ action, content }) =>
    action === 'accept' ? { action, content: schema.fill(content ?? {}) } : decided(action),
  );
}

/** A page for the user to visit. */
export function visit(message, url) {
  const params = { message: said('the message of a page', message), url: said('the URL of a page', url) };
  return new Question('url', params, ({ action }) => decided(action));
}

/** A text for the client's model to write. */
export function sampling(prompt, options) {
  const { maxTokens } = options ?? {};
  if (!(Number.isSafeInteger(maxTokens) && maxTokens > 0)) {
    throw new TypeError("a model is told how much to write: sampling('…', { maxTokens: 200 })");
  }
  const params = { ...options, messages: [prompt].flat().map(message) };
  return new Question('sampling', params, (result) => ({ ...result, text: textOf(result.content) }));
}

/** The folders that the user works in. */
export const roots = () => new Question('roots', {}, ({ roots }) => roots);

function checkField(key, json) {
  const own = KEYWORDS[json.type];
  if (own === undefined) {
    throw new TypeError(
      `the field \`${key}\` of a form is a t.string, t.number, t.integer, t.boolean, a t.choice of texts ` +
        'or a t.list of such a choice: clients can show nothing else',
    );
  }
  const other = Object.keys(json).find((keyword) => !ANY.includes(keyword) && !own.includes(keyword));
  if (other !== undefined) {
    throw new TypeError(`the field \`${key}\` of a form: clients cannot show \`${other}\``);
  }
  if (json.format !== undefined && !FORMATS.includes(json.format)) {
    throw new TypeError(`the field \`${key}\` of a form: \`format\` is one of ${FORMATS.join(', ')}`);
  }
  if (json.type === 'array' && (json.items?.enum ?? json.items?.anyOf) === undefined) {
    throw new TypeError(`the field \`${key}\` of a form is a list of a t.choice: clients can show no other`);
  }
}

const said = (what, value) => {
  if (typeof value === 'string') return value;
  throw new TypeError(`${what} is a string, not ${typeof value}`);
};

function decided(action) {
  if (['accept', 'decline', 'cancel'].includes(action)) return { action };
  throw new Error(`the client answered with an unknown action: ${String(action)}`);
}

/** Returns a message of `sampling/createMessage`. Its author is the user, unless it names another. */
function message(item) {
  if (!isMessage(item)) return { role: 'user', content: sampled(item) };
  checkMessage(item);
  const { role, content } = item;
  return { role, content: Array.isArray(content) ? content.map(sampled) : sampled(content) };
}

/** Returns a block as in MCP. */
function sampled(item) {
  if (typeof item === 'string') return { type: 'text', text: item };
  if (item instanceof Content) {
    const { kind, text, data, mimeType } = item;
    if (kind === 'text') return { type: kind, text };
    if (kind === 'image' || kind === 'audio') return { type: kind, data: base64(data), mimeType };
  } else if (typeof item?.type === 'string') {
    return item;
  }
  throw new TypeError('a model is asked by texts, `image`, `audio`, or a content block of MCP, which has a `type`');
}

function base64(data) {
  let bytes = '';
  for (const byte of data) bytes += String.fromCharCode(byte);
  return btoa(bytes);
}

const textOf = (content) =>
  [content]
    .flat()
    .map((block) => block?.text)
    .filter((text) => typeof text === 'string')
    .join('\n');
