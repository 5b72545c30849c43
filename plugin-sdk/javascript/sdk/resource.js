// Resources, which clients read by URI.

import { audienceOf, checkOptions, checkSize, iconsOf, members } from './check.js';
import { completersOf } from './completion.js';
import { bytes, embedded, json } from './content.js';
import { definitions, Offer, unique } from './offer.js';
import { UriTemplate } from './uri-template.js';
import { typeOf, withView } from './view.js';

const OPTIONS = {
  uri: 'string',
  name: 'string',
  mimeType: 'string',
  size: 'number',
  // One, or a list: `audienceOf` reads it.
  audience: undefined,
  priority: 'number',
  lastModified: 'string',
  view: 'object',
  complete: 'object',
};

const CONTENTS = { uri: 'string', mimeType: 'string', meta: 'object' };

/** Reads a resource that does not exist. */
const NONE = { start() {}, finish: () => [] };

/** The result of `contents`: one item of a resource. */
class Contents {
  constructor(body, options = {}) {
    members('contents', options, CONTENTS);
    Object.assign(this, options);
    if (typeof body === 'string') this.text = body.toWellFormed();
    else this.data = bytes(body);
  }
}

/** The result of `resource` with options: a resource, or a template if its URI has variables. */
export class Resource extends Offer {
  #completers;
  #template;
  #handler;

  constructor(options) {
    super();
    checkResource(options);
    const { uri, name, title, description, mimeType = typeOf(uri), size, priority, lastModified, icons } = options;
    const meta = withView(`resource ${uri}`, uri, options.view, options.meta);
    this.#template = new UriTemplate(uri);
    this.#handler = options.handler;
    this.#completers = completersOf(`resource ${uri}`, options.complete, this.#template.variables);
    const common = {
      name,
      title,
      description,
      mimeType,
      audience: audienceOf(options.audience),
      priority,
      icons: iconsOf(icons),
      meta: meta && json(meta),
    };
    if (this.isTemplate && (size ?? lastModified) !== undefined) {
      throw new TypeError(`resource ${uri}: a URI with variables has no \`size\` and no \`lastModified\``);
    }
    /** The contract's record `resource-definition` or `resource-template`. */
    this.definition = Object.freeze(
      this.isTemplate ? { uriTemplate: uri, ...common } : { uri, ...common, size, lastModified },
    );
  }

  /** Returns the contract's interface of these resources. */
  static interfaces(list, run) {
    const templates = list.filter(({ isTemplate }) => isTemplate);
    const fixed = list.filter(({ isTemplate }) => !isTemplate);
    unique('resources have the URI', list, 'uri');
    unique('resource templates are named', templates, 'name');
    return {
      resources: {
        listResources: () => definitions(fixed),
        listResourceTemplates: () => definitions(templates),
        // A resource without variables takes precedence over a template that its URI matches.
        readResource: (uri) => run(() => [...fixed, ...templates].find((one) => one.fits(uri)) ?? NONE, uri),
      },
    };
  }

  /** Returns whether any variable can be completed. */
  get completes() {
    return this.#completers.size > 0;
  }

  /**
   * Returns the completer of the argument of a `completion-request`, if the argument is a variable of this template.
   */
  completer({ kind, name, argument }) {
    return kind === 'resource-template' && name === this.uri ? this.#completers.get(argument) : undefined;
  }

  get name() {
    return this.definition.name;
  }

  get uri() {
    return this.definition.uri ?? this.definition.uriTemplate;
  }

  /** Returns whether the URI has variables. */
  get isTemplate() {
    return this.#template.variables.length > 0;
  }

  /** Returns whether `uri` is that of this resource, or matches the template. */
  fits(uri) {
    return this.#template.values(uri) !== undefined;
  }

  /** Starts to read `uri`, which matches. Its result, or the promise of it, is passed to `finish`. */
  start(uri, host) {
    return this.#handler(this.#template.values(uri), host);
  }

  /**
   * Returns the contract's list of `resource-contents` for the handler's answer: empty if there is no such resource.
   */
  finish(answer, uri) {
    if (answer === undefined || answer === null) return [];
    return [answer].flat().map((item) => {
      const { uri: own = uri, mimeType = this.definition.mimeType, text, data, meta } = contentsOf(item);
      return { uri: own, mimeType, text, data, meta: meta && json(meta) };
    });
  }
}

function checkResource(options) {
  const { uri, name, size } = options ?? {};
  if (typeof uri !== 'string') throw new TypeError("a resource has a URI: resource({ uri: 'notes://{id}', … })");
  checkOptions(`resource ${uri}`, options, OPTIONS, 'handler(values) { … }');
  if (!name) throw new TypeError(`resource ${uri} has no name: name: 'note'`);
  checkSize(size);
}

function contentsOf(item) {
  if (item instanceof Contents) return item;
  if (typeof item === 'string' || item instanceof ArrayBuffer || ArrayBuffer.isView(item)) return new Contents(item);
  throw new TypeError(
    `a resource is read as a text, bytes, \`contents(…)\` or a list of these, not as ${typeof item}; ` +
      'it is undefined if there is none, and JSON is written by JSON.stringify',
  );
}

/** Returns one item of a resource, with its own MIME type or URI. */
export const contents = (body, options) => new Contents(body, options);

/**
 * With options: describes a resource. Every resource that the plugin's main file
 * exports is offered. With a URI and a body: returns a block of a result.
 */
export const resource = (first, ...rest) =>
  typeof first === 'string' ? embedded(first, ...rest) : new Resource(first);
