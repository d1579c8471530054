import { Webhook as StandardWebhook } from 'standardwebhooks';
import { Webhook as SvixWebhook } from 'svix';
import { describe, expect, it } from 'vitest';
import { beforeTests } from '../support/harness/before-tests.ts';
import { notification, PATHS, webhookFixture } from '../support/webhook/fixture.ts';
import { FOREIGN, PREVIOUS, SECRET, signatureHeaders } from '../support/webhook/signing.ts';

const LIBRARIES = [
  ['standardwebhooks', (secret: string) => new StandardWebhook(secret)],
  ['svix', (secret: string) => new SvixWebhook(secret)],
] as const;

const fixture = beforeTests(() =>
  webhookFixture({
    env: { WEBHOOK_SIGNING_SECRET: SECRET, WEBHOOK_SIGNING_SECRET_PREVIOUS: PREVIOUS, WEBHOOK_SIGNATURE: 'required' },
  }),
);

describe.each(LIBRARIES)('a webhook signed with the library %s', (_name, webhook) => {
  const body = JSON.stringify(notification({ error: 'ünïcode 𝄞', transaction_hash: '0xabc' }));

  function headers(secret: string, at = new Date()): Record<string, string> {
    const id = 'msg_27UH4WbU6Z5A5EzD8u03UvzRbpk';
    const timestamp = String(Math.floor(at.getTime() / 1_000));
    return {
      'webhook-id': id,
      'webhook-timestamp': timestamp,
      'webhook-signature': webhook(secret).sign(id, at, body),
    };
  }

  it.each(PATHS)(
    'D6-15: is accepted at %s with the current and the previous secret, and rejected otherwise',
    async (path) => {
      expect((await fixture.post(path, body, headers(SECRET))).status).toBe(200);
      expect((await fixture.post(path, body, headers(PREVIOUS))).status).toBe(200);
      expect((await fixture.post(path, body, headers(FOREIGN))).status).toBe(401);
      expect((await fixture.post(path, body, headers(SECRET, new Date(Date.now() - 310_000)))).status).toBe(401);
      expect((await fixture.post(path, `${body} `, headers(SECRET))).status).toBe(401);
    },
  );

  it('D6-15: a signature made by these tests is verified by the library', () => {
    const signed = signatureHeaders(SECRET, body, { atMs: Date.now() });
    expect(() => webhook(SECRET).verify(body, signed)).not.toThrow();
    expect(() => webhook(FOREIGN).verify(body, signed)).toThrow();
  });
});
