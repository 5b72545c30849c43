import assert from 'node:assert/strict';
import { test } from 'node:test';
import { offered } from '../sdk/offer.js';
import { prompt, resource, t, tool } from '../sdk/index.js';

const handler = () => 'a';
const run = (find, input) => {
  const one = find();
  return one.finish(one.start(input, {}), input);
};
const offers = (exported) => offered(exported, run);
const names = (exported) => Object.keys(offers(exported)).join(' ');

const aTool = tool({ name: 'a', handler });
const aPrompt = prompt({ name: 'a', arguments: { x: t.string() }, handler: ({ x }) => x });
const aResource = resource({ uri: 'a:b', name: 'a', handler: () => 'fixed' });
const aTemplate = resource({ uri: 'a:{x}', name: 'a', complete: { x: ['one', 'two'] }, handler: ({ x }) => x });
const completed = prompt({ name: 'b', arguments: { x: t.choice(['one', 'other']) }, handler });

test('a plugin exports what it offers, and nothing else', () => {
  assert.equal(names({ aTool }), 'tools');
  assert.equal(names({ aPrompt }), 'prompts');
  assert.equal(names({ aResource }), 'resources');
  assert.equal(names({ completed }), 'prompts completion');
  assert.equal(names({ aTemplate, aTool }), 'tools resources completion');
  const all = { list: [aTemplate, aPrompt], aTool, again: aTool, other: 5, none: null };
  assert.equal(names(all), 'tools prompts resources completion');
});

test('the interfaces are the contract’s', () => {
  const { tools, prompts, resources, completion } = offers({ aTool, aPrompt, aTemplate, aResource, completed });
  assert.deepEqual(tools.listTools(), [aTool.definition]);
  assert.equal(tools.callTool('a', '{}').content[0].text, 'a');
  assert.deepEqual(prompts.listPrompts(), [aPrompt.definition, completed.definition]);
  assert.equal(prompts.getPrompt('a', [['x', 'y']]).messages[0].content.text, 'y');
  assert.deepEqual(resources.listResources(), [aResource.definition]);
  assert.deepEqual(resources.listResourceTemplates(), [aTemplate.definition]);
  assert.equal(resources.readResource('a:b')[0].text, 'fixed');
  assert.equal(resources.readResource('a:c')[0].text, 'c');
  assert.deepEqual(resources.readResource('b:c'), []);
  const complete = (kind, name, argument) =>
    completion.complete({ kind, name, argument, value: 'o', context: [] }).values;
  assert.deepEqual(complete('prompt', 'b', 'x'), ['one', 'other']);
  assert.deepEqual(complete('resource-template', 'a:{x}', 'x'), ['one']);
  assert.deepEqual(complete('prompt', 'a', 'x'), []);
  assert.deepEqual(complete('resource-template', 'b', 'x'), []);
});

test('what cannot be told apart is told when the plugin is built', () => {
  const again = (uri) => resource({ uri, name: 'a', handler });
  const cases = [
    [{}, /the main file exports no tool, prompt or resource/],
    [{ aTool, two: tool({ name: 'a', handler }) }, /two tools are named a/],
    [{ aPrompt, two: prompt({ name: 'a', handler }) }, /two prompts are named a/],
    [{ aResource, two: again('a:b') }, /two resources have the URI a:b/],
    [{ aTemplate, two: again('a:{x}') }, /two resources have the URI a:\{x\}/],
    [{ aTemplate, two: again('b:{x}') }, /two resource templates are named a/],
  ];
  for (const [exported, expected] of cases) assert.throws(() => offers(exported), expected);
  assert.equal(names({ aTool, aPrompt, aResource }), 'tools prompts resources');
});
