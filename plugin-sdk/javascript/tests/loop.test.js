import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startLoop, useClock, usePoll, waitFor } from '../sdk/loop.js';
import { enqueue, settle, SyncPromise } from '../sdk/promise.js';
import { clearInterval, clearTimeout, setImmediate, setInterval, setTimeout } from '../sdk/web/timers.js';

// A clock in nanoseconds that stands still, except for waits.
let time = 0;
let polls = 0;
let alive = 0;
const pollable = (at) => {
  alive += 1;
  return { at, [Symbol.dispose]: () => (alive -= 1) };
};
useClock({ now: () => time, subscribeInstant: pollable });
usePoll({
  poll(all) {
    polls += 1;
    time = Math.max(time, Math.min(...all.map(({ at }) => at)));
    return all.flatMap(({ at }, index) => (at <= time ? [index] : []));
  },
});
startLoop();

const after = (delay, value) => new SyncPromise((resolve) => setTimeout(resolve, delay, value));

test('timers run in the order of their times, then of their creation', () => {
  const order = [];
  for (const [delay, name] of [[2, 'c'], [0, 'a'], [1, 'b'], [2, 'd'], [undefined, 'A'], [-5, 'B'], [NaN, 'C']]) {
    setTimeout((...values) => order.push(...values), delay, name);
  }
  setTimeout(() => setTimeout(() => order.push('nested'), 0), 0);
  settle(after(3));
  assert.equal(order.join(' '), 'a A B C nested b c d');
});

test('promises run between two timers', () => {
  const order = [];
  setTimeout(() => {
    order.push(1);
    enqueue(() => order.push('job'));
  });
  setImmediate((value) => order.push(value), 2);
  settle(after(0));
  assert.deepEqual(order, [1, 'job', 2]);
});

test('a timer that is cleared does not run', () => {
  let ticks = 0;
  const tick = setInterval(() => {
    ticks += 1;
    if (ticks === 3) clearInterval(tick);
  }, 10);
  const other = setTimeout(() => assert.fail('cleared'), 15);
  setTimeout(() => clearTimeout(other), 15 - 5);
  // Both are due at once, and the first one removes the second.
  setTimeout(() => clearTimeout(twin), 20);
  const twin = setTimeout(() => assert.fail('cleared'), 20);
  for (const nothing of [undefined, null, NaN, 123456, {}]) clearTimeout(nothing);
  settle(after(100));
  assert.equal(ticks, 3);
  assert.ok(Number(twin) > 0 && twin.unref() === twin);
});

test('timers that are left are dropped', () => {
  let ticks = 0;
  setInterval(() => (ticks += 1), 1);
  settle(after(5));
  const before = ticks;
  assert.ok(before > 0);
  assert.equal(settle(after(50, 'value')), 'value');
  assert.equal(ticks, before);
});

test('an error of a timer is that of the call, and the next call works', () => {
  setTimeout(() => {
    throw new Error('late');
  }, 1);
  assert.throws(() => settle(after(5)), { message: 'late' });
  assert.equal(settle(after(1, 2)), 2);
  assert.throws(() => setTimeout('code'), /is a function, not string/);
});

test('a promise that nothing can settle is an error, after the timers', () => {
  let ran = false;
  setTimeout(() => (ran = true), 1);
  assert.throws(() => settle(new SyncPromise(() => {})), /never settles/);
  assert.equal(ran, true);
});

test('an endless chain of short timers does not keep an event from being noticed', () => {
  let again = () => setTimeout(again, 0);
  again();
  const event = pollable(time + 5e6);
  // The clock moves while the timers run.
  const moves = setInterval(() => (time += 1e6), 0);
  assert.equal(settle(new SyncPromise((resolve) => waitFor(event, () => resolve('event')))), 'event');
  clearInterval(moves);
  again = () => {};
});

test('events are released, also those that are left or cancelled', () => {
  alive = 0;
  let cancelled = 0;
  waitFor(pollable(Infinity), () => assert.fail('never'), () => (cancelled += 1));
  const cancel = waitFor(pollable(Infinity), () => assert.fail('never'), () => (cancelled += 10));
  cancel();
  cancel();
  settle(after(1));
  assert.deepEqual([alive, cancelled], [0, 11]);
});

test('many timers', () => {
  const order = [];
  polls = 0;
  for (let index = 0; index < 10_000; index += 1) setTimeout(() => order.push(index), (index * 7919) % 1000);
  settle(after(1000));
  assert.equal(order.length, 10_000);
  const delays = order.map((index) => (index * 7919) % 1000);
  assert.ok(delays.every((delay, at) => at === 0 || delays[at - 1] < delay || (delays[at - 1] === delay && order[at - 1] < order[at])));
  assert.ok(polls <= 1001, String(polls));
});
