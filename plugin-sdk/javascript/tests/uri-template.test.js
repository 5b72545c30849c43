import assert from 'node:assert/strict';
import { test } from 'node:test';
import { UriTemplate } from '../sdk/uri-template.js';

const found = (template, uri) => {
  const values = new UriTemplate(template).values(uri);
  return values && Object.entries(values).map(([name, value]) => `${name}=${value}`).join(' ');
};

test('a URI fits or does not', () => {
  const cases = [
    ['notes://all', 'notes://all', ''],
    ['notes://all', 'notes://al', undefined],
    ['notes://all', 'notes://all/', undefined],
    ['notes://{id}', 'notes://7', 'id=7'],
    ['notes://{id}', 'notes://', undefined],
    ['notes://{id}', 'notes://a/b', undefined],
    ['notes://{id}', 'notes://a?b', undefined],
    ['notes://{id}', 'notes://a#b', undefined],
    ['notes://{+path}', 'notes://a/b?c', 'path=a/b?c'],
    ['notes://{+path}', 'notes://a%20b', 'path=a%20b'],
    ['notes://{id}', 'notes://a%20b', 'id=a b'],
    ['notes://{id}', 'notes://a%2Fb', 'id=a/b'],
    ['notes://{id}', 'notes://a+b', 'id=a+b'],
    ['notes://{id}', 'notes://a%2', undefined],
    ['notes://{id}', 'notes://a%ff', undefined],
    ['test://template/{id}/data', 'test://template/123/data', 'id=123'],
    ['test://template/{id}/data', 'test://template//data', undefined],
    ['a:{x}-{y}', 'a:1-2-3', 'x=1 y=2-3'],
    ['a:{x}.txt', 'a:b.txt.txt', 'x=b.txt'],
    ['a:{x}.txt', 'a:b-txt', undefined],
    ['a:(1)?b={x}', 'a:(1)?b=c', 'x=c'],
    ['a:{x}', 'a:é', 'x=é'],
    ['a:{x}', 'a:👋', 'x=👋'],
  ];
  for (const [template, uri, expected] of cases) assert.equal(found(template, uri), expected, `${template} ${uri}`);
});

test('the names of the variables are in order', () => {
  assert.deepEqual(new UriTemplate('a:{b}/{+c_1}/{d.e}').variables, ['b', 'c_1', 'd.e']);
});

test('a template that no client can use is refused', () => {
  const cases = [
    ['notes', /does not begin with a scheme, such as notes:/],
    ['{+any}', /does not begin with a scheme/],
    ['toolbay://a/{id}', /has the scheme of files next to the plugins/],
    ['a:{x', /a brace without its other half/],
    ['a:x}', /a brace without its other half/],
    ['a:{{x}}', /a brace without its other half/],
    ['a:{x}{y}', /has nothing between \{y\} and the variable before it/],
    ['a:{x}/{x}', /has \{x\} twice/],
    ['a:{#x}', /has \{#x\}: write \{name\}, or \{\+name\}/],
    ['a:{x,y}', /has \{x,y\}: write/],
    ['a:{}', /has \{\}: write/],
  ];
  for (const [template, expected] of cases) assert.throws(() => new UriTemplate(template), expected);
});
