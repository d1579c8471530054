import { Webhook as StandardWebhook } from 'standardwebhooks';
import { Webhook as SvixWebhook } from 'svix';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { Portcullis as Client, sign, verify } from '../../client/src/index.ts';
import { startPortcullis } from '../support/harness.ts';
import { registered } from '../support/realtime/live.ts';
import { FOREIGN, PREVIOUS, SECRET, signatureHeaders } from '../support/webhook/signing.ts';

const BODY = '{"error": "ünïcode 𝄞"}';
const LIBRARIES = [
  ['standardwebhooks', (secret: string) => new StandardWebhook(secret)],
  ['svix', (secret: string) => new SvixWebhook(secret)],
] as const;

afterEach(() => {
  vi.useRealTimers();
});

describe('signatures of the client package', () => {
  it.each(LIBRARIES)('D6-15: signatures verify both ways between the client and %s', async (_, webhook) => {
    const signed = await sign(BODY, SECRET);
    expect(() => webhook(SECRET).verify(BODY, signed)).not.toThrow();
    expect(() => webhook(FOREIGN).verify(BODY, signed)).toThrow();
    const at = new Date();
    const headers = {
      'Webhook-Id': 'msg_1',
      'Webhook-Timestamp': String(Math.floor(at.getTime() / 1000)),
      'Webhook-Signature': webhook(SECRET).sign('msg_1', at, BODY),
    };
    expect(await verify(BODY, headers, SECRET)).toBe(true);
    expect(await verify(Buffer.from(BODY), new Headers(headers), [FOREIGN, SECRET])).toBe(true);
    expect(await verify(BODY, headers, FOREIGN)).toBe(false);
    expect(await verify(`${BODY} `, headers, SECRET)).toBe(false);
  });

  it('D6-15: a message with several signatures is valid if one is by the current or previous secret', async () => {
    const [one, other] = [SECRET, FOREIGN].map((secret) => signatureHeaders(secret, BODY, { atMs: Date.now() }));
    const [signature = '', foreign = ''] = [one?.['webhook-signature'], other?.['webhook-signature']];
    const isValid = (text: string) => verify(BODY, { ...one, 'webhook-signature': text }, [SECRET, PREVIOUS]);
    const valid = [`${foreign} ${signature}`, `v1a,eHl6 ${signature} v1,`, ` ${signature}`];
    expect(await Promise.all(valid.map(isValid))).toEqual([true, true, true]);
    const invalid = [
      '',
      'v1,',
      foreign,
      signature.replace('v1', 'v2'),
      `${signature}=`,
      signature.slice(0, -4),
      `v1,é`,
    ];
    expect(await Promise.all(invalid.map(isValid))).toEqual(invalid.map(() => false));
    const rotated = signatureHeaders(PREVIOUS, BODY, { atMs: Date.now() });
    expect(await verify(BODY, rotated, [SECRET, PREVIOUS])).toBe(true);
  });

  it.each([
    [-300, true],
    [300, true],
    [-301, false],
    [301, false],
  ])('D6-15: a timestamp %d s off is valid: %s', async (seconds, isValid) => {
    vi.useFakeTimers({ toFake: ['Date'] });
    const headers = signatureHeaders(SECRET, BODY, { atMs: Date.now() + seconds * 1000 });
    expect(await verify(BODY, headers, SECRET)).toBe(isValid);
  });

  it.each(['webhook-id', 'webhook-timestamp', 'webhook-signature'])(
    'D6-15: %s is required exactly once',
    async (name) => {
      const headers = signatureHeaders(SECRET, BODY, { atMs: Date.now() });
      for (const value of [undefined, '', ['a', 'b'], '1.5']) {
        expect(await verify(BODY, { ...headers, [name]: value }, SECRET)).toBe(false);
      }
    },
  );

  it.each(['', 'whsec_', 'whsec_$', 'whsec_YQ', 'sk_live_abc'])('%j is not a valid secret', async (secret) => {
    await expect(sign(BODY, secret)).rejects.toThrow('must be whsec_ and bytes in base64');
    await expect(verify(BODY, {}, secret)).rejects.toThrow('must be whsec_ and bytes in base64');
  });
});

describe('notifyTransaction', () => {
  it('D6-15: signs each attempt again with the same id, for a gateway that requires signatures', async () => {
    await using p = await startPortcullis({ env: { WEBHOOK_SIGNING_SECRET: SECRET, WEBHOOK_SIGNATURE: 'required' } });
    const sent: Headers[] = [];
    const client = new Client({
      baseUrl: p.url,
      token: () => p.clientToken(),
      fetch: async (input, init) => {
        if (String(input).endsWith('/custodial') && sent.push(new Headers(init?.headers)) === 1) {
          vi.setSystemTime(Date.now() - 301_000);
          throw new TypeError('fetch failed');
        }
        return fetch(input, init);
      },
    });
    const [id = ''] = await registered(p, 1);
    const at = new Date().toISOString();
    const notification = { id, type: 1, status: 3 as const, created_at: at, updated_at: at, error: 'ünïcode 𝄞' };
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 301_000 });
    await client.notifyTransaction(notification, { ...p.webhook, signingSecret: SECRET });
    vi.useRealTimers();
    expect(await client.waitFor(id)).toMatchObject({ status: 'DONE', error: 'ünïcode 𝄞' });
    const of = (name: string) => new Set(sent.map((headers) => headers.get(name)));
    expect([of('webhook-id').size, of('webhook-timestamp').size, of('webhook-signature').size]).toEqual([1, 2, 2]);
    await expect(client.notifyTransaction(notification, p.webhook)).rejects.toMatchObject({ status: 401 });
    const foreign = client.notifyTransaction(notification, { ...p.webhook, signingSecret: FOREIGN });
    await expect(foreign).rejects.toMatchObject({ status: 401, mayHaveBeenApplied: false });
    const none = client.notifyTransaction(notification, { ...p.webhook, signingSecret: 'secret' });
    await expect(none).rejects.toThrow('must be whsec_ and bytes in base64');
  });
});
