import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Exchange } from '../../src/gateway/exchange/exchange.ts';
import { compileTrust, settleClientAddress } from '../../src/gateway/exchange/request-head.ts';
import { recordOf } from '../support/audit/records.ts';
import { type Portcullis, startPortcullis } from '../support/harness.ts';
import { addClient } from '../support/oauth/clients.ts';

interface Said {
  forwarded?: string;
  /** `Forwarded` of RFC 7239. */
  standard?: string;
  real?: string;
}

/** What the gateway finds where `peer` says these headers: the client's address, and the one that is recorded. */
function addressesOf(
  peer: string,
  { forwarded, standard, real }: Said,
  trusts = compileTrust(['loopback', '10.0.0.0/8', '2001:db8::/32']),
): [client: string | undefined, real: string] {
  const socket = new Socket();
  Object.defineProperty(socket, 'remoteAddress', { value: peer });
  const req = new IncomingMessage(socket);
  if (forwarded !== undefined) req.headers['x-forwarded-for'] = forwarded;
  if (standard !== undefined) req.headers.forwarded = standard;
  if (real !== undefined) req.headers['x-real-ip'] = real;
  const exchange = new Exchange(req, new ServerResponse(req));
  settleClientAddress(exchange, trusts);
  return [exchange.clientAddress, exchange.realIp];
}

const CLIENT = '198.51.100.7';
const addresses: [what: string, peer: string, said: Said, client: string][] = [
  ['no header', '127.0.0.1', {}, '127.0.0.1'],
  ['one client', '127.0.0.1', { forwarded: CLIENT }, CLIENT],
  ['the rightmost address that is not a proxy', '127.0.0.1', { forwarded: `203.0.113.1, ${CLIENT}, 10.1.2.3` }, CLIENT],
  [
    'addresses that a client wrote to the left are not trusted',
    '10.9.9.9',
    { forwarded: `1.1.1.1, ${CLIENT}` },
    CLIENT,
  ],
  [
    'entries to the left that are not addresses are not trusted',
    '10.9.9.9',
    { forwarded: `unknown, ,${CLIENT}` },
    CLIENT,
  ],
  ['only proxies: the peer', '127.0.0.1', { forwarded: '10.0.0.1, 10.0.0.2' }, '127.0.0.1'],
  [
    'X-Real-IP is ignored if X-Forwarded-For is present',
    '127.0.0.1',
    { forwarded: '10.0.0.1', real: CLIENT },
    '127.0.0.1',
  ],
  ['X-Forwarded-For takes precedence over X-Real-IP', '127.0.0.1', { forwarded: CLIENT, real: '198.51.100.9' }, CLIENT],
  ['only X-Real-IP', '127.0.0.1', { real: ` ${CLIENT} ` }, CLIENT],
  ['X-Real-IP with a port', '127.0.0.1', { real: `${CLIENT}:443` }, CLIENT],
  ['a port', '127.0.0.1', { forwarded: `1.1.1.1:1, ${CLIENT}:65535` }, CLIENT],
  ['a proxy with a port', '127.0.0.1', { forwarded: `${CLIENT}, 10.0.0.1:80` }, CLIENT],
  ['an IPv6 client', '::1', { forwarded: '2001:4860::8888, 2001:db8::1' }, '2001:4860::8888'],
  ['brackets', '::1', { forwarded: '[2001:4860::8888], [2001:db8::1]' }, '2001:4860::8888'],
  ['brackets and a port', '::1', { forwarded: '1.1.1.1, [2001:4860::8888]:443, [2001:db8::1]:80' }, '2001:4860::8888'],
  ['groups that look like ports', '::1', { forwarded: '2001:4860::8888:443' }, '2001:4860::8888:443'],
  ['a zone', '127.0.0.1', { forwarded: 'fe80::1%eth0' }, 'fe80::1'],
  ['a zone between brackets', '127.0.0.1', { forwarded: '[fe80::1%25eth0]:80' }, 'fe80::1'],
  ['an IPv4-mapped client', '127.0.0.1', { forwarded: `::ffff:${CLIENT}` }, CLIENT],
  ['the same in hexadecimal', '127.0.0.1', { forwarded: '[::ffff:c633:6407]:1' }, CLIENT],
  ['an IPv4-mapped proxy', '::ffff:127.0.0.1', { forwarded: `${CLIENT}, ::FFFF:10.0.0.1, ::ffff:a00:1` }, CLIENT],
  ['blanks and tabs', '127.0.0.1', { forwarded: `1.1.1.1 ,\t${CLIENT}\t ,10.0.0.1 ` }, CLIENT],
  ['an empty entry at the end', '127.0.0.1', { forwarded: `${CLIENT},` }, CLIENT],
  ['empty entries all around', '127.0.0.1', { forwarded: ` , ,1.1.1.1,,${CLIENT}\t,\t, 10.0.0.1,, ` }, CLIENT],
  ['an empty entry between proxies', '127.0.0.1', { forwarded: '10.0.0.1,,10.0.0.2,' }, '127.0.0.1'],
  ['only empty entries: X-Real-IP', '127.0.0.1', { forwarded: ' , ', real: CLIENT }, CLIENT],
  ['an empty X-Forwarded-For: Forwarded', '127.0.0.1', { forwarded: '', standard: `for=${CLIENT}` }, CLIENT],
  ['only empty entries: the peer', '127.0.0.1', { forwarded: ',,', standard: ',' }, '127.0.0.1'],
  ['a peer that is not a proxy', '203.0.113.5', { forwarded: '1.1.1.1', real: '2.2.2.2' }, '203.0.113.5'],
  ['a peer that is not a proxy and sends no address', '203.0.113.5', { forwarded: 'unknown' }, '203.0.113.5'],
];

