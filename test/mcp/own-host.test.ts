import { describe, expect, it } from 'vitest';
import { isOriginTaken, isOwnHost } from '../../src/api/mcp/mcp-server.ts';

const PUBLIC = 'https://gate.example/base';

describe('the Host of a request', () => {
  it.each([
    'gate.example',
    'GATE.example',
    'gate.example:443',
    'localhost',
    'localhost:4000',
    'LOCALHOST:1',
    '127.0.0.1',
    '127.8.9.1:4000',
    '[::1]',
    '[::1]:4000',
  ])('4.9-06: %s is accepted as the own host', (host) => {
    expect(isOwnHost(host, PUBLIC)).toBe(true);
  });

  it.each([
    undefined,
    '',
    'evil.example',
    'gate.example:8443',
    'gate.example.evil.example',
    'evil.example#gate.example',
    'gate.example@evil.example',
    'evil.example/@gate.example',
    'gate.example, evil.example',
    'gate.example evil.example',
    'localhost.evil.example',
    '127.0.0.1.evil.example',
    '0.0.0.0',
    '10.0.0.1',
    '[::ffff:10.0.0.1]',
    '[::2]:4000',
    'localhost:99999',
    'localhost\\@evil.example',
  ])('4.9-06: %j is not accepted as the own host', (host) => {
    expect(isOwnHost(host, PUBLIC)).toBe(false);
  });

  it('4.9-06: the host of a public URL with a port includes the port', () => {
    expect(isOwnHost('gate.example:8443', 'https://gate.example:8443')).toBe(true);
    expect(isOwnHost('gate.example', 'https://gate.example:8443')).toBe(false);
  });
});

it('4.9-06: an Origin is accepted if it is absent or allowed, and any is with *', () => {
  const isTaken = (origin: string | undefined) => isOriginTaken(['https://console.example'], origin);
  expect([undefined, 'https://console.example', 'https://evil.example', 'null', ''].map(isTaken)).toEqual([
    ...[true, true],
    ...[false, false, false],
  ]);
  expect(isOriginTaken(['*'], 'null')).toBe(true);
});
