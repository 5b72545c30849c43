// The event loop of a call: timers, and the events of the host that `wasi:io/poll` waits for.
//
// This module does not import WASI, so that a plugin imports only the interfaces that it
// uses: poll.js and clock.js connect them.

import { Heap } from './heap.js';

let poll;
let clock;

/** The host's events that something waits for: their pollables, with the function to call. */
const waits = new Set();

/** The timers that have not run, by their number. The numbers ascend. */
const timers = new Map();
let lastTimer = 0;

/** The same timers, and some that were removed, with the next one first. */
const schedule = new Heap((a, b) => a.at < b.at || (a.at === b.at && a.number < b.number));

/** The tasks that are due: functions that the loop calls one at a time. */
const tasks = [];

/** The time of the latest timer that ran, in milliseconds. A clock may not have reached it. */
let reached = 0;

/** True while a call runs: at the top level, the host has neither a clock nor events. */
let running = false;

/** Connects `wasi:io/poll`. */
export function usePoll(interfaceOfPoll) {
  poll = interfaceOfPoll.poll;
}

/** Connects `wasi:clocks/monotonic-clock`, which counts nanoseconds. */
export function useClock({ now, subscribeInstant }) {
  clock = {
    now: () => Number(now()) / 1e6,
    // Rounded up, so that the event is not before the time.
    subscribe: (milliseconds) => subscribeInstant(Math.ceil(milliseconds * 1e6)),
  };
}

const now = () => (running && clock !== undefined ? Math.max(clock.now(), reached) : reached);

/** Starts a call. Timers of the top level begin now. */
export function startLoop() {
  running = true;
  const start = now();
  schedule.clear();
  for (const timer of timers.values()) {
    timer.at += start;
    schedule.push(timer);
  }
}

/** Functions that release the host's resources at the end of a call. */
const held = new Set();

/** Calls `close` at the end of the call, unless the returned function is called before. */
export function hold(close) {
  held.add(close);
  return () => held.delete(close);
}

/** Ends a call: drops the timers and the events that nobody waits for any more. */
export function endLoop() {
  for (const close of [...held]) close();
  held.clear();
  timers.clear();
  schedule.clear();
  tasks.length = 0;
  for (const wait of [...waits]) wait.cancel();
}

/** Returns whether a call runs. */
export const isRunning = () => running;

/**
 * Calls `act` when `pollable` is ready, and releases it. Returns a function that ends the wait
 * and calls `cancelled`, which the end of the call does too.
 */
export function waitFor(pollable, act, cancelled = () => {}) {
  const end = () => {
    if (!waits.delete(wait)) return false;
    pollable[Symbol.dispose]?.();
    return true;
  };
  const wait = {
    pollable,
    run: () => end() && act(),
    cancel: () => end() && cancelled(),
  };
  waits.add(wait);
  return wait.cancel;
}

/** The longest delay, as in browsers and Node. Longer ones would overflow and become 1 ms. */
const LONGEST = 2 ** 31 - 1;

/** Adds a timer, and returns its number. `every` repeats it. */
export function addTimer(act, delay, every = false) {
  let milliseconds = Number(delay);
  if (!(milliseconds > 0)) milliseconds = 0;
  if (milliseconds > LONGEST) milliseconds = every ? LONGEST : milliseconds;
  lastTimer += 1;
  const number = lastTimer;
  const timer = { number, act, at: now() + milliseconds, every: every ? Math.max(milliseconds, 1) : undefined };
  timers.set(number, timer);
  schedule.push(timer);
  return number;
}

export function removeTimer(number) {
  timers.delete(number);
}

/** Returns the next timer, or `undefined`. */
function nextTimer() {
  while (schedule.first !== undefined && timers.get(schedule.first.number) !== schedule.first) schedule.shift();
  return schedule.first;
}

/** Adds the timers up to this time to the tasks. */
function addDueTimers(time) {
  for (let timer = nextTimer(); timer !== undefined && timer.at <= time; timer = nextTimer()) {
    const due = schedule.shift();
    tasks.push(() => runTimer(due));
  }
}

function runTimer(timer) {
  // A task before it may have removed it.
  if (timers.get(timer.number) !== timer) return;
  reached = Math.max(reached, timer.at);
  if (timer.every === undefined) {
    timers.delete(timer.number);
  } else {
    timer.at = now() + timer.every;
    schedule.push(timer);
  }
  timer.act();
}

/**
 * Runs one task, after waiting for one if none is due. Returns whether there is anything left
 * to wait for: without timers and events, nothing can happen any more.
 */
export function turn() {
  if (tasks.length === 0 && !addTasks()) return false;
  tasks.shift()?.();
  return true;
}

/** Waits for at least one event or timer, and adds its task. */
function addTasks() {
  const next = nextTimer()?.at;
  if (next !== undefined && waits.size === 0 && next <= now()) {
    addDueTimers(Math.max(next, now()));
    return true;
  }
  const waiting = [...waits];
  if (waiting.length === 0 && next === undefined) return false;
  const pollables = waiting.map(({ pollable }) => pollable);
  const alarm = next === undefined ? undefined : clock.subscribe(next);
  if (alarm !== undefined) pollables.push(alarm);
  const ready = poll(pollables);
  alarm?.[Symbol.dispose]?.();
  for (const index of ready) {
    if (index < waiting.length) tasks.push(waiting[index].run);
    else addDueTimers(Math.max(next, now()));
  }
  return true;
}
