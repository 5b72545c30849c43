// The globals of a plugin, in addition to those of the language. For `types` in
// tsconfig.json.

/** Writes to the host's log. */
declare const console: Record<
  'debug' | 'dir' | 'dirxml' | 'error' | 'group' | 'groupCollapsed' | 'info' | 'log' | 'table' | 'trace' | 'warn',
  (...values: unknown[]) => void
> & {
  assert(condition?: unknown, ...values: unknown[]): void;
  clear(): void;
  count(label?: string): void;
  countReset(label?: string): void;
  groupEnd(): void;
  time(label?: string): void;
  timeEnd(label?: string): void;
  timeLog(label?: string, ...values: unknown[]): void;
};

type BufferSource = ArrayBuffer | ArrayBufferView;

interface CryptoKey {
  readonly type: 'private' | 'public' | 'secret';
  readonly extractable: boolean;
  readonly algorithm: any;
  readonly usages: KeyUsage[];
}

declare const CryptoKey: { prototype: CryptoKey };

interface CryptoKeyPair {
  readonly privateKey: CryptoKey;
  readonly publicKey: CryptoKey;
}

type KeyUsage = 'decrypt' | 'deriveBits' | 'deriveKey' | 'encrypt' | 'sign' | 'unwrapKey' | 'verify' | 'wrapKey';
type Algorithm = string | { name: string; [parameter: string]: any };
type KeyFormat = 'jwk' | 'pkcs8' | 'raw' | 'spki';

interface SubtleCrypto {
  digest(algorithm: Algorithm, data: BufferSource): Promise<ArrayBuffer>;
  encrypt(algorithm: Algorithm, key: CryptoKey, data: BufferSource): Promise<ArrayBuffer>;
  decrypt(algorithm: Algorithm, key: CryptoKey, data: BufferSource): Promise<ArrayBuffer>;
  sign(algorithm: Algorithm, key: CryptoKey, data: BufferSource): Promise<ArrayBuffer>;
  verify(algorithm: Algorithm, key: CryptoKey, signature: BufferSource, data: BufferSource): Promise<boolean>;
  deriveBits(algorithm: Algorithm, key: CryptoKey, length?: number | null): Promise<ArrayBuffer>;
  deriveKey(algorithm: Algorithm, key: CryptoKey, derived: Algorithm, extractable: boolean, usages: KeyUsage[]): Promise<CryptoKey>;
  generateKey(algorithm: Algorithm, extractable: boolean, usages: KeyUsage[]): Promise<any>;
  importKey(format: KeyFormat, data: any, algorithm: Algorithm, extractable: boolean, usages: KeyUsage[]): Promise<CryptoKey>;
  exportKey(format: KeyFormat, key: CryptoKey): Promise<any>;
  wrapKey(format: KeyFormat, key: CryptoKey, wrappingKey: CryptoKey, algorithm: Algorithm): Promise<ArrayBuffer>;
  unwrapKey(
    format: KeyFormat,
    wrapped: BufferSource,
    unwrappingKey: CryptoKey,
    algorithm: Algorithm,
    keyAlgorithm: Algorithm,
    extractable: boolean,
    usages: KeyUsage[],
  ): Promise<CryptoKey>;
}

declare const crypto: {
  getRandomValues<T extends ArrayBufferView>(array: T): T;
  randomUUID(): string;
  readonly subtle: SubtleCrypto;
};

/** A clock for measuring durations, which counts from the beginning of the call. */
declare const performance: { now(): number; readonly timeOrigin: number };

declare const navigator: { readonly userAgent: string };

/** The part of Node's `process` that a plugin has. There are no environment variables but `NODE_ENV`. */
declare const process: {
  readonly env: Record<string, string | undefined>;
  readonly argv: string[];
  readonly platform: string;
  readonly version: string;
  cwd(): string;
  nextTick<A extends unknown[]>(job: (...values: A) => void, ...values: A): void;
};

declare function structuredClone<T>(value: T, options?: { transfer?: ArrayBuffer[] }): T;

