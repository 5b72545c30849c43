// The globals of a plugin, in addition to those of the language. For `types` in
// tsconfig.json.

declare const console: Record<'debug' | 'log' | 'info' | 'warn' | 'error' | 'trace', (...values: unknown[]) => void>;

declare const crypto: {
  getRandomValues<T extends ArrayBufferView>(array: T): T;
  randomUUID(): string;
};

/** A clock for measuring durations: only differences are meaningful. */
declare const performance: { now(): number };

declare function queueMicrotask(job: () => void): void;
declare function atob(base64: string): string;
declare function btoa(bytes: string): string;

/** Headers of a request or a response. Names are not case-sensitive. */
declare class Headers {
  constructor(given?: Iterable<readonly [string, string]> | Record<string, string>);
  append(name: string, value: string): void;
  delete(name: string): void;
  entries(): IterableIterator<[string, string]>;
  forEach(act: (value: string, name: string, headers: Headers) => void): void;
  get(name: string): string | null;
  has(name: string): boolean;
  set(name: string, value: string): void;
  [Symbol.iterator](): IterableIterator<[string, string]>;
}

/** A response. Its body can be read once. */
declare class Response {
  private constructor();
  readonly status: number;
  /** True if the status is from 200 to 299. */
  readonly ok: boolean;
  readonly headers: Headers;
  /** The URL of the response, after redirects. */
  readonly url: string;
  readonly redirected: boolean;
  readonly bodyUsed: boolean;
  arrayBuffer(): Promise<ArrayBuffer>;
  bytes(): Promise<Uint8Array>;
  json(): Promise<any>;
  text(): Promise<string>;
}

interface RequestOptions {
  /** The method; the default is `GET`. */
  method?: string;
  headers?: Headers | Iterable<readonly [string, string]> | Record<string, string>;
  body?: string | ArrayBuffer | ArrayBufferView | null;
  /** The handling of redirects; the default is `follow`. The host checks the request to each target. */
  redirect?: 'follow' | 'manual' | 'error';
  /**
   * The timeout in milliseconds of connecting, of the beginning of the response,
   * and of each further part of it. Without it, only the call's timeout applies.
   */
  timeout?: number;
}

/** Sends an HTTP request that the operator's grant allows. */
declare function fetch(url: string, options?: RequestOptions): Promise<Response>;
