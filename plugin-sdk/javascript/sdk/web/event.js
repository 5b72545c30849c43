// Events and their targets, without a tree: an event reaches only its target.

import { DOMException } from './dom-exception.js';

const NONE = 0;
const AT_TARGET = 2;

// Members that only a target sets.
let state;

export class Event {
  #type;
  #target = null;
  #phase = NONE;
  #bubbles;
  #cancelable;
  #composed;
  #prevented = false;
  #stopped = false;
  #passive = false;
  #time = Date.now();

  constructor(type, { bubbles = false, cancelable = false, composed = false } = {}) {
    if (type === undefined) throw new TypeError('an event has a type');
    this.#type = String(type);
    this.#bubbles = Boolean(bubbles);
    this.#cancelable = Boolean(cancelable);
    this.#composed = Boolean(composed);
  }

  static {
    state = {
      isDispatched: (event) => event.#phase !== NONE,
      begin(event, target) {
        event.#target = target;
        event.#phase = AT_TARGET;
      },
      end(event) {
        event.#phase = NONE;
        event.#stopped = false;
      },
      isStopped: (event) => event.#stopped,
      setPassive: (event, passive) => (event.#passive = passive),
    };
  }

  get type() {
    return this.#type;
  }

  get target() {
    return this.#target;
  }

  get srcElement() {
    return this.#target;
  }

  get currentTarget() {
    return this.#phase === NONE ? null : this.#target;
  }

  get eventPhase() {
    return this.#phase;
  }

  get bubbles() {
    return this.#bubbles;
  }

  get cancelable() {
    return this.#cancelable;
  }

  get composed() {
    return this.#composed;
  }

  get defaultPrevented() {
    return this.#prevented;
  }

  get returnValue() {
    return !this.#prevented;
  }

  get timeStamp() {
    return this.#time;
  }

  get isTrusted() {
    return false;
  }

  composedPath() {
    return this.#phase === NONE ? [] : [this.#target];
  }

  preventDefault() {
    if (this.#cancelable && !this.#passive) this.#prevented = true;
  }

  // An event has one target, so that there is nothing to stop.
  stopPropagation() {}

  stopImmediatePropagation() {
    this.#stopped = true;
  }

  get [Symbol.toStringTag]() {
    return 'Event';
  }
}

for (const [phase, value] of Object.entries({ NONE: 0, CAPTURING_PHASE: 1, AT_TARGET: 2, BUBBLING_PHASE: 3 })) {
  for (const owner of [Event, Event.prototype]) Object.defineProperty(owner, phase, { value, enumerable: true });
}

export class CustomEvent extends Event {
  #detail;

  constructor(type, options = {}) {
    super(type, options);
    this.#detail = options?.detail ?? null;
  }

  get detail() {
    return this.#detail;
  }

  get [Symbol.toStringTag]() {
    return 'CustomEvent';
  }
}

export class EventTarget {
  #listeners = [];

  addEventListener(type, callback, options) {
    if (callback === null || callback === undefined) return;
    if (typeof callback !== 'function' && typeof callback !== 'object') {
      throw new TypeError(`a listener is a function or an object, not ${typeof callback}`);
    }
    const { capture = false, once = false, passive = false, signal } = typeof options === 'object' && options !== null ? options : { capture: options };
    if (signal?.aborted) return;
    const listener = { type: String(type), callback, capture: Boolean(capture), once, passive, removed: false };
    if (this.#listeners.some((other) => same(listener, other))) return;
    this.#listeners.push(listener);
    signal?.addEventListener('abort', () => this.#remove(listener), { once: true });
  }

  removeEventListener(type, callback, options) {
    const capture = Boolean(typeof options === 'object' && options !== null ? options.capture : options);
    const found = this.#listeners.find((other) => same({ type: String(type), callback, capture }, other));
    if (found !== undefined) this.#remove(found);
  }

  #remove(listener) {
    listener.removed = true;
    this.#listeners = this.#listeners.filter((other) => other !== listener);
  }

  dispatchEvent(event) {
    if (!(event instanceof Event)) throw new TypeError('dispatchEvent takes an Event');
    if (state.isDispatched(event)) throw new DOMException('The event is already being dispatched.', 'InvalidStateError');
    state.begin(event, this);
    try {
      for (const listener of this.#listeners.filter(({ type }) => type === event.type)) {
        if (listener.removed) continue;
        if (listener.once) this.#remove(listener);
        state.setPassive(event, listener.passive);
        call(this, listener.callback, event);
        if (state.isStopped(event)) break;
      }
    } finally {
      state.setPassive(event, false);
      state.end(event);
    }
    return !event.defaultPrevented;
  }

  get [Symbol.toStringTag]() {
    return 'EventTarget';
  }
}

const same = (a, b) => a.type === b.type && a.callback === b.callback && a.capture === b.capture;

/** Calls a listener. As in Node, its error does not keep the other listeners from running: it is thrown later. */
function call(target, callback, event) {
  try {
    if (typeof callback === 'function') callback.call(target, event);
    else callback.handleEvent(event);
  } catch (error) {
    queueMicrotask(() => {
      throw error;
    });
  }
}

/** Defines the property `onTYPE`, whose value is a listener. */
export function defineHandler(Target, type) {
  const handlers = new WeakMap();
  Object.defineProperty(Target.prototype, `on${type}`, {
    configurable: true,
    enumerable: true,
    get() {
      return handlers.get(this)?.callback ?? null;
    },
    set(callback) {
      const before = handlers.get(this);
      if (before !== undefined) before.callback = typeof callback === 'function' ? callback : null;
      else if (typeof callback === 'function') {
        const handler = { callback };
        handlers.set(this, handler);
        this.addEventListener(type, (event) => handler.callback?.call(this, event));
      }
    },
  });
}
