import assert from 'node:assert/strict';
import { test } from 'node:test';
import { call } from 'toolbay/testing';
import { weather } from './src/app.js';

const FORECAST = {
  current: { temperature_2m: 12.5, wind_speed_10m: 9 },
  daily: { time: ['2026-04-01'], temperature_2m_min: [4], temperature_2m_max: [14], precipitation_sum: [0.3] },
};
const HERE = { latitude: 52.52, longitude: 13.41 };
const CONFIG = { config: { base_url: 'https://weather.example' } };

function answering(status, body) {
  const asked = [];
  globalThis.fetch = async (url) => {
    asked.push(url);
    return new Response(JSON.stringify(body), { status });
  };
  return asked;
}

test('asks the configured service', async () => {
  const asked = answering(200, FORECAST);
  const { structured } = await call(weather, HERE, CONFIG);
  assert.deepEqual(structured, {
    temperature: 12.5,
    wind: 9,
    days: [{ date: '2026-04-01', low: 4, high: 14, rain: 0.3 }],
  });
  assert.match(asked[0], /^https:\/\/weather\.example\/v1\/forecast\?latitude=52\.52&longitude=13\.41&forecast_days=1&/);
});

test('says what is wrong', async () => {
  answering(400, { reason: 'no such place' });
  const wrong = { kind: 'invalid-arguments', message: 'the service refuses this: no such place' };
  assert.deepEqual((await call(weather, HERE, CONFIG)).failure, wrong);
  answering(503, {});
  assert.equal((await call(weather, HERE, CONFIG)).failure.message, 'the service answered with status 503');
  assert.match((await call(weather, HERE)).failure.message, /the operator must set config.base_url/);
});
