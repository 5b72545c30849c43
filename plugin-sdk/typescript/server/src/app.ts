// The handler of HTTP requests, which Toolbay calls in a new instance for each call.

import { createMcpHandler } from '@modelcontextprotocol/server';
import { createServer } from './server.ts';

// Created with the first request: before that, the runtime has no clock and no random numbers.
let handler: ReturnType<typeof createMcpHandler> | undefined;

addEventListener('fetch', (event) => {
  const { request } = event as FetchEvent;
  (event as FetchEvent).respondWith(request.text().then((body) => answer(request, body)));
});

// The SDK listens to the signal of a request and clones the request. This runtime cannot do that with
// the original request, so the SDK gets a copy.
async function answer({ url, method, headers }: Request, body: string): Promise<Response> {
  handler ??= createMcpHandler(createServer);
  return handler.fetch(new Request(url, { method, headers: Object.fromEntries(headers), body }));
}
