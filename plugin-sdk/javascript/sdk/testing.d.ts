/** Call tools, prompts, resources and completions from tests, in Node. */

import type { Content, Given, Infer, Level, Prompt, PromptArguments, Resource, Tool, Variables } from './index.js';

/** The reports to the host, and the reason why a call failed. */
export interface Heard {
  /** The reason why the call failed. */
  failure?: { kind: 'invalid-arguments' | 'failed'; message: string };
  log: { level: Level; message: string }[];
  progress: { done: number; total?: number; message?: string }[];
  /** The URIs of the resources that changed. */
  updated: string[];
  /** The questions, with the parameters of MCP. */
  asked: {
    key: string;
    kind: 'form' | 'url' | 'sampling' | 'roots';
    params: Record<string, any>;
    required: boolean;
  }[];
}

/** The result for the client, and the tool's reports to the host. */
export interface Outcome<O> extends Heard {
  /** The blocks, in order. */
  content: Content[];
  /** The text of all blocks that have some, separated by line feeds. */
  text?: string;
  /** The structured content. */
  structured?: O extends undefined ? any : Infer<O>;
  /** Members of the result's `_meta`. */
  meta?: Record<string, unknown>;
}

/** The settings that replace those of the operator and the client. */
export interface Circumstances {
  config?: Record<string, string>;
  cancelled?: boolean;
  /**
   * The client's results by the keys of the questions, as in MCP:
   * `{ action: 'accept', content: { … } }`. `unsupported` stands for a client
   * that cannot answer.
   */
  answers?: Record<string, object | 'unsupported'>;
}

/** Calls a tool, with the same code of the SDK as in the plugin. */
export declare function call<I, O>(
  tool: Tool<I, O>,
  args?: Given<I>,
  circumstances?: Circumstances,
): Promise<Outcome<O>>;

/** A prompt with its arguments filled in. */
export interface PromptOutcome extends Heard {
  messages: { role: 'user' | 'assistant'; content: Content }[];
  /** The text of all messages that have some, separated by line feeds. */
  text?: string;
  description?: string;
  /** Members of the result's `_meta`. */
  meta?: Record<string, unknown>;
}

/** The arguments of a prompt as clients send them: texts. */
export type Texts<A extends PromptArguments> = { [K in keyof Given<A>]: string };

/** Fills in a prompt, with the same code of the SDK as in the plugin. */
export declare function getPrompt<A extends PromptArguments>(
  prompt: Prompt<A>,
  args?: Texts<A>,
  circumstances?: Circumstances,
): Promise<PromptOutcome>;

/** The content of a resource. */
export interface ResourceOutcome extends Heard {
  /** The items; none if there is no such resource. */
  contents: { uri: string; mimeType?: string; text?: string; data?: Uint8Array; meta?: Record<string, unknown> }[];
  /** The text of all items that have some, separated by line feeds. */
  text?: string;
}

/** Reads a resource, at its URI or at one that matches its template. Throws if the URI does not match. */
export declare function readResource(
  resource: Resource<any>,
  uri: string,
  circumstances?: Circumstances,
): Promise<ResourceOutcome>;

/** The values that a client suggests to its user. */
export interface CompletionOutcome extends Heard {
  values: string[];
  total?: number;
  hasMore: boolean;
}

/** Completes an argument. `value` is the text that was typed, and `given` are the arguments that are complete. */
export declare function complete<A extends PromptArguments>(
  target: Prompt<A>,
  argument: keyof A,
  value: string,
  given?: { [K in keyof A]?: string },
  circumstances?: Circumstances,
): Promise<CompletionOutcome>;
export declare function complete<U extends string>(
  target: Resource<U>,
  argument: Variables<U>,
  value: string,
  given?: { [K in Variables<U>]?: string },
  circumstances?: Circumstances,
): Promise<CompletionOutcome>;
