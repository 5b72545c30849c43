/** Write Toolbay plugins: tools, prompts and resources, with types instead of handwritten JSON Schemas. */

/** The presence of a value: it is required, optional, or has a default. */
type Presence = 'required' | 'optional' | 'default';

/** A value's JSON Schema, together with the value's type. Created by {@link t}. */
export declare class Schema<T, P extends Presence = 'required'> {
  private readonly type: T;
  private readonly presence: P;
  private constructor();
  /** The JSON Schema. */
  readonly json: Readonly<Record<string, unknown>>;
  /** The value may be left out. Then the handler receives `undefined`. */
  optional(): Schema<T, 'optional'>;
  /** The value may be left out. Then the handler receives `fallback`. */
  default(fallback: T): Schema<T, 'default'>;
  /** The value may be `null`. */
  nullable(): Schema<T | null, P>;
}

/** The fields of an object: their names and schemas. */
export type Fields = Record<string, Schema<any, Presence>>;

/** The type of the values that a schema, or the fields of an object, describe. */
export type Infer<S> = S extends Schema<infer T, Presence> ? T : S extends Fields ? Flat<Filled<S>> : never;

/** Like {@link Infer}, for a caller: a value with a default may be left out. */
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
  /** A regular expression that a part of the text must match. */
  pattern?: string;
  /** The format, such as `date`, `email` or `uri`. */
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
  /** A value that matches at least one of several descriptions. */
  union<S extends Schema<any>[]>(schemas: [...S], description?: string): Schema<Infer<S[number]>>;
  /** A handwritten JSON Schema, for types that the other functions cannot describe. */
  json<T = unknown>(schema: Record<string, unknown>): Schema<T>;
};

/** The audience of a block, its importance, and the time of its last modification. */
export interface BlockOptions {
  /** The audience; the default is everyone. */
  audience?: 'user' | 'assistant' | ('user' | 'assistant')[];
  /** The importance, from 0 (optional) to 1 (required). */
  priority?: number;
  /** The time when the content was last modified, in ISO 8601: `2026-01-12T15:00:58Z`. */
  lastModified?: string;
}

export interface ResourceOptions extends BlockOptions {
  mimeType?: string;
}

export interface LinkOptions extends ResourceOptions {
  /** A display name. */
  title?: string;
  description?: string;
  /** The size in bytes. */
  size?: number;
}

/** The kinds of blocks, and the members of each. */
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

/** The members of all kinds. */
type Member = { [K in keyof Kinds]: keyof Kinds[K] }[keyof Kinds];

declare const made: unique symbol;