declare class TextEncoder {
  readonly encoding: string;
  encode(text?: string): Uint8Array<ArrayBuffer>;
  encodeInto(text: string, target: Uint8Array): { read: number; written: number };
}

/** Decodes UTF-8, UTF-16 and Latin-1. */
declare class TextDecoder {
  constructor(label?: string, options?: { fatal?: boolean; ignoreBOM?: boolean });
  readonly encoding: string;
  readonly fatal: boolean;
  readonly ignoreBOM: boolean;
  decode(bytes?: BufferSource, options?: { stream?: boolean }): string;
}

declare class URLSearchParams {
  constructor(init?: string | Iterable<readonly [string, string]> | Record<string, string> | URLSearchParams);
  readonly size: number;
  append(name: string, value: string): void;
  delete(name: string, value?: string): void;
  entries(): IterableIterator<[string, string]>;
  forEach(act: (value: string, name: string, params: URLSearchParams) => void): void;
  get(name: string): string | null;
  getAll(name: string): string[];
  has(name: string, value?: string): boolean;
  keys(): IterableIterator<string>;
  set(name: string, value: string): void;
  sort(): void;
  toString(): string;
  values(): IterableIterator<string>;
  [Symbol.iterator](): IterableIterator<[string, string]>;
}

/** A URL. Host names are ASCII. */
declare class URL {
  constructor(url: string | URL, base?: string | URL);
  static canParse(url: string | URL, base?: string | URL): boolean;
  static parse(url: string | URL, base?: string | URL): URL | null;
  hash: string;
  host: string;
  hostname: string;
  href: string;
  readonly origin: string;
  password: string;
  pathname: string;
  port: string;
  protocol: string;
  search: string;
  readonly searchParams: URLSearchParams;
  username: string;
  toJSON(): string;
  toString(): string;
}

declare function queueMicrotask(job: () => void): void;
declare function atob(base64: string): string;
declare function btoa(bytes: string): string;

/** A timer. `clearTimeout` takes it. */
interface Timer {
  ref(): this;
  unref(): this;
  hasRef(): boolean;
  [Symbol.toPrimitive](): number;
}

/** Calls `act` after a time in milliseconds. Timers that are left when the handler has finished are dropped. */
declare function setTimeout<A extends unknown[]>(act: (...values: A) => void, delay?: number, ...values: A): Timer;
declare function setInterval<A extends unknown[]>(act: (...values: A) => void, delay?: number, ...values: A): Timer;
declare function setImmediate<A extends unknown[]>(act: (...values: A) => void, ...values: A): Timer;
declare function clearTimeout(timer?: Timer | number | null): void;
declare function clearInterval(timer?: Timer | number | null): void;
declare function clearImmediate(timer?: Timer | number | null): void;

declare class DOMException extends Error {
  constructor(message?: string, options?: string | { name?: string; cause?: unknown });
  readonly code: number;
}

interface EventOptions {
  bubbles?: boolean;
  cancelable?: boolean;
  composed?: boolean;
}

declare class Event {
  constructor(type: string, options?: EventOptions);
  readonly type: string;
  readonly target: EventTarget | null;
  readonly currentTarget: EventTarget | null;
  readonly bubbles: boolean;
  readonly cancelable: boolean;
  readonly defaultPrevented: boolean;
  readonly timeStamp: number;
  preventDefault(): void;
  stopPropagation(): void;
  stopImmediatePropagation(): void;
}

declare class CustomEvent<T = any> extends Event {
  constructor(type: string, options?: EventOptions & { detail?: T });
  readonly detail: T;
}

type EventListener = ((event: any) => void) | { handleEvent(event: any): void };

declare class EventTarget {
  addEventListener(
    type: string,
    callback: EventListener | null,
    options?: boolean | { capture?: boolean; once?: boolean; passive?: boolean; signal?: AbortSignal },
  ): void;
  removeEventListener(type: string, callback: EventListener | null, options?: boolean | { capture?: boolean }): void;
  dispatchEvent(event: Event): boolean;
}

