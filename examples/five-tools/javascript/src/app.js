import { encode } from 'fast-png';
import { form, image, t, tool } from 'toolbay';
import { open } from 'toolbay/keyvalue';

const SIZE = 16;

export const weather = tool({
  name: 'get_weather',
  description: 'Returns the temperature in a city.',
  annotations: { readOnly: true },
  input: { city: t.string('The city.') },
  output: { city: t.string(), temperature: t.number('In °C.') },
  async handler({ city }, host) {
    const response = await fetch(`${host.config('service')}/weather?city=${encodeURIComponent(city)}`);
    if (!response.ok) throw new Error(`the service answered with status ${response.status}`);
    const { temperature } = await response.json();
    return { city, temperature };
  },
});

export const remember = tool({
  name: 'remember',
  description: 'Remembers a value, and returns the one that it replaces.',
  input: { key: t.string('The name of the value.'), value: t.string('The value.') },
  handler({ key, value }) {
    const memory = open('memory');
    const before = memory.get(key) ?? 'nothing';
    memory.set(key, value);
    return before;
  },
});

export const index = tool({
  name: 'index_files',
  description: 'Indexes files, and reports its progress.',
  annotations: { readOnly: true },
  input: { files: t.list(t.string(), 'The names of the files.') },
  handler({ files }, host) {
    for (const [done, file] of files.entries()) host.progress(done + 1, files.length, file);
    return `${files.length} files are indexed`;
  },
});

export const deleteAll = tool({
  name: 'delete_all',
  description: 'Deletes everything, if the user agrees.',
  annotations: { destructive: true },
  handler(_, host) {
    const answer = host.ask('sure', form('This deletes everything.', { yes: t.boolean('Really delete it?') }));
    return answer.action === 'accept' && answer.content.yes ? 'deleted' : 'nothing was deleted';
  },
});

const level = (name) => t.integer(`The level of ${name}.`, { minimum: 0, maximum: 255 });

export const swatch = tool({
  name: 'draw_swatch',
  description: 'Draws a square of one color.',
  annotations: { readOnly: true },
  input: { red: level('red'), green: level('green'), blue: level('blue') },
  handler({ red, green, blue }) {
    const data = new Uint8Array(Array(SIZE * SIZE).fill([red, green, blue]).flat());
    return image(encode({ width: SIZE, height: SIZE, channels: 3, data }), 'image/png');
  },
});
