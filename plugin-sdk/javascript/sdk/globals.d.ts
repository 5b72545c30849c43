// What a plugin finds beside the language itself. For `types` in tsconfig.json.

declare const console: Record<'debug' | 'log' | 'info' | 'warn' | 'error' | 'trace', (...values: unknown[]) => void>;

declare const crypto: {
  getRandomValues<T extends ArrayBufferView>(array: T): T;
  randomUUID(): string;
};

/** A clock for measuring how long something takes: only differences mean anything. */
declare const performance: { now(): number };

declare function queueMicrotask(job: () => void): void;
declare function atob(base64: string): string;
declare function btoa(bytes: string): string;