/** Values of `Forwarded`, without `X-Forwarded-For`, and the address that each names. */
const STANDARD: [what: string, standard: string, client: string][] = [
  ['an address', `for=${CLIENT}`, CLIENT],
  ['a quoted address', `for="${CLIENT}"`, CLIENT],
  ['an address with a port', `for="${CLIENT}:47011"`, CLIENT],
  ['an address with a port and no quotes, as some programs send it', `for=${CLIENT}:47011`, CLIENT],
  ['an IPv6 address', 'for="[2001:4860::17]"', '2001:4860::17'],
  ['an IPv6 address with a port', 'For="[2001:4860::17]:4711"', '2001:4860::17'],
  ['an IPv6 address without quotes', 'for=[2001:4860::17]', '2001:4860::17'],
  ['an IPv6 address without brackets', 'for="2001:4860::17"', '2001:4860::17'],
  ['an IPv4-mapped address', `for="[::ffff:${CLIENT}]"`, CLIENT],
  ['an obfuscated port', `for="${CLIENT}"`, CLIENT],
  ['all parameters', `for=${CLIENT};proto=https;host=api.example;by=203.0.113.43`, CLIENT],
  ['parameters in another order and case', `BY=203.0.113.43;Proto=https;FOR=${CLIENT}`, CLIENT],
  ['blanks after semicolons', `proto=https ; for=${CLIENT} ; by=10.0.0.1`, CLIENT],
  ['a semicolon at the end', `for=${CLIENT};`, CLIENT],
  ['unknown parameters', `secret=_x;for=${CLIENT};ext="a b"`, CLIENT],
  ['an escaped quote in another parameter', `host="a\\"b";for=${CLIENT}`, CLIENT],
  ['an escaped character', 'for="198.51.100.\\7"', CLIENT],
  ['a comma in quotes', `for=${CLIENT};host="a, for=9.9.9.9"`, CLIENT],
  ['a semicolon in quotes', `host="a;for=9.9.9.9";for=${CLIENT}`, CLIENT],
  ['the rightmost address that is not a proxy', `for=1.1.1.1, for=${CLIENT};by=10.0.0.1, for="10.1.2.3:80"`, CLIENT],
  ['entries to the left of it are ignored', `for=", for=unknown, for=_x, for=${CLIENT}`, CLIENT],
  ['empty elements', `, ,for=${CLIENT},`, CLIENT],
  ['only proxies: the peer', 'for=10.0.0.1, for="[2001:db8::1]"', '127.0.0.1'],
];

/** Values of `Forwarded` of which the rightmost element that counts names no address. */
const NO_NODE = [
  ...['for=unknown', 'for=_hidden', 'for="_hidden:_port"', 'for="unknown:80"', 'for=', 'for=""', 'for', 'proto=https'],
  ...[`for=${CLIENT};for=1.1.1.1`, `for =${CLIENT}`, `for= ${CLIENT}`, `for="${CLIENT}`, `for=${CLIENT}"`, CLIENT],
  ...[`for='${CLIENT}'`, `for="${CLIENT}" x`, `for=${CLIENT} x=y`, `x for=${CLIENT}`, `=${CLIENT}`, `;;for=${CLIENT}`],
  ...['for="[2001:4860::17"', 'for="2001:4860::17]"', 'for=[198.51.100.7]', 'for=198.51.100', 'for=198.51.100.7/32'],
];

