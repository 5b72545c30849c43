/** Write Toolbay plugins: tools with typed arguments, typed results and no JSON Schema by hand. */

/** How a value's schema is met when the value is left out. */
type Presence = 'required' | 'optional' | 'default';

/** A value's JSON Schema, which remembers the value's type. Made by {@link t}. */
export declare class Schema<T, P extends Presence = 'required'> {
  private readonly type: T;
  private readonly presence: P;
  private constructor();
  /** The JSON Schema. */
  readonly json: Readonly<Record<string, unknown>>;
  /** The value may be left out; the handler then sees `undefined`. */
  optional(): Schema<T, 'optional'>;
  /** The value may be left out; the handler then sees `fallback`. */
  default(fallback: T): Schema<T, 'default'>;
  /** The value may be `null`. */
  nullable(): Schema<T | null, P>;
}

/** The fields of an object: names, and what each holds. */
export type Fields = Record<string, Schema<any, Presence>>;

/** The type of the values that a schema, or the fields of an object, describe. */
export type Infer<S> = S extends Schema<infer T, Presence> ? T : S extends Fields ? Flat<Filled<S>> : never;

/** The same, as a caller writes it: what has a default may be left out. */
export type Given<S> = S extends Schema<infer T, Presence> ? T : S extends Fields ? Flat<Sparse<S>> : never;

type Keys<F extends Fields, P extends Presence> = { [K in keyof F]: F[K] extends Schema<any, P> ? K : never }[keyof F];
type Type<S> = S extends Schema<infer T, Presence> ? T : never;
type Filled<F extends Fields> = { [K in Keys<F, 'required' | 'default'>]: Type<F[K]> } & {
  [K in Keys<F, 'optional'>]?: Type<F[K]>;
};
type Sparse<F extends Fields> = { [K in Keys<F, 'required'>]: Type<F[K]> } & {
  [K in Keys<F, 'optional' | 'default'>]?: Type<F[K]>;
};
type Flat<T> = { [K in keyof T]: T[K] } & {};

/** The keywords of JSON Schema for any value, except its description. */
export interface Notes<T> {
  title?: string;
  examples?: T[];
  deprecated?: boolean;
}

export interface StringOptions extends Notes<string> {
  minLength?: number;
  maxLength?: number;
  /** A regular expression that some part of the text must fit. */
  pattern?: string;
  /** Such as `date`, `email` or `uri`. */
  format?: string;
}

export interface NumberOptions extends Notes<number> {
  minimum?: number;
  maximum?: number;
  exclusiveMinimum?: number;
  exclusiveMaximum?: number;
  multipleOf?: number;
}

export interface ListOptions<T> extends Notes<T[]> {
  minItems?: number;
  maxItems?: number;
  uniqueItems?: boolean;
}

/** Describes values. The first argument of most is a description for the model. */
export declare const t: {
  string(description?: string, options?: StringOptions): Schema<string>;
  number(description?: string, options?: NumberOptions): Schema<number>;
  /** A whole number. */
  integer(description?: string, options?: NumberOptions): Schema<number>;
  boolean(description?: string, options?: Notes<boolean>): Schema<boolean>;
  /** One of a few values: `t.choice(['celsius', 'fahrenheit'])`. */
  choice<const T extends string | number | boolean>(values: readonly T[], description?: string): Schema<T>;
  list<T>(item: Schema<T>, description?: string, options?: ListOptions<T>): Schema<T[]>;
  /** An object with exactly these fields. */
  object<F extends Fields>(fields: F, description?: string): Schema<Infer<F>>;
  /** An object with keys of the caller's choice. */
  map<T>(item: Schema<T>, description?: string): Schema<Record<string, T>>;
  /** What fits one of several descriptions. */
  union<S extends Schema<any>[]>(schemas: [...S], description?: string): Schema<Infer<S[number]>>;
  /** A JSON Schema written by hand, for what the others cannot say. */
  json<T = unknown>(schema: Record<string, unknown>): Schema<T>;
};

/** The audience of a block, how important it is, and when it was last modified. */
export interface BlockOptions {
  /** Everyone, if left out. */
  audience?: 'user' | 'assistant' | ('user' | 'assistant')[];
  /** From 0 (optional) to 1 (required). */
  priority?: number;
  /** When the content was last modified, in ISO 8601: `2026-01-12T15:00:58Z`. */
  lastModified?: string;
}

export interface ResourceOptions extends BlockOptions {
  mimeType?: string;
}

export interface LinkOptions extends ResourceOptions {
  /** A display name. */
  title?: string;
  description?: string;
  /** How many bytes it has. */
  size?: number;
}

/** The kinds of block, and the members of each. */
interface Kinds {
  text: { readonly text: string };
  image: { readonly data: Uint8Array; readonly mimeType: string };
  audio: { readonly data: Uint8Array; readonly mimeType: string };
  'resource-link': {
    readonly uri: string;
    readonly name: string;
    readonly title?: string;
    readonly description?: string;
    readonly mimeType?: string;
    readonly size?: number;
  };
  'embedded-resource': {
    readonly uri: string;
    readonly text?: string;
    readonly data?: Uint8Array;
    readonly mimeType?: string;
  };
}

/** Every member that some kind has. */
type Member = { [K in keyof Kinds]: keyof Kinds[K] }[keyof Kinds];

