import { expect, it } from 'vitest';
import { type GatewayConfig, parseGatewayConfig, withDiscovers } from '../../src/gateway/endpoints/gateway-config.ts';
import { configFaults } from '../support/gateway/config-faults.ts';

const ALIAS = 'webhook_alias: {deprecated_at: 2026-11-01T00:00:00Z, sunset: 2027-11-01T00:00:00Z}';

interface Written {
  service: string;
  endpoint?: string;
  more?: string;
}

function read({ service, endpoint = 'services: [a]', more = '' }: Written): GatewayConfig {
  const endpoints = `endpoints:\n  - {methods: [GET], path: /a, ${endpoint}}`;
  return parseGatewayConfig('gateway.yaml', `services:\n  b: local\n  a: ${service}\n${ALIAS}\n${endpoints}\n${more}`);
}

const faults = (written: Written) => configFaults(() => read(written));

const PLACE = 'must be local, or an http or https URL without user and query';

const places: [service: string, fault: string][] = [
  ['remote', `services.a: ${PLACE}`],
  ['ftp://host', `services.a: ${PLACE}`],
  ['http://user:secret@host', `services.a: ${PLACE}`],
  ['http://host/?page=1', `services.a: ${PLACE}`],
  ['"http://host/#top"', `services.a: ${PLACE}`],
  ['"http://["', 'services.a: must be a URL'],
  ['3', 'services.a: must be a mapping'],
  ['{guards: here}', 'services.a.at: is required'],
  ['{at: here}', `services.a.at: ${PLACE}`],
  ['{at: local, connections: 3}', 'services.a: has the unknown member connections'],
  ['{at: local, guards: upstream}', 'services.a.guards: must be one of here, front'],
  ['{at: http://host, guards: front}', 'services.a.guards: must be one of here, upstream'],
  ['{at: http://host, conections: 3}', 'services.a: has the unknown member conections'],
  ['{at: http://host, breaker: {failurs: 3}}', 'services.a.breaker: has the unknown member failurs'],
  ['{at: http://host, breaker: {failures: 0}}', 'services.a.breaker.failures: must be at least 1'],
  ['{at: http://host, timeout_ms: 0}', 'services.a.timeout_ms: must be at least 1'],
  ['{at: http://host, connections: 0}', 'services.a.connections: must be at least 1'],
  ['{at: http://host, queue: -1}', 'services.a.queue: must be at least 0'],
];

it.each(places)('D2-10: a service that is %s is rejected with file, line and field', (service, fault) => {
  expect(faults({ service })).toEqual([`gateway.yaml:3: ${fault}`]);
});

it('D2-10: several errors of a service are reported together', () => {
  expect(faults({ service: '{at: http://host, timeout_ms: 0, websockets: -1}' })).toHaveLength(2);
});

it('D2-10: a service needs only a URL, and other members take the documented defaults', () => {
  expect(read({ service: 'https://accounts.internal/base/' }).services.a).toEqual({
    at: 'https://accounts.internal/base',
    guards: 'here',
    idle_timeout_ms: 120_000,
    connections: 128,
    queue: 256,
    websockets: 1_000,
    breaker: { failures: 5, open_ms: 10_000 },
  });
});

const limits: [name: string, Written, timeoutMs: number, maxBytes: number][] = [
  ['nothing is set', { service: 'http://host' }, 30_000, 1_048_576],
  ['the service sets them', { service: '{at: http://host, timeout_ms: 5, max_body_bytes: 0}' }, 5, 0],
  [
    'the endpoint sets them',
    {
      service: '{at: http://host, timeout_ms: 5, max_body_bytes: 0}',
      endpoint: 'services: [a], timeout_ms: 7, max_body_bytes: 9',
    },
    7,
    9,
  ],
  ['no limit', { service: 'http://host', endpoint: 'services: [a], max_body_bytes: 0' }, 30_000, 0],
  [
    'its first service sets them',
    { service: '{at: http://host, timeout_ms: 5}', endpoint: 'services: [a, b]' },
    5,
    1_048_576,
  ],
  [
    'another service sets them',
    { service: '{at: http://host, timeout_ms: 5}', endpoint: 'services: [b, a]' },
    30_000,
    1_048_576,
  ],
];

it.each(limits)('D2-10: an endpoint has the expected limits if %s', (_name, written, timeoutMs, maxBytes) => {
  const [endpoint] = read(written).endpoints;
  expect([endpoint?.timeout_ms, endpoint?.max_body_bytes]).toEqual([timeoutMs, maxBytes]);
});

it.each(['services: [a, b]', 'services: [b]', 'visibility: public'])(
  'D2-10: a body size of 0 (no limit) is rejected if a local service reads the body (%s)',
  (services) => {
    expect(faults({ service: 'http://host', endpoint: `${services}, max_body_bytes: 0` })).toEqual([
      'gateway.yaml:6: endpoints.0.max_body_bytes: 0 (no limit) is allowed only for remote services',
    ]);
  },
);

it('1-10: a binding may name only known services', () => {
  expect(read({ service: 'local', more: 'binding: [a]' }).binding).toEqual(['a']);
  expect(faults({ service: 'local', more: 'binding: [banks]' })).toEqual([
    'gateway.yaml:7: binding.0: "banks" is not under services',
  ]);
});

it('D8-05: DISCOVERS_UPSTREAM_URL and an endpoint with the path of discovers exclude each other', () => {
  const config = read({ service: 'local' });
  expect(withDiscovers(config, undefined)).toBe(config);
  const registered = withDiscovers(config, 'http://host');
  expect(registered.endpoints.at(-1)).toMatchObject({ path: '/v1/discovers/**', tokens: ['discover'] });
  expect(() => withDiscovers(registered, 'http://host')).toThrow('DISCOVERS_UPSTREAM_URL: gateway.yaml has');
});

const LOOKUP_PLACE = 'must be an http or https URL without user and query';

it.each([
  ['{url: local}', `transactions_lookup.url: ${LOOKUP_PLACE}`],
  ['{url: "http://user:secret@host"}', `transactions_lookup.url: ${LOOKUP_PLACE}`],
  ['{url: "http://["}', 'transactions_lookup.url: must be a URL'],
  ['{url: http://host, timeout_ms: 0}', 'transactions_lookup.timeout_ms: must be at least 1'],
  [
    '{url: http://host, bearer_env: "A B"}',
    'transactions_lookup.bearer_env: must be the name of an environment variable',
  ],
  ['{url: http://host, bearer: secret}', 'transactions_lookup: has the unknown member bearer'],
])('D6-20: a transaction lookup that is %s is rejected with file, line and field', (written, fault) => {
  expect(faults({ service: 'local', more: `transactions_lookup: ${written}` })).toEqual([`gateway.yaml:7: ${fault}`]);
});

it('D6-20: a transaction lookup needs only a URL, and other members take the documented defaults', () => {
  const { transactions_lookup: lookup } = read({
    service: 'local',
    more: 'transactions_lookup: {url: https://o/base/}',
  });
  expect(lookup).toEqual({ url: 'https://o/base', timeout_ms: 5_000 });
  expect(read({ service: 'local' }).transactions_lookup).toBeUndefined();
});
