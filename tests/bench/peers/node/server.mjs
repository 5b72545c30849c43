// A server with the official TypeScript SDK, with the tools that `cargo xtask bench` calls. Without arguments, it
// uses standard input and output; with a port, HTTP at /mcp, with sessions and with requests of 2026-07-28, which
// have none.
import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';

import { NodeStreamableHTTPServerTransport, toNodeHandler } from '@modelcontextprotocol/node';
import { McpServer, createMcpHandler } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import { z } from 'zod';

const text = (text) => ({ content: [{ type: 'text', text }] });

function tools() {
  const server = new McpServer({ name: 'node-peer', version: '0.0.0' }, { capabilities: { tools: {} } });
  server.registerTool(
    'echo',
    { description: 'Returns the message.', inputSchema: z.object({ message: z.string() }) },
    async ({ message }) => text(message),
  );
  server.registerTool(
    'burn',
    { description: 'Computes for so many rounds.', inputSchema: z.object({ rounds: z.number().int() }) },
    async ({ rounds }) => {
      let number = 1;
      for (let round = 0; round < rounds; round += 1) number = (number * 48271) % 2147483647;
      return text(String(number));
    },
  );
  return server;
}

const port = process.argv[2];
if (port === undefined) {
  serveStdio(tools);
} else {
  const stateless = toNodeHandler(createMcpHandler(tools));
  const sessions = new Map();
  const http = createServer(async (request, response) => {
    if (request.headers['mcp-protocol-version'] === '2026-07-28') return stateless(request, response);
    let session = sessions.get(request.headers['mcp-session-id']);
    if (session === undefined) {
      session = new NodeStreamableHTTPServerTransport({
        sessionIdGenerator: randomUUID,
        onsessioninitialized: (id) => sessions.set(id, session),
      });
      await tools().connect(session);
    }
    return session.handleRequest(request, response);
  });
  http.listen(Number(port), '127.0.0.1');
}