declare class AbortSignal extends EventTarget {
  private constructor();
  static abort(reason?: any): AbortSignal;
  static any(signals: Iterable<AbortSignal>): AbortSignal;
  static timeout(milliseconds: number): AbortSignal;
  readonly aborted: boolean;
  readonly reason: any;
  onabort: ((event: Event) => void) | null;
  throwIfAborted(): void;
}

declare class AbortController {
  readonly signal: AbortSignal;
  abort(reason?: any): void;
}

interface ReadableStreamReader<R> {
  readonly closed: Promise<void>;
  read(): Promise<{ done: false; value: R } | { done: true; value: undefined }>;
  cancel(reason?: any): Promise<void>;
  releaseLock(): void;
}

interface StreamController<T> {
  readonly desiredSize: number | null;
  enqueue(piece: T): void;
  error(reason?: any): void;
}

interface QueuingStrategy<T> {
  highWaterMark?: number;
  size?(piece: T): number;
}

declare class ReadableStream<R = any> {
  constructor(
    source?: {
      start?(controller: StreamController<R> & { close(): void }): void | PromiseLike<void>;
      pull?(controller: StreamController<R> & { close(): void }): void | PromiseLike<void>;
      cancel?(reason?: any): void | PromiseLike<void>;
    },
    strategy?: QueuingStrategy<R>,
  );
  static from<R>(pieces: Iterable<R | PromiseLike<R>> | AsyncIterable<R>): ReadableStream<R>;
  readonly locked: boolean;
  cancel(reason?: any): Promise<void>;
  getReader(): ReadableStreamReader<R>;
  pipeThrough<T>(pair: { readable: ReadableStream<T>; writable: WritableStream<R> }): ReadableStream<T>;
  pipeTo(target: WritableStream<R>): Promise<void>;
  tee(): [ReadableStream<R>, ReadableStream<R>];
  values(options?: { preventCancel?: boolean }): AsyncIterableIterator<R>;
  [Symbol.asyncIterator](): AsyncIterableIterator<R>;
}

interface WritableStreamWriter<W> {
  readonly closed: Promise<void>;
  readonly ready: Promise<void>;
  readonly desiredSize: number | null;
  abort(reason?: any): Promise<void>;
  close(): Promise<void>;
  releaseLock(): void;
  write(piece: W): Promise<void>;
}

declare class WritableStream<W = any> {
  constructor(
    sink?: {
      start?(controller: { error(reason?: any): void }): void | PromiseLike<void>;
      write?(piece: W, controller: { error(reason?: any): void }): void | PromiseLike<void>;
      close?(): void | PromiseLike<void>;
      abort?(reason?: any): void | PromiseLike<void>;
    },
    strategy?: QueuingStrategy<W>,
  );
  readonly locked: boolean;
  abort(reason?: any): Promise<void>;
  close(): Promise<void>;
  getWriter(): WritableStreamWriter<W>;
}

declare class TransformStream<I = any, O = any> {
  constructor(transformer?: {
    start?(controller: StreamController<O> & { terminate(): void }): void | PromiseLike<void>;
    transform?(piece: I, controller: StreamController<O> & { terminate(): void }): void | PromiseLike<void>;
    flush?(controller: StreamController<O> & { terminate(): void }): void | PromiseLike<void>;
  });
  readonly readable: ReadableStream<O>;
  readonly writable: WritableStream<I>;
}

declare class TextDecoderStream {
  constructor(label?: string, options?: { fatal?: boolean; ignoreBOM?: boolean });
  readonly encoding: string;
  readonly readable: ReadableStream<string>;
  readonly writable: WritableStream<ArrayBuffer | ArrayBufferView>;
}

declare class TextEncoderStream {
  readonly encoding: string;
  readonly readable: ReadableStream<Uint8Array>;
  readonly writable: WritableStream<string>;
}

declare class Blob {
  constructor(parts?: Iterable<string | Blob | ArrayBuffer | ArrayBufferView>, options?: { type?: string; endings?: 'transparent' | 'native' });
  readonly size: number;
  readonly type: string;
  arrayBuffer(): Promise<ArrayBuffer>;
  bytes(): Promise<Uint8Array>;
  slice(start?: number, end?: number, type?: string): Blob;
  stream(): ReadableStream<Uint8Array>;
  text(): Promise<string>;
}

