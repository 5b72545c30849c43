/** Write Toolbay plugins: tools, prompts and resources, with types and no JSON Schema by hand. */

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
/** Describes a resource, or a template if the URI has variables. Export it from the plugin's main file. */
export declare function resource<const U extends string>(options: ResourceDefinition<U>): Resource<U>;
/** A block: a resource whose bytes or text are part of the result. */
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
  /** Tells clients that subscribed to this resource of the plugin that its content changed. */
  resourceUpdated(uri: string): void;
  /**
   * Asks the caller. The key identifies the question within the call. If there
   * is no answer yet, the host ends the call here, and runs it again when there
   * is one: the code before this runs again. The answer is `undefined` if the
   * question is optional and the client cannot answer it.
   */
  ask<A, O extends boolean>(key: string, question: Question<A, O>): A | Unsupported<O>;
  /**
   * Asks several questions at once, by their keys. The whole is `undefined` if
   * the client cannot answer one that is optional.
   */
  askAll<Q extends Record<string, Question<any, boolean>>>(questions: Q): Answers<Q>;
}

/** What the answer to an optional question can be as well. */
type Unsupported<O extends boolean> = O extends true ? undefined : never;

/** The answers to questions, by their keys. */
export type Answers<Q extends Record<string, Question<any, boolean>>> =
  | { [K in keyof Q]: Q[K] extends Question<infer A, boolean> ? A : never }
  | (Q[keyof Q] extends Question<any, infer O> ? Unsupported<O> : never);

/** A question to the caller. Made by {@link form}, {@link visit}, {@link sampling} and {@link roots}. */
export declare class Question<A, O extends boolean = false> {
  private readonly answer: A;
  private readonly mayBeUnsupported: O;
  private constructor();
  /**
   * If the client cannot answer, the answer is `undefined`. Otherwise, the host
   * ends the call and tells the client what it lacks.
   */
  optional(): Question<A, true>;
}

/** What clients can show in a form: texts, numbers, yes or no, a choice of texts, and several of such a choice. */
export type FormFields = Record<string, Schema<string | number | boolean | string[], Presence>>;

/** What the user did with a form: filled it in, refused to, or closed it without a decision. */
export type Elicited<T> = { action: 'accept'; content: T } | { action: 'decline' } | { action: 'cancel' };

/** A form for the user to fill in. Do not ask for secrets: the client shows what is typed. */
export declare function form<F extends FormFields>(message: string, fields: F): Question<Elicited<Infer<F>>>;

/** A page for the user to visit, at `https://…`. The answer says whether the user agreed to open it. */
export declare function visit(message: string, url: string): Question<{ action: 'accept' | 'decline' | 'cancel' }>;

/** A content block as MCP has it, such as a `tool_result`. */
export interface McpBlock {
  type: string;
  [member: string]: unknown;
}

/** What a message to the client's model contains. */
export type SamplingContent = string | Block<'text'> | Block<'image'> | Block<'audio'> | McpBlock;

export interface SamplingMessage {
  role: 'user' | 'assistant';
  content: SamplingContent | SamplingContent[];
}