/** A block of one kind. The members of other kinds are accessible, and undefined. */
type Block<K extends keyof Kinds> = Flat<
  {
    /** Only the functions below create blocks. */
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

/** A text with options. For a text without options, use a plain string. */
export declare function text(value: string, options?: BlockOptions): Block<'text'>;
/** An image: raw bytes, not base64, and a MIME type such as `image/png`. */
export declare function image(data: Bytes, mimeType: string, options?: BlockOptions): Block<'image'>;
/** Audio: raw bytes, not base64, and a MIME type such as `audio/wav`. */
export declare function audio(data: Bytes, mimeType: string, options?: BlockOptions): Block<'audio'>;
/** Describes a resource, or a template if the URI has variables. Export it from the plugin's main file. */
export declare function resource<const U extends string>(options: ResourceDefinition<U>): Resource<U>;
/** A block: a resource whose bytes or text are part of the result. */
export declare function resource(uri: string, body: string | Bytes, options?: ResourceOptions): Block<'embedded-resource'>;
/** A link to a resource that the client can fetch. */
export declare function resourceLink(uri: string, name: string, options?: LinkOptions): Block<'resource-link'>;

/** An answer with several parts. Created by {@link reply}. */
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
 * The types that a handler may return. With an `output`, that is the object that it
 * describes. Without one, it is a text, a block, several blocks, an object, or
 * nothing. A number, a boolean or any other list becomes `{ result: … }`. Use `reply` for an answer with both.
 */
export type Answer<O> = O extends Fields | Schema<any>
  ? Infer<O> | Reply<Infer<O>>
  : string | Content | (string | Content)[] | object | number | boolean | Reply<any> | void;

/** The severity of a log message. */
export type Level = 'debug' | 'info' | 'notice' | 'warning' | 'error' | 'critical' | 'alert' | 'emergency';

/** The host's functions for a running handler. None of them requires a permission. */
export interface Host {
  /** Writes to the host's log, and to the client if it requested logs. `console` does the same. */
  log(level: Level, message: string): void;
  /**
   * Reports the progress of the call to the client. `done` must increase from one
   * report to the next; `total`, if known, has the same unit.
   */
  progress(done: number, total?: number, message?: string): void;
  /**
   * Returns whether the client has cancelled the call. The host ends the call in
   * any case. Use this method only if the tool has to clean up.
   */
  cancelled(): boolean;
  /** Returns the operator's `[config]` value: a string unchanged, any other value as JSON text. */
  config(key: string): string | undefined;
  /** Returns every key and value of `[config]`. */
  configAll(): Record<string, string>;
  /** Notifies clients that subscribed to this resource of the plugin that its content changed. */
  resourceUpdated(uri: string): void;
  /**
   * Asks the caller. The key identifies the question within the call. If there
   * is no answer yet, the host ends the call at this point, and runs it again
   * when there is one: the code before this runs again. The answer is
   * `undefined` if the question is optional and the client cannot answer it.
   */
  ask<A, O extends boolean>(key: string, question: Question<A, O>): A | Unsupported<O>;
  /**
   * Asks several questions at once, by their keys. The result is `undefined` if
   * the client cannot answer an optional question.
   */
  askAll<Q extends Record<string, Question<any, boolean>>>(questions: Q): Answers<Q>;
}

/** The additional type of the answer to an optional question. */
type Unsupported<O extends boolean> = O extends true ? undefined : never;

/** The answers to questions, by their keys. */
export type Answers<Q extends Record<string, Question<any, boolean>>> =
  | { [K in keyof Q]: Q[K] extends Question<infer A, boolean> ? A : never }
  | (Q[keyof Q] extends Question<any, infer O> ? Unsupported<O> : never);

/** A question to the caller. Created by {@link form}, {@link visit}, {@link sampling} and {@link roots}. */
export declare class Question<A, O extends boolean = false> {
  private readonly answer: A;
  private readonly mayBeUnsupported: O;
  private constructor();
  /**
   * Makes the answer `undefined` if the client cannot answer. Without it, the host
   * ends the call and reports the missing capability to the client.
   */
  optional(): Question<A, true>;
}

/** The types that clients can show in a form: texts, numbers, booleans, a choice of texts, and several of a choice. */
export type FormFields = Record<string, Schema<string | number | boolean | string[], Presence>>;

/** The user's reaction to a form: filled it in, refused, or closed it without a decision. */
export type Elicited<T> = { action: 'accept'; content: T } | { action: 'decline' } | { action: 'cancel' };

/** A form for the user to fill in. Do not ask for secrets: the client shows what is typed. */
export declare function form<F extends FormFields>(message: string, fields: F): Question<Elicited<Infer<F>>>;

/** A page for the user to visit, at `https://…`. The answer states whether the user agreed to open it. */
export declare function visit(message: string, url: string): Question<{ action: 'accept' | 'decline' | 'cancel' }>;

/** A content block as in MCP, such as a `tool_result`. */
export interface McpBlock {
  type: string;
  [member: string]: unknown;
}

/** The content of a message to the client's model. */
export type SamplingContent = string | Block<'text'> | Block<'image'> | Block<'audio'> | McpBlock;

export interface SamplingMessage {
  role: 'user' | 'assistant';
  content: SamplingContent | SamplingContent[];
}

/** The parameters of MCP's `sampling/createMessage`. */
export interface SamplingOptions {
  /** The maximum number of tokens. */
  maxTokens: number;
  systemPrompt?: string;
  temperature?: number;
  stopSequences?: string[];
  modelPreferences?: {
    hints?: { name?: string }[];
    costPriority?: number;
    speedPriority?: number;
    intelligencePriority?: number;
  };
  includeContext?: 'none' | 'thisServer' | 'allServers';
  metadata?: Record<string, unknown>;
  tools?: Record<string, unknown>[];
  toolChoice?: { mode?: 'auto' | 'required' | 'none' };
}

/** The output of the client's model: the result as in MCP, and its text. */
export interface Sampled {
  /** The text of all blocks that have some, separated by line feeds. */
  text: string;
  role: 'user' | 'assistant';
  content: McpBlock | McpBlock[];
  model: string;
  /** The reason why the model stopped, such as `endTurn` or `maxTokens`. */
  stopReason?: string;
}

/** A text for the client's model to write. The author of a content that is not a message is the user. */
export declare function sampling(
  prompt: SamplingContent | SamplingMessage | (SamplingContent | SamplingMessage)[],
  options: SamplingOptions,
): Question<Sampled>;

/** A folder that the user works in. */
export interface Root {
  /** Begins with `file://`. */
  uri: string;
  name?: string;
}

/** The folders that the user works in. The operator decides which folders a plugin can open. */
export declare function roots(): Question<Root[]>;

/** The effects of a tool: hints by which the client decides whether to ask its user first. */
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

/** An icon that a client can show with a tool, a prompt or a resource. */
export interface Icon {
  /** An `https:` or `data:` URI. */
  src: string;
  mimeType?: string;
  /** The sizes at which it can be shown, such as `48x48`, or `any`. */
  sizes?: string[];
  /** The background for which it is designed; the default is both. */
  theme?: 'light' | 'dark';
}

/**
 * The permissions that a view requests: a page that clients show with the results of a tool. It gets those that the
 * operator's grant allows. Without any, it has no network.
 */
export interface View {
  /** Origins to which its scripts send requests or open WebSockets: `https://api.example.com`. */
  connect?: string[];
  /** Origins of its images, scripts, styles, fonts and media. */
  resources?: string[];
  /** Origins of the pages in its frames. */
  frames?: string[];
  /** Origins that may be the base of its relative URLs. */
  base?: string[];
  permissions?: ('camera' | 'microphone' | 'geolocation' | 'clipboardWrite')[];
  /** True if the client should draw a border around it. */
  border?: boolean;
  /** The name of its own origin, in the form that the client defines. */
  domain?: string;
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
  /** The structured content. A tool that declares it must return it. */
  output?: O;
  annotations?: Annotations;
  icons?: Icon[];
  /** The view that clients show with the results: the URI of a resource of this plugin, which begins with `ui://`. */
  view?: `ui://${string}`;
  /** True if the tool is for the plugin's views: clients with views do not show it to the model. */
  appOnly?: boolean;
  /** Further members for the definition's `_meta`. */
  meta?: Record<string, unknown>;
  /**
   * The function of the tool. A thrown error becomes a failure with the error's
   * message. Throw {@link InvalidArguments} for an error in the arguments.
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

/** The arguments of a prompt. Clients send them as text; the handler receives them with the described types. */
export type PromptArguments = Record<string, Schema<string | number | boolean, Presence>>;

/** A message: its author and its content. */
export interface Message {
  role: 'user' | 'assistant';
  content: string | Content;
}

/** A message, or its content. The author of a text or a block is the user. */
type Said = string | Content | Message;

/** The types that the handler of a prompt may return. */
export type PromptAnswer =
  | Said
  | Said[]
  | {
      messages: Said | Said[];
      /** The purpose of the prompt, if the arguments make it more specific than the definition. */
      description?: string;
      /** Members for the result's `_meta`. */
      meta?: Record<string, unknown>;
    };

/** Values that an argument could have, best first. A client gets the first hundred. */
export interface Completions {
  values: string[];
  /** The total number of values, if it is known. */
  total?: number;
  /** True if there are more values. */
  hasMore?: boolean;
}

/**
 * Completes an argument: with the values of a list that begin with the text that the
 * user has typed, or with the result of a function, which gets that text and the
 * arguments that are already complete.
 */
export type Completer<Names extends string> =
  | readonly string[]
  | ((
      typed: string,
      given: { [K in Names]?: string },
      host: Host,
    ) => readonly string[] | Completions | Promise<readonly string[] | Completions>);

/** The completers of the arguments with these names. An item without arguments has none. */
type Completers<Names extends string> = [Names] extends [never]
  ? { [name: string]: never }
  : { [K in Names]?: Completer<Names> };

/** Returns the values that begin with the text that the user has typed, ignoring case. */
export declare function beginningWith(typed: string, values: readonly string[]): string[];

export interface PromptOptions<A extends PromptArguments> {
  /** The name by which clients get it: 1 to 128 of `A-Z a-z 0-9 _ - .` */
  name: string;
  /** A display name. */
  title?: string;
  /** The purpose of the prompt, written for people. */
  description?: string;
  /** The arguments, in the order in which a client asks for them. */
  arguments?: A;
  /** The completers of the arguments, by name. A `t.choice` is completed without one. */
  complete?: Completers<keyof NoInfer<A> & string>;
  icons?: Icon[];
  /** Further members for the definition's `_meta`. */
  meta?: Record<string, unknown>;
  /** Returns the messages. A thrown error becomes a failure with the error's message. */
  handler(args: Infer<A>, host: Host): PromptAnswer | Promise<PromptAnswer>;
}

/** A prompt. Every one that the plugin's main file exports is offered. */
export declare class Prompt<A> {
  private readonly arguments: A;
  private constructor();
  readonly name: string;
}

/** Describes a prompt. Export it from the plugin's main file. */
export declare function prompt<A extends PromptArguments = {}>(options: PromptOptions<A>): Prompt<A>;

/** The names of the variables in a URI. */
export type Variables<U extends string> = U extends `${string}{${infer V}}${infer Rest}`
  ? (V extends `+${infer Name}` ? Name : V) | Variables<Rest>
  : never;

/** The values of the variables in a URI. */
export type Values<U extends string> = string extends U
  ? Record<string, string>
  : { [K in Variables<U>]: string };

/** One item of a resource. Created by {@link contents}. */
export declare class Contents {
  private readonly item: true;
  private constructor();
}

export interface ContentsOptions {
  /** The URI of an item below the one that is read; the default is the URI that is read. */
  uri?: string;
  /** The MIME type; the default is that of the resource. */
  mimeType?: string;
  /** Members for the item's `_meta`. */
  meta?: Record<string, unknown>;
}

/** Returns one item of a resource, with its own MIME type or URI. */
export declare function contents(body: string | Bytes, options?: ContentsOptions): Contents;

type Item = string | Bytes | Contents;

/** The types that the handler of a resource may return; `undefined` or `null` if there is no such resource. */
export type ResourceAnswer = Item | Item[] | undefined | null;

export interface ResourceDefinition<U extends string> {
  /**
   * The URI. `{name}` in it stands for one or more characters other than `/`,
   * `?` and `#`, and is decoded for the handler; `{+name}` stands for any.
   */
  uri: U;
  /** The name. */
  name: string;
  /** A display name. */
  title?: string;
  /** A description of the resource, written for the model. */
  description?: string;
  mimeType?: string;
  /** The size in bytes. Not allowed for a URI with variables. */
  size?: number;
  /** The audience; the default is everyone. */
  audience?: 'user' | 'assistant' | ('user' | 'assistant')[];
  /** The importance, from 0 (optional) to 1 (required). */
  priority?: number;
  /** The time when it was last modified, in ISO 8601: `2026-01-12T15:00:58Z`. Not allowed for a URI with variables. */
  lastModified?: string;
  /** The permissions that it requests, if it is a view: its URI begins with `ui://`. */
  view?: View;
  /** The completers of the variables, by name. */
  complete?: Completers<Variables<NoInfer<U>>>;
  icons?: Icon[];
  /** Further members for the definition's `_meta`. */
  meta?: Record<string, unknown>;
  /** Reads it. A thrown error becomes a failure with the error's message. */
  handler(values: Values<U>, host: Host): ResourceAnswer | Promise<ResourceAnswer>;
}

/** A resource, or a template. Every one that the plugin's main file exports is offered. */
export declare class Resource<U extends string> {
  private readonly template: U;
  private constructor();
  readonly name: string;
  readonly uri: string;
}

/** Thrown by a handler whose arguments match the schema but make no sense. */
export declare class InvalidArguments extends Error {}
