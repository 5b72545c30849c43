import { McpServer } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import { encode } from 'fast-png';
import { z } from 'zod';

const SIZE = 16;
const SERVICE = process.env.SERVICE;

const memory = new Map<string, string>();

const text = (text: string) => ({ content: [{ type: 'text' as const, text }] });
const level = (name: string) => z.number().int().min(0).max(255).describe(`The level of ${name}.`);

serveStdio(() => {
  const server = new McpServer({ name: 'five-tools', version: '1.0.0' });

  server.registerTool(
    'get_weather',
    {
      description: 'Returns the temperature in a city.',
      annotations: { readOnlyHint: true },
      inputSchema: z.object({ city: z.string().describe('The city.') }),
      outputSchema: z.object({ city: z.string(), temperature: z.number().describe('In °C.') }),
    },
    async ({ city }) => {
      const response = await fetch(`${SERVICE}/weather?city=${encodeURIComponent(city)}`);
      if (!response.ok) throw new Error(`the service answered with status ${response.status}`);
      const { temperature } = (await response.json()) as { temperature: number };
      const weather = { city, temperature };
      return { ...text(JSON.stringify(weather)), structuredContent: weather };
    },
  );

  server.registerTool(
    'remember',
    {
      description: 'Remembers a value, and returns the one that it replaces.',
      inputSchema: z.object({
        key: z.string().describe('The name of the value.'),
        value: z.string().describe('The value.'),
      }),
    },
    async ({ key, value }) => {
      const before = memory.get(key) ?? 'nothing';
      memory.set(key, value);
      return text(before);
    },
  );

  server.registerTool(
    'index_files',
    {
      description: 'Indexes files, and reports its progress.',
      annotations: { readOnlyHint: true },
      inputSchema: z.object({ files: z.array(z.string()).describe('The names of the files.') }),
    },
    async ({ files }, ctx) => {
      const progressToken = ctx.mcpReq._meta?.progressToken;
      if (progressToken !== undefined) {
        for (const [done, message] of files.entries()) {
          const params = { progressToken, progress: done + 1, total: files.length, message };
          await ctx.mcpReq.notify({ method: 'notifications/progress', params });
        }
      }
      return text(`${files.length} files are indexed`);
    },
  );

  server.registerTool(
    'delete_all',
    { description: 'Deletes everything, if the user agrees.', annotations: { destructiveHint: true } },
    async (ctx) => {
      const answer = await ctx.mcpReq.elicitInput({
        message: 'This deletes everything.',
        requestedSchema: {
          type: 'object',
          properties: { yes: { type: 'boolean', description: 'Really delete it?' } },
          required: ['yes'],
        },
      });
      return text(answer.action === 'accept' && answer.content?.yes ? 'deleted' : 'nothing was deleted');
    },
  );

  server.registerTool(
    'draw_swatch',
    {
      description: 'Draws a square of one color.',
      annotations: { readOnlyHint: true },
      inputSchema: z.object({ red: level('red'), green: level('green'), blue: level('blue') }),
    },
    async ({ red, green, blue }) => {
      const pixels = new Uint8Array(Array(SIZE * SIZE).fill([red, green, blue]).flat());
      const png = encode({ width: SIZE, height: SIZE, channels: 3, data: pixels });
      const data = Buffer.from(png).toString('base64');
      return { content: [{ type: 'image' as const, mimeType: 'image/png', data }] };
    },
  );

  return server;
});
