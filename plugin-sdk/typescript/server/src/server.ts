// The MCP server, with the official TypeScript SDK.

import { McpServer } from '@modelcontextprotocol/server';
import * as z from 'zod';

/** Creates the server. Each request gets a new one. */
export function createServer(): McpServer {
  const server = new McpServer({ name: '{{name}}', version: '1.0.0' });

  server.registerTool(
    '{{ident}}_greet',
    {
      description: 'Greets somebody by name.',
      inputSchema: z.object({
        name: z.string().describe('Who to greet.'),
        excited: z.boolean().default(false).describe('Whether to shout.'),
      }),
      annotations: { readOnlyHint: true },
    },
    async ({ name, excited }) => {
      if (name.trim() === '') {
        return { content: [{ type: 'text', text: 'name is empty: say who to greet' }], isError: true };
      }
      const text = excited ? `HELLO, ${name.toUpperCase()}!` : `Hello, ${name}.`;
      return { content: [{ type: 'text', text }] };
    },
  );

  server.registerTool(
    '{{ident}}_count',
    {
      description: 'Counts the characters, words and lines of a text.',
      inputSchema: z.object({ text: z.string().describe('Text to count.') }),
      outputSchema: z.object({
        characters: z.int().describe('Unicode code points.'),
        words: z.int().describe('What white space separates.'),
        lines: z.int().describe('What line feeds separate.'),
      }),
      annotations: { readOnlyHint: true },
    },
    async ({ text }) => {
      const structuredContent = {
        characters: [...text].length,
        words: text.split(/\s+/).filter(Boolean).length,
        lines: text === '' ? 0 : text.split('\n').length,
      };
      return { content: [{ type: 'text', text: JSON.stringify(structuredContent) }], structuredContent };
    },
  );

  return server;
}
