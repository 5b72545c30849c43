// The weather, from a forecast service whose address the operator configures.
// Its responses have Open-Meteo's format.

import { InvalidArguments, t, tool } from 'toolbay';

export const weather = tool({
  name: 'get_weather',
  title: 'Weather',
  description: 'Returns the weather of a place: now, and of the next days.',
  annotations: { readOnly: true, openWorld: true },
  input: {
    latitude: t.number('Degrees north, such as 52.52.', { minimum: -90, maximum: 90 }),
    longitude: t.number('Degrees east, such as 13.41.', { minimum: -180, maximum: 180 }),
    days: t.integer('How many days, with today.', { minimum: 1, maximum: 7 }).default(1),
  },
  output: {
    temperature: t.number('Now, in °C.'),
    wind: t.number('Now, in km/h.'),
    days: t.list(t.object({ date: t.string(), low: t.number('°C'), high: t.number('°C'), rain: t.number('mm') })),
  },
  async handler({ latitude, longitude, days }, host) {
    const base = host.config('base_url');
    if (base === undefined) throw new Error('the operator must set config.base_url in the grant of this plugin');
    const asked = {
      latitude,
      longitude,
      forecast_days: days,
      current: 'temperature_2m,wind_speed_10m',
      daily: 'temperature_2m_min,temperature_2m_max,precipitation_sum',
    };
    const query = Object.entries(asked).map(([key, value]) => `${key}=${encodeURIComponent(value)}`);
    const response = await fetch(`${base}/v1/forecast?${query.join('&')}`, { timeout: 5_000 });
    if (response.status === 400) {
      throw new InvalidArguments(`the service refuses this: ${(await response.json()).reason}`);
    }
    if (!response.ok) throw new Error(`the service answered with status ${response.status}`);
    const { current, daily } = await response.json();
    return {
      temperature: current.temperature_2m,
      wind: current.wind_speed_10m,
      days: daily.time.map((date, i) => ({
        date,
        low: daily.temperature_2m_min[i],
        high: daily.temperature_2m_max[i],
        rain: daily.precipitation_sum[i],
      })),
    };
  },
});