/** What is met where the client's address should stand. */
const NO_ADDRESS = [
  '198.51.100.7 198.51.100.8',
  ...'unknown _hidden "198.51.100.7" 198.51.100.7: 198.51.100.7:http :80 198.51.100 198.51.100.07 0xc6.51.100.7'.split(
    ' ',
  ),
  ...'198.51.100.7/32 [198.51.100.7]:80 [198.51.100.7 2001:4860::8888] []:80 [[::2]] [::2]x fe80::1% unix:'.split(' '),
  ...'for=198.51.100.7 198.51.100.7:80:80 １.1.1.1'.split(' '),
];

describe("the client's address", () => {
  it.each(addresses)('D1-09 D2-23: %s', (_name, peer, said, address) => {
    expect(addressesOf(peer, said)).toEqual([address, address]);
  });

  it.each(NO_ADDRESS)('D2-23: is unknown if %j is in its position, whatever precedes it or is in X-Real-IP', (met) => {
    const shapes = [met, `1.1.1.1, ${met}`, `1.1.1.1,${met}, 10.0.0.1`, `${met},127.0.0.1:80 , [2001:db8::1]:1`];
    for (const forwarded of shapes)
      expect([forwarded, addressesOf('127.0.0.1', { forwarded, real: '1.1.1.1' })]).toEqual([
        forwarded,
        [undefined, '127.0.0.1'],
      ]);
    expect(addressesOf('127.0.0.1', { real: met })).toEqual([undefined, '127.0.0.1']);
  });

  it.each(STANDARD)(
    'D1-09 D2-23: is read from Forwarded if X-Forwarded-For is absent: %s',
    (_what, standard, client) => {
      expect(addressesOf('127.0.0.1', { standard })).toEqual([client, client]);
      expect(addressesOf('127.0.0.1', { standard, real: '9.9.9.9' })).toEqual([client, client]);
      expect(addressesOf('127.0.0.1', { standard, forwarded: '9.9.9.9' })).toEqual(['9.9.9.9', '9.9.9.9']);
      expect(addressesOf('203.0.113.5', { standard })).toEqual(['203.0.113.5', '203.0.113.5']);
    },
  );

  it.each(NO_NODE)('D1-09 D2-23: is unknown if the Forwarded element %j is in its position', (element) => {
    for (const standard of [element, `for=1.1.1.1, ${element}`, `${element},for=10.0.0.1`])
      expect([standard, addressesOf('127.0.0.1', { standard, real: '1.1.1.1' })]).toEqual([
        standard,
        [undefined, '127.0.0.1'],
      ]);
  });

  it('D2-24: is found in Forwarded in linear time', () => {
    const LONG = ['"', '\\"', 'for=', ';', ',', 'a=b;', 'for="\\', ' ', 'a="";'];
    for (const part of LONG) {
      const startedTick = performance.now();
      addressesOf('127.0.0.1', { standard: part.repeat(Math.ceil(150_000 / part.length)) });
      // A quadratic search takes minutes.
      expect([part, performance.now() - startedTick < 2_000]).toEqual([part, true]);
    }
  });

  it('D2-24: is looked for in the last 32 entries, and is unknown beyond them', () => {
    const asked: string[] = [];
    const trusts = (address: string) => asked.push(address) > 0 && address !== CLIENT;
    const proxies = (count: number) =>
      Array.from({ length: count }, (_, at) => `, 10.0.${at >> 8}.${at & 255}`).join('');
    const found = (forwarded: string) => {
      asked.length = 0;
      return [addressesOf('127.0.0.1', { forwarded }, trusts), asked.length];
    };
    expect(found(CLIENT + proxies(31))).toEqual([[CLIENT, CLIENT], 33]);
    expect(found(CLIENT + proxies(32))).toEqual([[undefined, '127.0.0.1'], 33]);
    expect(found(CLIENT + proxies(12_000))).toEqual([[undefined, '127.0.0.1'], 33]);
    expect(found(proxies(31).slice(2))).toEqual([['127.0.0.1', '127.0.0.1'], 32]);
    expect(found(`${CLIENT}${','.repeat(31)}`)).toEqual([[CLIENT, CLIENT], 2]);
    expect(found(`${CLIENT}${','.repeat(150_000)}`)).toEqual([[undefined, '127.0.0.1'], 1]);
    expect(found(','.repeat(150_000))).toEqual([['127.0.0.1', '127.0.0.1'], 1]);
    expect(found(proxies(1))).toEqual([['127.0.0.1', '127.0.0.1'], 2]);
  });
});

