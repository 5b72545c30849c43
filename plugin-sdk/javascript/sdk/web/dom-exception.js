// `DOMException`: the errors of the web platform's functions.

const CODES = {
  IndexSizeError: 1,
  HierarchyRequestError: 3,
  InvalidCharacterError: 5,
  NotFoundError: 8,
  NotSupportedError: 9,
  InvalidStateError: 11,
  SyntaxError: 12,
  InvalidModificationError: 13,
  InvalidAccessError: 15,
  SecurityError: 18,
  NetworkError: 19,
  AbortError: 20,
  URLMismatchError: 21,
  QuotaExceededError: 22,
  TimeoutError: 23,
  DataCloneError: 25,
};

export class DOMException extends Error {
  #name;

  constructor(message = '', options = 'Error') {
    const { name = 'Error', ...rest } = typeof options === 'object' && options !== null ? options : { name: options };
    super(message, rest);
    this.#name = String(name);
  }

  get name() {
    return this.#name;
  }

  get code() {
    return CODES[this.#name] ?? 0;
  }

  get [Symbol.toStringTag]() {
    return 'DOMException';
  }
}

for (const [name, code] of Object.entries(CODES)) {
  const constant = name.replace(/Error$/, '').replace(/(?<=[a-z])(?=[A-Z])/g, '_').toUpperCase();
  const key = constant === 'URLMISMATCH' ? 'URL_MISMATCH_ERR' : `${constant}_ERR`;
  for (const owner of [DOMException, DOMException.prototype]) Object.defineProperty(owner, key, { value: code, enumerable: true });
}