declare class File extends Blob {
  constructor(
    parts: Iterable<string | Blob | ArrayBuffer | ArrayBufferView>,
    name: string,
    options?: { type?: string; endings?: 'transparent' | 'native'; lastModified?: number },
  );
  readonly name: string;
  readonly lastModified: number;
}

declare class FormData {
  append(name: string, value: string | Blob, filename?: string): void;
  delete(name: string): void;
  entries(): IterableIterator<[string, string | File]>;
  forEach(act: (value: string | File, name: string, form: FormData) => void): void;
  get(name: string): string | File | null;
  getAll(name: string): (string | File)[];
  has(name: string): boolean;
  keys(): IterableIterator<string>;
  set(name: string, value: string | Blob, filename?: string): void;
  values(): IterableIterator<string | File>;
  [Symbol.iterator](): IterableIterator<[string, string | File]>;
}

type HeadersInit = Headers | Iterable<readonly [string, string]> | Record<string, string>;
type BodyInit = string | ArrayBuffer | ArrayBufferView | Blob | FormData | ReadableStream<Uint8Array> | AsyncIterable<Uint8Array> | { toString(): string; getAll(name: string): string[] };

/** Headers of a request or a response. Names are not case-sensitive. */
declare class Headers {
  constructor(given?: HeadersInit);
  append(name: string, value: string): void;
  delete(name: string): void;
  entries(): IterableIterator<[string, string]>;
  forEach(act: (value: string, name: string, headers: Headers) => void): void;
  get(name: string): string | null;
  getSetCookie(): string[];
  has(name: string): boolean;
  keys(): IterableIterator<string>;
  set(name: string, value: string): void;
  values(): IterableIterator<string>;
  [Symbol.iterator](): IterableIterator<[string, string]>;
}

/** The members of a body, which can be read once. */
interface Body {
  readonly body: ReadableStream<Uint8Array> | null;
  readonly bodyUsed: boolean;
  arrayBuffer(): Promise<ArrayBuffer>;
  blob(): Promise<Blob>;
  bytes(): Promise<Uint8Array>;
  formData(): Promise<FormData>;
  json(): Promise<any>;
  text(): Promise<string>;
}

interface Response extends Body {}

declare class Response {
  constructor(body?: BodyInit | null, options?: { status?: number; statusText?: string; headers?: HeadersInit });
  static error(): Response;
  static json(data: unknown, options?: { status?: number; statusText?: string; headers?: HeadersInit }): Response;
  static redirect(url: string, status?: number): Response;
  readonly status: number;
  /** The text of the status. It is empty in a response of a server. */
  readonly statusText: string;
  /** True if the status is from 200 to 299. */
  readonly ok: boolean;
  readonly type: 'basic' | 'default' | 'error';
  readonly headers: Headers;
  /** The URL of the response, after redirects. */
  readonly url: string;
  readonly redirected: boolean;
  clone(): Response;
}

interface RequestOptions {
  /** The method; the default is `GET`. */
  method?: string;
  headers?: HeadersInit;
  body?: BodyInit | null;
  /** For a body that is a stream, as in Node. */
  duplex?: 'half';
  /** The handling of redirects; the default is `follow`. The host checks the request to each target. */
  redirect?: 'follow' | 'manual' | 'error';
  /** Ends the request, or the reading of its response. */
  signal?: AbortSignal | null;
  /**
   * The timeout in milliseconds of connecting, of the beginning of the response,
   * and of each further part of it. Without it, only the call's timeout applies.
   */
  timeout?: number;
}

interface Request extends Body {}

declare class Request {
  constructor(input: Request | { toString(): string }, options?: RequestOptions);
  readonly method: string;
  readonly url: string;
  readonly headers: Headers;
  readonly redirect: 'follow' | 'manual' | 'error';
  readonly signal: AbortSignal;
  clone(): Request;
}

/** Sends an HTTP request that the operator's grant allows. */
declare function fetch(input: Request | { toString(): string }, options?: RequestOptions): Promise<Response>;