declare const made: unique symbol;

/** A block of one kind. The members of other kinds are there to be asked for, and undefined. */
type Block<K extends keyof Kinds> = Flat<
  {
    /** Only the functions below make blocks. */
    readonly [made]: true;
    readonly kind: K;
    readonly audience: ('user' | 'assistant')[];
    readonly priority?: number;
    readonly lastModified?: string;
  } & Kinds[K] & { readonly [M in Exclude<Member, keyof Kinds[K]>]?: undefined }
>;

/** One block of a result. Its `kind` determines its members. */
export type Content = { [K in keyof Kinds]: Block<K> }[keyof Kinds];

type Bytes = ArrayBuffer | ArrayBufferView;

/** A text with options; a plain string does otherwise. */
export declare function text(value: string, options?: BlockOptions): Block<'text'>;
/** An image: raw bytes, not base64, and a MIME type such as `image/png`. */
export declare function image(data: Bytes, mimeType: string, options?: BlockOptions): Block<'image'>;
/** Audio: raw bytes, not base64, and a MIME type such as `audio/wav`. */
export declare function audio(data: Bytes, mimeType: string, options?: BlockOptions): Block<'audio'>;
/** A resource whose bytes or text are part of the result. */
export declare function resource(uri: string, body: string | Bytes, options?: ResourceOptions): Block<'embedded-resource'>;
/** A link to a resource that the client can fetch. */
export declare function resourceLink(uri: string, name: string, options?: LinkOptions): Block<'resource-link'>;

/** An answer of several parts. Made by {@link reply}. */
export declare class Reply<T> {
  private constructor();
  readonly structured: T;
}

/** Structured content together with blocks, or with members for the result's `_meta`. */
export declare function reply<T extends object | undefined = undefined>(parts: {
  structured?: T;
  content?: string | Content | (string | Content)[];
  meta?: Record<string, unknown>;
}): Reply<T>;

/**
 * What a handler may answer: with an `output`, the object that it describes;
 * without, a text, a block, several, an object, or nothing. `reply` is for an
 * answer that is both.
 */
export type Answer<O> = O extends Fields | Schema<any>
  ? Infer<O> | Reply<Infer<O>>
  : string | Content | (string | Content)[] | object | Reply<any> | void;

/** The severity of a log message. */
export type Level = 'debug' | 'info' | 'notice' | 'warning' | 'error' | 'critical' | 'alert' | 'emergency';

/** The host's functions for a running handler. None of them requires a permission. */
export interface Host {
  /** Writes to the host's log, and to the client if it asked for logs. So does `console`. */
  log(level: Level, message: string): void;
  /**
   * Tells the client how far the call is. `done` must grow from call to call;
   * `total`, if known, is in the same unit.
   */
  progress(done: number, total?: number, message?: string): void;
  /**
   * Whether the client no longer wants the answer. The host stops the call in
   * any case: ask only if there is something to put in order.
   */
  cancelled(): boolean;
  /** The operator's `[config]` value: a string as it is, any other value as JSON text. */
  config(key: string): string | undefined;
  /** Every key and value of `[config]`. */
  configAll(): Record<string, string>;
}

/** What a tool does: hints for the client, which decides whether to ask its user first. */
export interface Annotations {
  /** It changes nothing. */
  readOnly?: boolean;
  /** It may delete or overwrite data, not only add to it. */
  destructive?: boolean;
  /** Repeating a call has no further effect. */
  idempotent?: boolean;
  /** It interacts with external entities, such as the web. */
  openWorld?: boolean;
}

/** An icon that a client can show with the tool. */
export interface Icon {
  /** An `https:` or `data:` URI. */
  src: string;
  mimeType?: string;
  /** Such as `48x48`, or `any`. */
  sizes?: string[];
  /** The background for which it is made; both if omitted. */
  theme?: 'light' | 'dark';
}

export interface ToolOptions<I extends Fields | Schema<any>, O extends Fields | Schema<any> | undefined> {
  /** The name that clients call: 1 to 128 of `A-Z a-z 0-9 _ - .` */
  name: string;
  /** A display name. */
  title?: string;
  /** What the tool does and when to use it, written for the model. */
  description?: string;
  /** The arguments. */
  input?: I;
  /** The structured content. A tool that has one must answer with it. */
  output?: O;
  annotations?: Annotations;
  icons?: Icon[];
  /** Further members for the definition's `_meta`. */
  meta?: Record<string, unknown>;
  /**
   * Does the work. What it throws becomes a failure with the error's message;
   * throw {@link InvalidArguments} when the arguments are to blame.
   */
  handler(args: Infer<I>, host: Host): Answer<O> | Promise<Answer<O>>;
}

/** A tool. Every one that the plugin's main file exports is offered. */
export declare class Tool<I, O> {
  private readonly input: I;
  private readonly output: O;
  private constructor();
  readonly name: string;
}

/** Describes a tool. Export it from the plugin's main file. */
export declare function tool<
  I extends Fields | Schema<any> = {},
  O extends Fields | Schema<any> | undefined = undefined,
>(options: ToolOptions<I, O>): Tool<I, O>;

/** Thrown by a handler whose arguments match the schema but make no sense. */
export declare class InvalidArguments extends Error {}