/** The parameters of MCP's `sampling/createMessage`. */
export interface SamplingOptions {
  /** How many tokens the text may have. */
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

/** What the client's model wrote: the result as MCP has it, and its text. */
export interface Sampled {
  /** The text of all blocks that have some, a line between one and the next. */
  text: string;
  role: 'user' | 'assistant';
  content: McpBlock | McpBlock[];
  model: string;
  /** Such as `endTurn` or `maxTokens`. */
  stopReason?: string;
}

/** A text for the client's model to write. What is no message is one of the user. */
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

/** The folders that the user works in. They are advice: what a plugin can open is up to the operator. */
export declare function roots(): Question<Root[]>;

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

/** An icon that a client can show with a tool, a prompt or a resource. */
export interface Icon {
  /** An `https:` or `data:` URI. */
  src: string;
  mimeType?: string;
  /** Such as `48x48`, or `any`. */
  sizes?: string[];
  /** The background for which it is made; both if omitted. */
  theme?: 'light' | 'dark';
}

/**
 * What a view asks for: a page that clients show with the results of a tool. Of each, it gets what the operator's grant
 * allows; without any, it has no network.
 */
export interface View {
  /** Origins to which its scripts send requests or open WebSockets: `https://api.example.com`. */
  connect?: string[];
  /** Origins of its images, scripts, styles, fonts and media. */
  resources?: string[];
  /** Origins of the pages in its frames. */
  frames?: string[];
  /** Origins that its relative URLs may be relative to. */
  base?: string[];
  permissions?: ('camera' | 'microphone' | 'geolocation' | 'clipboardWrite')[];
  /** Whether the client should draw a border around it. */
  border?: boolean;
  /** The name of an origin of its own, in the form that the client defines. */
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
  /** The structured content. A tool that has one must answer with it. */
  output?: O;
  annotations?: Annotations;
  icons?: Icon[];
  /** The view that clients show with the results: the URI of a resource of this plugin, which begins with `ui://`. */
  view?: `ui://${string}`;
  /** Whether the tool is for the plugin's views: clients with views do not show it to the model. */
  appOnly?: boolean;
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

/** The arguments of a prompt. Clients give them as text; the handler gets what they are described as. */
export type PromptArguments = Record<string, Schema<string | number | boolean, Presence>>;

/** A message: who says it, and what. */
export interface Message {
  role: 'user' | 'assistant';
  content: string | Content;
}

/** What is said. A text or a block alone is said by the user. */
type Said = string | Content | Message;

/** What the handler of a prompt may answer. */
export type PromptAnswer =
  | Said
  | Said[]
  | {
      messages: Said | Said[];
      /** What the prompt is for, if the arguments make it more precise than the definition. */
      description?: string;
      /** Members for the result's `_meta`. */
      meta?: Record<string, unknown>;
    };

/** Values that an argument could have, best first. A client gets the first hundred. */
export interface Completions {
  values: string[];
  /** How many there are in all, if that is known. */
  total?: number;
  /** Whether there are more. */
  hasMore?: boolean;
}

/**
 * Completes an argument: by the values of a list that begin with what the user
 * has typed, or by what a function makes of that and of the arguments that are
 * complete already.
 */
export type Completer<Names extends string> =
  | readonly string[]
  | ((
      typed: string,
      given: { [K in Names]?: string },
      host: Host,
    ) => readonly string[] | Completions | Promise<readonly string[] | Completions>);

/** What completes the arguments of these names. Where there is none, there is nothing to complete. */
type Completers<Names extends string> = [Names] extends [never]
  ? { [name: string]: never }
  : { [K in Names]?: Completer<Names> };

/** Those of the values that begin with what the user has typed, in any case. */
export declare function beginningWith(typed: string, values: readonly string[]): string[];

export interface PromptOptions<A extends PromptArguments> {
  /** The name that clients know: 1 to 128 of `A-Z a-z 0-9 _ - .` */
  name: string;
  /** A display name. */
  title?: string;
  /** What the prompt is for, written for people. */
  description?: string;
  /** The arguments, in the order in which a client asks for them. */
  arguments?: A;
  /** What completes the arguments, by name. A `t.choice` is completed without it. */
  complete?: Completers<keyof NoInfer<A> & string>;
  icons?: Icon[];
  /** Further members for the definition's `_meta`. */
  meta?: Record<string, unknown>;
  /** Makes the messages. What it throws becomes a failure with the error's message. */
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

/** One item of what is read. Made by {@link contents}. */
export declare class Contents {
  private readonly item: true;
  private constructor();
}

export interface ContentsOptions {
  /** The URI of an item below the one that is read; otherwise, it has that one. */
  uri?: string;
  /** That of the resource, if left out. */
  mimeType?: string;
  /** Members for the item's `_meta`. */
  meta?: Record<string, unknown>;
}

/** One item of what is read, with a MIME type or a URI of its own. */
export declare function contents(body: string | Bytes, options?: ContentsOptions): Contents;

type Item = string | Bytes | Contents;

/** What the handler of a resource may answer; `undefined` or `null` if there is no such resource. */
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
  /** What the resource is, written for the model. */
  description?: string;
  mimeType?: string;
  /** How many bytes it has. A URI with variables has none. */
  size?: number;
  /** Everyone, if left out. */
  audience?: 'user' | 'assistant' | ('user' | 'assistant')[];
  /** From 0 (optional) to 1 (required). */
  priority?: number;
  /** When it was last modified, in ISO 8601: `2026-01-12T15:00:58Z`. A URI with variables has none. */
  lastModified?: string;
  /** What it asks for, if it is a view: its URI begins with `ui://`. */
  view?: View;
  /** What completes the variables, by name. */
  complete?: Completers<Variables<NoInfer<U>>>;
  icons?: Icon[];
  /** Further members for the definition's `_meta`. */
  meta?: Record<string, unknown>;
  /** Reads it. What it throws becomes a failure with the error's message. */
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
