import { createClient } from 'graphql-ws';
import { afterAll, describe, expect, it, vi } from 'vitest';
import { WebSocket } from 'ws';
import { recordOf, recordsOf } from '../support/audit/records.ts';
import { request, sendRaw } from '../support/gateway/raw.ts';
import { usePortcullis } from '../support/harness.ts';

const p = usePortcullis();

const HOSTILE = '?x=%7B%22'.repeat(11_000);

describe('a large request head', () => {
  const many = Object.fromEntries(Array.from({ length: 39 }, (_, n) => [`x-${n}`, 'a'.repeat(4_000)]));

  it.each([
    ['one header', '/nowhere', { Referer: HOSTILE }],
    ['many headers', '/nowhere', many],
    ['a path', `/${'a'.repeat(150_000)}`, {}],
    ['a query', `/nowhere?${'a=%22&'.repeat(25_000)}`, {}],
    ['all of them', `/${'b'.repeat(30_000)}?${'a=%22&'.repeat(5_000)}`, { Referer: HOSTILE.slice(0, 90_000) }],
    ['a path of another form', `/nowhere//${'%41'.repeat(50_000)}`, {}],
  ])('D2-24: has a record of at most 33 KiB of its 404: %s', async (shape, target, headers) => {
    const id = `large ${shape}`;
    const answer = await sendRaw(p.url, request('GET', target, { 'X-Correlation-ID': id, ...headers }));
    expect(answer.status).toBe(404);
    const record = await recordOf(p, id);
    expect(Buffer.byteLength(JSON.stringify(record.headers))).toBeLessThanOrEqual(16 * 1024);
    expect(Buffer.byteLength(JSON.stringify(record))).toBeLessThanOrEqual(33 * 1024);
  });
});

describe('the request head of many operations', () => {
  const entries = vi.spyOn(Object, 'entries');
  afterAll(() => entries.mockRestore());

  /** How often the headers of a request were gone through, which is what masking begins with. */
  function maskingsOf(id: string): number {
    return entries.mock.calls.filter(([of]) => 'x-correlation-id' in of && of['x-correlation-id'] === id).length;
  }

  it('D2-24: is masked once for a batch', async () => {
    const operations = Array.from({ length: 10 }, () => ({ query: '{ __typename }' }));
    const id = 'large-batch';
    const headers = { referer: HOSTILE, 'x-correlation-id': id };
    await p.call('POST', '/graphql', { token: await p.clientToken(), json: operations, headers });
    const records = await recordsOf(p, id);
    expect(records).toHaveLength(10);
    expect(new Set(records.map(({ headers: kept }) => JSON.stringify(kept))).size).toBe(1);
    expect(maskingsOf(id)).toBe(1);
  });

  it('D2-24: is masked once for all operations of a socket', async () => {
    const token = await p.clientToken();
    const id = 'large-socket';
    const client = createClient({
      url: p.url.replace('http', 'ws').replace(/\/*$/, '/graphql'),
      webSocketImpl: class extends WebSocket {
        constructor(url: string, protocols: string) {
          super(url, protocols, { headers: { referer: HOSTILE, 'x-correlation-id': id } });
        }
      },
      connectionParams: { authorization: `Bearer ${token}` },
      lazy: false,
    });
    for (let count = 0; count < 20; count += 1) {
      for await (const _ of client.iterate({ query: '{ __typename }' }));
    }
    await client.dispose();
    const records = await vi.waitFor(async () => {
      const found = await recordsOf(p, id);
      expect(found.filter(({ method }) => method === 'WS')).toHaveLength(20);
      return found;
    });
    expect(maskingsOf(id)).toBe(1);
    expect(records.length).toBeGreaterThanOrEqual(20);
  });
});
