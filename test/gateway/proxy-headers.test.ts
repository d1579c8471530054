import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { compileTrust, enter } from '../../src/gateway/door.ts';
import { Exchange } from '../../src/gateway/exchange.ts';
import { type Portcullis, startPortcullis } from '../harness.ts';
import { addClient } from '../oauth/clients.ts';

interface Said {
  forwarded?: string;
  real?: string;
}

/** The client's address that the gateway finds where `peer` says these headers. */
function addressOf(peer: string, { forwarded, real }: Said): string {
  const socket = new Socket();
  Object.defineProperty(socket, 'remoteAddress', { value: peer });
  const req = new IncomingMessage(socket);
  if (forwarded !== undefined) req.headers['x-forwarded-for'] = forwarded;
  if (real !== undefined) req.headers['x-real-ip'] = real;
  const exchange = new Exchange(req, new ServerResponse(req));
  enter(exchange, compileTrust(['loopback', '10.0.0.0/8', '2001:db8::/32']));
  return exchange.realIp;
}

const addresses: [string, string, Said, string][] = [
  ['nothing said', '127.0.0.1', {}, '127.0.0.1'],
  ['one client', '127.0.0.1', { forwarded: '198.51.100.7' }, '198.51.100.7'],
  ['the rightmost that is no proxy', '127.0.0.1', { forwarded: '203.0.113.1, 198.51.100.7, 10.1.2.3' }, '198.51.100.7'],
  [
    'what a client wrote to the left is not believed',
    '10.9.9.9',
    { forwarded: '1.1.1.1, 198.51.100.7' },
    '198.51.100.7',
  ],
  [
    'proxies alone, then X-Real-IP',
    '127.0.0.1',
    { forwarded: '10.0.0.1, 10.0.0.2', real: '198.51.100.9' },
    '198.51.100.9',
  ],
  ['proxies alone, then the peer', '127.0.0.1', { forwarded: '10.0.0.1' }, '127.0.0.1'],
  [
    'X-Forwarded-For goes before X-Real-IP',
    '127.0.0.1',
    { forwarded: '198.51.100.7', real: '198.51.100.9' },
    '198.51.100.7',
  ],
  ['X-Real-IP alone', '127.0.0.1', { real: ' 198.51.100.9 ' }, '198.51.100.9'],
  ['no address at all', '127.0.0.1', { forwarded: 'unknown', real: 'nobody' }, '127.0.0.1'],
  ['what stands left of no address is not believed', '127.0.0.1', { forwarded: '1.1.1.1, _hidden' }, '127.0.0.1'],
  ['empty headers', '127.0.0.1', { forwarded: '', real: '' }, '127.0.0.1'],
  ['an IPv6 client', '::1', { forwarded: '2001:4860::8888, 2001:db8::1' }, '2001:4860::8888'],
  ['an IPv4 client in IPv6 clothes', '127.0.0.1', { forwarded: '::ffff:198.51.100.7' }, '198.51.100.7'],
  ['an IPv4 proxy in IPv6 clothes', '::ffff:127.0.0.1', { forwarded: '198.51.100.7, ::FFFF:10.0.0.1' }, '198.51.100.7'],
  ['a peer that is no proxy', '203.0.113.5', { forwarded: '1.1.1.1', real: '2.2.2.2' }, '203.0.113.5'],
];

describe("the client's address", () => {
  it.each(addresses)('D1-09: %s', (_name, peer, said, address) => {
    expect(addressOf(peer, said)).toBe(address);
  });
});

let p: Portcullis;
beforeAll(async () => {
  p = await startPortcullis({ env: { TRUST_PROXY: '192.0.2.1' } });
});
afterAll(() => p[Symbol.asyncDispose]());

async function statusFor(client: object, headers: Record<string, string>): Promise<[number, string]> {
  const json = { grant_type: 'client_credentials', ...client };
  const answer = await p.call('POST', '/v2/oauth/token', { json, headers });
  return [answer.status, answer.json.message];
}

describe('a peer that is not in TRUST_PROXY', () => {
  it('D1-05: cannot bring a certificate', async () => {
    const client = await addClient(p, { require_certificate: true, cert_fingerprint: 'ab:cd' });
    expect(await statusFor(client, { 'ssl-client-fingerprint': 'ab:cd' })).toEqual([403, 'mtls_required']);
  });

  it.each(['x-forwarded-for', 'x-real-ip', 'forwarded'])('D1-05: cannot name another address by %s', async (name) => {
    const spoofed = name === 'forwarded' ? 'for=198.51.100.7' : '198.51.100.7';
    const theirs = await addClient(p, { allowed_ips: ['198.51.100.7'] });
    const own = await addClient(p, { allowed_ips: ['127.0.0.1'] });
    expect(await statusFor(theirs, { [name]: spoofed })).toEqual([403, 'ip_not_allowed']);
    expect((await statusFor(own, { [name]: spoofed }))[0]).toBe(200);
  });
});
