/** Writes to standard error, which is part of the server's log. */
declare const console: Record<'debug' | 'error' | 'info' | 'log' | 'trace' | 'warn', (...values: unknown[]) => void>;
