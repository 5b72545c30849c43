import assert from 'node:assert/strict';
import { test } from 'node:test';
import { beginningWith, prompt, resource, t } from '../sdk/index.js';
import { complete } from '../sdk/testing.js';

/** Returns a prompt whose argument `a` is completed by `suggest`. */
const completed = (suggest) =>
  prompt({ name: 'p', arguments: { a: t.string(), b: t.string() }, complete: { a: suggest }, handler: () => 'p' });

test('a list completes by what was typed, in any case and in its order', async () => {
  const style = completed(['formal', 'Friendly', 'funny', 'dry']);
  for (const [typed, values] of [['', 4], ['f', 3], ['FR', 1], ['x', 0]]) {
    assert.equal((await complete(style, 'a', typed)).values.length, values, typed);
  }
  assert.deepEqual((await complete(style, 'a', 'f')).values, ['formal', 'Friendly', 'funny']);
  assert.deepEqual(beginningWith('É', ['école', 'ecole']), ['école']);
});

test('a function completes by what was typed, the other arguments and the host', async () => {
  const cities = completed(async (typed, given, host) => {
    await null;
    return [typed, given.b ?? 'none', host.config('units') ?? 'none'];
  });
  const { values, hasMore } = await complete(cities, 'a', 'x', { b: 'y' }, { config: { units: 'metric' } });
  assert.deepEqual([values, hasMore], [['x', 'y', 'metric'], false]);
  assert.deepEqual((await complete(cities, 'a', '')).values, ['', 'none', 'none']);
});

test('there can be more values', async () => {
  const many = completed(() => ({ values: ['a\ud800'], total: 7, hasMore: true }));
  const { values, total, hasMore } = await complete(many, 'a', '');
  assert.deepEqual([values, total, hasMore], [['a\ufffd'], 7, true]);
});

test('an argument of a few texts is completed by them, unless the author says otherwise', async () => {
  const args = { tone: t.choice(['dry', 'warm']).optional(), level: t.choice([1, 2]) };
  const one = prompt({ name: 'p', arguments: args, handler: () => 'p' });
  assert.deepEqual((await complete(one, 'tone', 'w')).values, ['warm']);
  assert.deepEqual((await complete(one, 'level', '')).values, ['1', '2']);
  const other = prompt({ name: 'p', arguments: args, complete: { tone: ['dry'] }, handler: () => 'p' });
  assert.deepEqual((await complete(other, 'tone', 'w')).values, []);
});

test('the variables of a template are completed', async () => {
  const note = resource({ uri: 'notes://{id}', name: 'note', complete: { id: ['a', 'b'] }, handler: () => 'n' });
  assert.deepEqual((await complete(note, 'id', 'b')).values, ['b']);
  await assert.rejects(complete(note, 'it', ''), /nothing completes `it` of notes:\/\/\{id\}/);
});

test('an answer that cannot cross is a failure that says why', async () => {
  const bad = [undefined, 'a', [1], { values: 'a' }, { values: [], total: '1' }, { values: [], more: true }, null];
  for (const answer of bad) {
    assert.match((await complete(completed(() => answer), 'a', '')).failure.message, /a completion is a list of texts/);
  }
  const negative = completed(() => ({ values: [], total: -1 }));
  assert.match((await complete(negative, 'a', '')).failure.message, /`total` of a completion is how many/);
  const failing = completed(() => {
    throw new Error('no list');
  });
  const { values, failure } = await complete(failing, 'a', '');
  assert.deepEqual([values, failure], [[], { kind: 'failed', message: 'no list' }]);
});