let p: Portcullis;
/** Behind a proxy on this machine. */
let behind: Portcullis;
beforeAll(async () => {
  p = await startPortcullis({ env: { TRUST_PROXY: '192.0.2.1' } });
  behind = await startPortcullis();
});
afterAll(async () => {
  await p[Symbol.asyncDispose]();
  await behind[Symbol.asyncDispose]();
});

async function statusFor(client: object, headers: Record<string, string>): Promise<[number, string]> {
  const json = { grant_type: 'client_credentials', ...client };
  const answer = await p.call('POST', '/v2/oauth/token', { json, headers });
  return [answer.status, answer.json.message];
}

describe('a peer that is not in TRUST_PROXY', () => {
  it('D1-05: cannot send a certificate', async () => {
    const client = await addClient(p, { require_certificate: true, cert_fingerprint: 'ab:cd' });
    expect(await statusFor(client, { 'ssl-client-fingerprint': 'ab:cd' })).toEqual([403, 'mtls_required']);
  });

  it('D2-23: cannot send a certificate by a similar header name through a trusted proxy', async () => {
    const client = await addClient(behind, { require_certificate: true, cert_fingerprint: 'ab:cd' });
    const json = { grant_type: 'client_credentials', ...client };
    for (const name of ['ssl_client_fingerprint', 'ssl-client_fingerprint', 'ssl-client-fingerprint-1']) {
      const answer = await behind.call('POST', '/v2/oauth/token', { json, headers: { [name]: 'ab:cd' } });
      expect([name, answer.status, answer.json.message]).toEqual([name, 403, 'mtls_required']);
    }
  });

  it.each(['x-forwarded-for', 'x-real-ip', 'forwarded'])(
    'D1-05: cannot claim another address with %s',
    async (name) => {
      const spoofed = name === 'forwarded' ? 'for=198.51.100.7' : '198.51.100.7';
      const theirs = await addClient(p, { allowed_ips: ['198.51.100.7'] });
      const own = await addClient(p, { allowed_ips: ['127.0.0.1'] });
      expect(await statusFor(theirs, { [name]: spoofed })).toEqual([403, 'ip_not_allowed']);
      expect((await statusFor(own, { [name]: spoofed }))[0]).toBe(200);
    },
  );
});

describe('a trusted proxy that sends no client address', () => {
  const said = { 'X-Forwarded-For': '127.0.0.1, unknown', 'X-Real-IP': '127.0.0.1' };

  it('D2-23 D1-09: makes a client with allowed_ips be rejected everywhere, and others be served', async () => {
    const limited = await addClient(behind, { allowed_ips: ['127.0.0.1', '0.0.0.0/0', '::/0'] });
    const token = await behind.clientToken(limited);
    const call = (method: string, path: string, bearer: string, json?: unknown) =>
      behind.call(method, path, { token: bearer, headers: said, ...(json === undefined ? {} : { json }) });
    const ping = { jsonrpc: '2.0', id: 1, method: 'ping' };
    const refusals = [
      await call('POST', '/v2/oauth/token', '', { grant_type: 'client_credentials', ...limited }),
      await call('GET', '/v1/accounts', token),
      await call('POST', '/graphql', token, { query: '{ me { subject } }' }),
      await call('POST', '/v2/mcp', limited.client_secret, ping),
    ];
    expect(refusals.map(({ status, json }) => [status, json.message])).toEqual(Array(4).fill([403, 'ip_not_allowed']));
    const free = await behind.clientToken();
    expect((await call('GET', '/v1/accounts', free)).status).toBe(200);
  });

  it('D2-23: is recorded with its own address, for which wrong secrets count too', async () => {
    const headers = { ...said, 'X-Correlation-ID': 'no-address' };
    const json = { grant_type: 'client_credentials', client_id: behind.demo.client.client_id, client_secret: 'wrong' };
    const answer = await behind.call('POST', '/v2/oauth/token', { json, headers });
    expect(answer.status).toBe(401);
    expect(await recordOf(behind, 'no-address')).toMatchObject({ remote_address: '127.0.0.1', real_ip: '127.0.0.1' });
  });
});
