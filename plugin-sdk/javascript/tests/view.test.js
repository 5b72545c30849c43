import assert from 'node:assert/strict';
import { test } from 'node:test';
import { resource, tool } from '../sdk/index.js';
import { readResource } from '../sdk/testing.js';

const handler = () => '<!doctype html>';
const metaOf = ({ definition: { meta } }) => JSON.parse(meta);

test('a tool names its view and whom it is for', () => {
  assert.deepEqual(metaOf(tool({ name: 'a', view: 'ui://a/b', meta: { 'example.com/a': 1 }, handler })), {
    'example.com/a': 1,
    ui: { resourceUri: 'ui://a/b' },
  });
  assert.deepEqual(metaOf(tool({ name: 'a', appOnly: true, handler })), { ui: { visibility: ['app'] } });
  assert.equal(tool({ name: 'a', appOnly: false, handler }).definition.meta, undefined);
  assert.throws(() => tool({ name: 'a', view: 'a.html', handler }), /tool a: the URI of a view begins with ui:/);
});

test('a view has its type and says what it asks for', async () => {
  const view = {
    connect: ['https://a.example', 'wss://b.example'],
    resources: ['https://c.example'],
    frames: ['https://d.example'],
    base: ['https://e.example'],
    permissions: ['camera', 'clipboardWrite'],
    border: false,
    domain: 'f.example',
  };
  const page = resource({ uri: 'ui://a/b', name: 'b', view, handler });
  assert.equal(page.definition.mimeType, 'text/html;profile=mcp-app');
  assert.deepEqual(metaOf(page), {
    ui: {
      csp: {
        connectDomains: view.connect,
        resourceDomains: view.resources,
        frameDomains: view.frames,
        baseUriDomains: view.base,
      },
      permissions: { camera: {}, clipboardWrite: {} },
      prefersBorder: false,
      domain: 'f.example',
    },
  });
  const { contents } = await readResource(page, 'ui://a/b');
  assert.equal(contents[0].mimeType, 'text/html;profile=mcp-app');
  const plain = resource({ uri: 'ui://a/b', name: 'b', handler });
  assert.deepEqual([plain.definition.meta, resource({ uri: 'a:b', name: 'b', handler }).definition.mimeType], [undefined, undefined]);
});

test('a mistake in a view says what is right', () => {
  const wrong = (view, uri = 'ui://a/b') => () => resource({ uri, name: 'b', view, handler });
  assert.throws(wrong({ conect: [] }), /view of resource ui:\/\/a\/b: `conect` is none of connect/);
  assert.throws(wrong({ connect: {} }), /`connect` is a list of origins/);
  assert.throws(wrong({ permissions: ['usb'] }), /`usb` is none of camera/);
  assert.throws(wrong({}, 'a:b'), /begins with ui:/);
});
