// The sites of the test: the host's page, the sandbox at another origin, and a server that counts its requests.

import { createHash } from 'node:crypto';
import { createServer } from 'node:http';
import { readFileSync } from 'node:fs';

const file = (name) => readFileSync(new URL(name, import.meta.url));

/** Listens on a free port. Returns the address. */
async function listen(server) {
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  return { origin: `http://127.0.0.1:${server.address().port}`, port: server.address().port, server };
}

function site(pages) {
  return listen(createServer((request, response) => {
    const url = new URL(request.url, 'http://127.0.0.1');
    const page = pages[url.pathname]?.(url.searchParams);
    if (page === undefined) return response.writeHead(404).end();
    const { type = 'text/html', body, headers = {} } = page;
    response.writeHead(200, { 'content-type': `${type}; charset=utf-8`, ...headers }).end(body);
  }));
}

/**
 * Returns the policy of a view, from the server's metadata (MCP Apps, "Sandbox proxy"). It trusts the server: a view
 * gets all permissions that the server passes on.
 */
export function policy({ connectDomains, resourceDomains = [], frameDomains, baseUriDomains }) {
  const sources = (first, more) => [...first, ...more].join(' ');
  const or = (origins, otherwise) => (origins?.length > 0 ? origins.join(' ') : otherwise);
  return [
    "default-src 'none'",
    `script-src ${sources(["'self'", "'unsafe-inline'"], resourceDomains)}`,
    `style-src ${sources(["'self'", "'unsafe-inline'"], resourceDomains)}`,
    `img-src ${sources(["'self'", 'data:'], resourceDomains)}`,
    `font-src ${sources(["'self'"], resourceDomains)}`,
    `media-src ${sources(["'self'", 'data:'], resourceDomains)}`,
    `connect-src ${or(connectDomains, "'none'")}`,
    `frame-src ${or(frameDomains, "'none'")}`,
    `base-uri ${or(baseUriDomains, "'self'")}`,
    "object-src 'none'",
  ].join('; ');
}

/** The host's page. */
export const host = (script) =>
  site({ '/': () => ({ body: file('host.html') }), '/host.js': () => ({ type: 'text/javascript', body: script }) });

/** The sandbox. */
export const sandbox = () => site({
  '/sandbox.html': (query) => ({
    body: file('sandbox.html'),
    headers: { 'content-security-policy': policy(JSON.parse(query.get('csp'))) },
  }),
});

/** A server that counts connections, and records requests. */
export async function counting() {
  const seen = new Set();
  const waiting = [];
  let connections = 0;
  const note = (url) => {
    seen.add(url.slice(1));
    waiting.forEach((check) => check());
  };
  const png = Buffer.from(
    'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==', 'base64');
  const bodies = {
    '/image': ['image/png', png],
    '/preload': ['image/png', png],
    '/script': ['text/javascript', 'window.scripted = true;'],
    '/module': ['text/javascript', 'export default 1;'],
    '/style': ['text/css', 'p { color: red }'],
    '/frame': ['text/html', '<script>parent.postMessage("a frame", "*")</script>'],
    '/events': ['text/event-stream', ': hello\n\n'],
  };
  const server = createServer((request, response) => {
    note(request.url);
    const [type, body] = bodies[request.url] ?? ['text/plain', 'here'];
    response.writeHead(200, { 'content-type': type, 'access-control-allow-origin': '*' }).end(body);
  });
  server.on('connection', () => { connections += 1; });
  server.on('upgrade', (request, stream) => {
    note(request.url);
    const key = request.headers['sec-websocket-key'] + '258EAFA5-E914-47DA-95CA-C5AB0DC85B11';
    const accept = createHash('sha1').update(key).digest('base64');
    stream.write('HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n' +
      `Sec-WebSocket-Accept: ${accept}\r\n\r\n`);
    stream.on('error', () => {});
  });
  const listening = await listen(server);
  return {
    ...listening,
    seen,
    connections: () => connections,
    /** Waits for a request. */
    asked: (name) => new Promise((resolve) => {
      const check = () => seen.has(name) && resolve();
      waiting.push(check);
      check();
    }),
    end: () => server.closeAllConnections(),
  };
}
