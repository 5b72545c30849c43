import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createMcpHandler } from '@modelcontextprotocol/server';
import { createServer } from '../src/server.ts';

/** Calls a tool as an MCP client does, and returns its result. */
async function call(name: string, given: object): Promise<any> {
  const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };
  const params = { name, arguments: given, _meta: {} };
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params });
  const request = new Request('http://localhost/mcp', { method: 'POST', headers, body });
  const text = await (await createMcpHandler(createServer).fetch(request)).text();
  // A response is JSON, or a stream of events.
  const json = text.startsWith('{') ? text : text.split('\n').find((line) => line.startsWith('data: {'))?.slice(6);
  return JSON.parse(json ?? '{}').result;
}

test('greets', async () => {
  const { content } = await call('{{ident}}_greet', { name: 'Ada' });
  assert.deepEqual(content, [{ type: 'text', text: 'Hello, Ada.' }]);
});

test('greets nobody', async () => {
  assert.equal((await call('{{ident}}_greet', { name: ' ' })).isError, true);
});

test('counts', async () => {
  const { structuredContent } = await call('{{ident}}_count', { text: 'two words\nand 👋' });
  assert.deepEqual(structuredContent, { characters: 15, words: 4, lines: 2 });
});
