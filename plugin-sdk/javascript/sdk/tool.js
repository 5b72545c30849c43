// A tool: its definition for the model, and its function.

import { checkName, checkOptions, iconsOf } from './check.js';
import { json, output } from './content.js';
import { definitions, found, Offer, unique } from './offer.js';
import { object, Schema } from './schema.js';
import { withLink } from './view.js';

const OPTIONS = {
  name: 'string',
  input: 'object',
  output: 'object',
  annotations: 'object',
  view: 'string',
  appOnly: 'boolean',
};

/** The result of `tool`. */
export class Tool extends Offer {
  #input;
  #output;
  #handler;

  constructor(options) {
    super();
    checkName('a tool', options?.name);
    checkOptions(`tool ${options.name}`, options, OPTIONS, 'handler(args) { … }');
    const { name, title, description, annotations, icons } = options;
    const meta = withLink(`tool ${name}`, options.view, options.appOnly, options.meta);
    this.#input = schemaOf(options.input ?? {});
    this.#output = options.output && schemaOf(options.output);
    this.#handler = options.handler;
    /** The contract's record `tool-definition`. */
    this.definition = Object.freeze({
      name,
      title,
      description,
      inputSchema: json(this.#input.json),
      outputSchema: this.#output && json(this.#output.json),
      annotations,
      icons: iconsOf(icons),
      meta: meta && json(meta),
    });
  }

  /** Returns the contract's interface of these tools. */
  static interfaces(list, run) {
    const tools = unique('tools are named', list, 'name');
    return {
      tools: {
        listTools: () => definitions(list),
        callTool: (name, args) => run(() => found(tools, 'tool', name), JSON.parse(args)),
      },
    };
  }

  get name() {
    return this.definition.name;
  }

  /** Starts a call. Its result, or the promise of it, is passed to `finish`. */
  start(args, host) {
    return this.#handler(this.#input.fill(args), host);
  }

  /** Returns the contract's record `output` for the handler's answer. */
  finish(answer) {
    return output(answer, this.#output !== undefined);
  }
}

const schemaOf = (described) => (described instanceof Schema ? described : object(described));

/** Describes a tool. Every tool that the plugin's main file exports is offered. */
export const tool = (options) => new Tool(options);
