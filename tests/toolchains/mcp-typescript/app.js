// An MCP server with the official TypeScript SDK, as a handler of HTTP requests.

import { McpServer, ResourceTemplate, createMcpHandler } from '@modelcontextprotocol/server';
import * as z from 'zod';

function calculator() {
  const server = new McpServer({ name: 'calculator', version: '1.0.0' });
  const numbers = z.object({ a: z.number().describe('The first number.'), b: z.number().describe('The second number.') });
  server.registerTool(
    'add',
    {
      title: 'Add',
      description: 'Adds two numbers.',
      inputSchema: numbers,
      outputSchema: z.object({ sum: z.number() }),
      annotations: { readOnlyHint: true },
    },
    async ({ a, b }) => ({ content: [{ type: 'text', text: String(a + b) }], structuredContent: { sum: a + b } }),
  );
  server.registerTool(
    'divide',
    { description: 'Divides a number by another.', inputSchema: numbers },
    async ({ a, b }) =>
      b === 0
        ? { content: [{ type: 'text', text: 'Nothing can be divided by zero.' }], isError: true }
        : { content: [{ type: 'text', text: String(a / b) }] },
  );
  server.registerTool(
    'fetch',
    { description: 'The text behind a URL.', inputSchema: z.object({ url: z.string() }) },
    async ({ url }) => ({ content: [{ type: 'text', text: await (await fetch(url)).text() }] }),
  );
  server.registerPrompt(
    'explain',
    { description: 'Asks for an explanation.', argsSchema: z.object({ what: z.string() }) },
    ({ what }) => ({ messages: [{ role: 'user', content: { type: 'text', text: `Explain ${what}.` } }] }),
  );
  server.registerResource('pi', 'numbers://pi', { description: 'A number.', mimeType: 'text/plain' }, async (uri) => ({
    contents: [{ uri: uri.href, text: '3.14159' }],
  }));
  server.registerResource(
    'squares',
    new ResourceTemplate('squares://{n}', { list: undefined }),
    { description: 'The square of a number.' },
    async (uri, { n }) => ({ contents: [{ uri: uri.href, text: String(n * n) }] }),
  );
  return server;
}

// Created with the first request: before that, the runtime has no clock and no random numbers.
let handler;
addEventListener('fetch', (event) => event.respondWith(event.request.text().then((body) => answer(event.request, body))));

// The SDK listens to the signal of a request and clones the request. This runtime cannot do that with the original
// request, so the SDK gets a copy.
async function answer({ url, method, headers }, body) {
  handler ??= createMcpHandler(calculator);
  return handler.fetch(new Request(url, { method, headers: Object.fromEntries(headers), body }));
}
