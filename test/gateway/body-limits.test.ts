import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { envelope } from '../support/gateway/envelopes.ts';
import { openSocket, readAnswer } from '../support/gateway/raw.ts';
import { type Portcullis, startPortcullis } from '../support/harness.ts';
import { basic as basicText } from '../support/webhook/stand.ts';

const TOKEN_LIMIT = 64 * 1024;
const WEBHOOK_LIMIT = 256 * 1024;

let p: Portcullis;
let basic: string;
beforeAll(async () => {
  p = await startPortcullis();
  basic = basicText(p.webhook.username, p.webhook.password);
});
afterAll(() => p[Symbol.asyncDispose]());

/** Sends a head and some of the body, and no more: the answer must come by itself, and the connection must end. */
async function sendUnfinished(path: string, headers: Record<string, string>, sent: string) {
  const socket = openSocket(p.url);
  const lines = Object.entries({ Host: 'portcullis', 'Content-Type': 'application/json', ...headers });
  socket.write(`POST ${path} HTTP/1.1\r\n${lines.map(([name, value]) => `${name}: ${value}\r\n`).join('')}\r\n${sent}`);
  return readAnswer(socket);
}

function chunk(bytes: number): string {
  return `${bytes.toString(16)}\r\n${' '.repeat(bytes)}\r\n`;
}

describe('a body over its limit', () => {
  it('D2-02: at the token endpoint it is refused by its announced length, before a byte, and the connection ends', async () => {
    for (const length of [TOKEN_LIMIT + 1, 2 * 1024 * 1024, Number.MAX_SAFE_INTEGER]) {
      const answer = await sendUnfinished('/v2/oauth/token', { 'Content-Length': String(length) }, '');
      expect(answer.status).toBe(400);
      expect(answer.body).toBe(envelope('invalid_request'));
      expect(answer.headers.connection).toBe('close');
    }
  });

  it('D2-02: in chunks it is refused the moment it passes the limit, without waiting for its end', async () => {
    const headers = { 'Transfer-Encoding': 'chunked' };
    const token = await sendUnfinished('/v2/oauth/token', headers, chunk(TOKEN_LIMIT) + chunk(1));
    expect([token.status, token.body]).toEqual([400, envelope('invalid_request')]);
    const webhook = await sendUnfinished(
      '/v2/webhooks/custodial',
      { ...headers, Authorization: basic },
      chunk(WEBHOOK_LIMIT) + chunk(1),
    );
    expect(webhook.status).toBe(400);
    expect(JSON.parse(webhook.body).errors).toEqual([{ path: '', message: 'must be at most 262144 bytes' }]);
  });

  it('D2-02: a sender that goes on sending still gets its answer', async () => {
    const body = Buffer.alloc(4 * 1024 * 1024, ' ');
    for (let attempt = 0; attempt < 5; attempt += 1) {
      const answer = await p.call('POST', '/v2/oauth/token', { body, headers: { 'content-type': 'application/json' } });
      expect(answer.status).toBe(400);
    }
  });
});

describe('a body that is not needed', () => {
  it.each([
    [401, '/v1/wallets/x/rules', {}],
    [404, '/nowhere', {}],
    [401, '/v2/webhooks', { Authorization: 'Basic eDp5' }],
  ])('D2-02: a %i for %s does not wait for it', async (status, path, headers) => {
    const answer = await sendUnfinished(path, { ...headers, 'Content-Length': '1000' }, '{');
    expect(answer.status).toBe(status);
  });
});
