/** Call tools from tests, in Node. */

import type { Content, Given, Infer, Level, Tool } from './index.js';

/** What the client gets, and what the tool reported to the host. */
export interface Outcome<O> {
  /** The blocks, in order. */
  content: Content[];
  /** The text of all blocks that have some, a line between one and the next. */
  text?: string;
  /** The structured content. */
  structured?: O extends undefined ? any : Infer<O>;
  /** Members of the result's `_meta`. */
  meta?: Record<string, unknown>;
  /** Why the call did not succeed. */
  failure?: { kind: 'invalid-arguments' | 'failed'; message: string };
  log: { level: Level; message: string }[];
  progress: { done: number; total?: number; message?: string }[];
}

/** What stands in for the operator and the client. */
export interface Circumstances {
  config?: Record<string, string>;
  cancelled?: boolean;
}

/** Calls a tool: the same way through the SDK as in the plugin. */
export declare function call<I, O>(
  tool: Tool<I, O>,
  args?: Given<I>,
  circumstances?: Circumstances,
): Promise<Outcome<O>>;
