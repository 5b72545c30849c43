// A prompt: a text that the user chooses, which becomes the beginning of a conversation.

import { checkName, checkOptions, iconsOf, members } from './check.js';
import { completersOf } from './completion.js';
import { block, Content, json } from './content.js';
import { InvalidArguments } from './failure.js';
import { checkMessage, isMessage } from './message.js';
import { definitions, found, Offer, unique } from './offer.js';
import { Schema } from './schema.js';

const OPTIONS = { name: 'string', arguments: 'object', complete: 'object' };

/** The keywords that an argument can have. No others would be checked: clients send texts, and there is no schema. */
const KEYWORDS = ['type', 'enum', 'title', 'description', 'default', 'examples', 'deprecated'];

/** The functions that read the text of an argument, by type. They return `undefined` for an invalid text. */
const READERS = {
  string: (text) => text,
  number: (text) => (text.trim() !== '' && Number.isFinite(Number(text)) ? Number(text) : undefined),
  integer: (text) => (text.trim() !== '' && Number.isSafeInteger(Number(text)) ? Number(text) : undefined),
  boolean: (text) => ({ true: true, false: false })[text.trim().toLowerCase()],
};
const READ_AS = { number: 'a number', integer: 'a whole number', boolean: '`true` or `false`' };

/** The result of `prompt`. */
export class Prompt extends Offer {
  #arguments;
  #completers;
  #handler;

  constructor(options) {
    super();
    checkName('a prompt', options?.name);
    const { name, title, description, icons, meta } = options;
    checkOptions(`prompt ${name}`, options, OPTIONS, 'handler(args) { … }');
    this.#arguments = Object.entries(options.arguments ?? {});
    for (const [key, schema] of this.#arguments) {
      checkName(`an argument of prompt ${name}`, key);
      checkArgument(`argument ${key} of prompt ${name}`, schema);
    }
    this.#handler = options.handler;
    this.#completers = completersOf(`prompt ${name}`, { ...this.#choices(), ...options.complete }, this.#names());
    /** The contract's record `prompt-definition`. */
    this.definition = Object.freeze({
      name,
      title,
      description,
      arguments: this.#arguments.map(([key, { json: { title, description }, presence }]) => ({
        name: key,
        title,
        description,
        required: presence === 'required',
      })),
      icons: iconsOf(icons),
      meta: meta && json(meta),
    });
  }

  /** Returns the contract's interface of these prompts. */
  static interfaces(list, run) {
    const prompts = unique('prompts are named', list, 'name');
    return {
      prompts: {
        listPrompts: () => definitions(list),
        getPrompt: (name, args) => run(() => found(prompts, 'prompt', name), args),
      },
    };
  }

  /** Returns whether any argument can be completed. */
  get completes() {
    return this.#completers.size > 0;
  }

  /** Returns the completer of the argument of a `completion-request`, if the argument belongs to this prompt. */
  completer({ kind, name, argument }) {
    return kind === 'prompt' && name === this.name ? this.#completers.get(argument) : undefined;
  }

  get name() {
    return this.definition.name;
  }

  /** Starts with the contract's list of names and texts. Its result, or the promise of it, is passed to `finish`. */
  start(given, host) {
    return this.#handler(this.#read(new Map(given)), host);
  }

  /** Returns the contract's record `prompt-output` for the handler's answer. */
  finish(answer) {
    const { messages, description, meta } = parse(answer);
    return {
      description,
      messages: [messages].flat().map(message),
      meta: meta && json(meta),
    };
  }

  #names() {
    return this.#arguments.map(([key]) => key);
  }

  /** Returns completers for the arguments that are choices, which suggest their values. */
  #choices() {
    return Object.fromEntries(this.#arguments.map(([key, { json }]) => [key, json.enum?.map(String)]));
  }

  #read(given) {
    for (const key of given.keys()) {
      if (!this.#names().includes(key)) throw new InvalidArguments(`there is no argument \`${key}\``);
    }
    const values = this.#arguments.flatMap(([key, { json, presence, fallback }]) => {
      if (given.has(key)) return [[key, valueOf(key, json, given.get(key))]];
      if (presence === 'required') throw new InvalidArguments(`the argument \`${key}\` is missing`);
      return presence === 'default' ? [[key, fallback]] : [];
    });
    return Object.fromEntries(values);
  }
}

function checkArgument(where, schema) {
  if (!(schema instanceof Schema)) {
    throw new TypeError(`${where} is described by \`t\`, such as t.string('What it is.'), not by ${typeof schema}`);
  }
  const { json } = schema;
  if (READERS[json.type] === undefined) {
    throw new TypeError(`${where} is a t.string, t.choice, t.number, t.integer or t.boolean: clients give it as text`);
  }
  const other = Object.keys(json).find((key) => !KEYWORDS.includes(key));
  if (other !== undefined) {
    throw new TypeError(`${where}: nobody checks \`${other}\`: check it in the handler and throw InvalidArguments`);
  }
  members(where, { title: json.title, description: json.description }, { title: 'string', description: 'string' });
}

function valueOf(key, { type, enum: choices }, text) {
  const value = READERS[type](text);
  if (value !== undefined && (choices === undefined || choices.includes(value))) return value;
  const expected = choices === undefined ? READ_AS[type] : `one of ${choices.join(', ')}`;
  throw new InvalidArguments(`\`${key}\` is ${expected}, not ${JSON.stringify(text)}`);
}

const OUTPUT = { messages: undefined, description: 'string', meta: 'object' };

function parse(answer) {
  if (typeof answer === 'string' || Array.isArray(answer) || answer instanceof Content) return { messages: answer };
  if (typeof answer !== 'object' || answer === null) {
    throw new TypeError(`a prompt answers with a text, a block, a message or a list, not with ${String(answer)}`);
  }
  if (!('messages' in answer)) return { messages: answer };
  members('the answer of a prompt', answer, OUTPUT);
  return { ...answer, description: answer.description?.toWellFormed() };
}

/** Returns the contract's record `prompt-message`. Its author is the user, unless it names another. */
function message(item) {
  if (!isMessage(item)) return { role: 'user', content: block(item) };
  checkMessage(item);
  return { role: item.role, content: block(item.content) };
}

/** Describes a prompt. Every prompt that the plugin's main file exports is offered. */
export const prompt = (options) => new Prompt(options);
