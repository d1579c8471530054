import { once } from 'node:events';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { type Portcullis, startPortcullis } from '../support/harness.ts';
import { addClient } from '../support/oauth/clients.ts';

let portcullis: Portcullis;

beforeAll(async () => {
  portcullis = await startPortcullis();
});

afterAll(() => portcullis[Symbol.asyncDispose]());

/** How a socket ends, or the first message that it gets. */
async function answerTo(token: string, headers: Record<string, string> = {}): Promise<unknown> {
  const url = `${portcullis.url.replace('http', 'ws')}/graphql`;
  const socket = new WebSocket(url, 'graphql-transport-ws', { headers });
  await once(socket, 'open');
  socket.send(JSON.stringify({ type: 'connection_init', payload: { authorization: `Bearer ${token}` } }));
  const message = once(socket, 'message').then(([data]) => JSON.parse(String(data)).type);
  const closed = once(socket, 'close').then(([code]) => code);
  const answer = await Promise.race([message, closed]);
  socket.terminate();
  return answer;
}

describe('the first message of a socket', () => {
  it('D2-16: is answered with 4403 where the address of the client is not allowed', async () => {
    const guarded = await addClient(portcullis, { allowed_ips: ['127.0.0.1'] });
    const token = await portcullis.clientToken(guarded);
    expect(await answerTo(token)).toBe('connection_ack');
    expect(await answerTo(token, { 'X-Forwarded-For': '203.0.113.9' })).toBe(4403);
    expect(await answerTo(token, { 'X-Forwarded-For': '127.0.0.1, unknown', 'X-Real-IP': '127.0.0.1' })).toBe(4403);
  });

  it('D2-16: is answered with 4403 where the client must show a certificate and shows none', async () => {
    const guarded = await addClient(portcullis, { require_certificate: true, cert_fingerprint: 'AA:BB' });
    const headers = { 'ssl-client-fingerprint': 'aabb' };
    const grant = { grant_type: 'client_credentials', ...guarded };
    const issued = await portcullis.call('POST', '/v2/oauth/token', { json: grant, headers });
    expect(await answerTo(issued.json.access_token, headers)).toBe('connection_ack');
    expect(await answerTo(issued.json.access_token)).toBe(4403);
  });

  it('D2-16: is answered with 4401 without a good token', async () => {
    expect(await answerTo('not.a.token')).toBe(4401);
  });
});
