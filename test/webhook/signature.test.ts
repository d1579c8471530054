import { describe, expect, it } from 'vitest';
import type { Log } from '../../src/lib/log.ts';
import { recordsOf } from '../support/audit/records.ts';
import { beforeTests } from '../support/harness/before-tests.ts';
import { scrape } from '../support/observability/scrape.ts';
import { basic, notification, PATHS, webhookFixture } from '../support/webhook/fixture.ts';
import { FOREIGN, PREVIOUS, SECRET, signatureHeaders } from '../support/webhook/signing.ts';

const NOW = Date.parse('2026-11-21T10:40:00.500Z');
const UNAUTHORIZED = { status: 401, text: '{"code":-1,"domain":0,"message":"unauthorized"}' };
const CHALLENGE = 'Basic realm="portcullis", charset="UTF-8"';
const UNSIGNED = { optional: 200, required: 401 } as const;

const lines: unknown[] = [];
const line: Log['info'] = (fields, message) => void lines.push({ ...fields, message });
const log: Log = { debug: line, info: line, warn: line, error: line };

/** What a sender might do beside signing as it should, and the answer. */
const table: [name: string, headers: (body: string) => Record<string, string>, status: number, reason?: string][] = [
  ['signed', (body) => signatureHeaders(SECRET, body, { atMs: NOW }), 200],
  ['signed by the previous secret', (body) => signatureHeaders(PREVIOUS, body, { atMs: NOW }), 200],
  ['signed by both', (body) => both(body, SECRET, PREVIOUS), 200],
  ['signed by a stranger and by us', (body) => both(body, FOREIGN, SECRET), 200],
  ['signed by a stranger', (body) => signatureHeaders(FOREIGN, body, { atMs: NOW }), 401, 'signature'],
  ['signed over other bytes', (body) => signatureHeaders(SECRET, ` ${body}`, { atMs: NOW }), 401, 'signature'],
  ['signed 301 s ago', (body) => signatureHeaders(SECRET, body, { atMs: NOW - 301_000 }), 401, 'stale'],
  ['signed 301 s ahead', (body) => signatureHeaders(SECRET, body, { atMs: NOW + 301_000 }), 401, 'future'],
  ['without its signature', (body) => without(body, 'webhook-signature'), 401, 'incomplete'],
];

function both(body: string, first: string, second: string): Record<string, string> {
  const [one, two] = [first, second].map((secret) => signatureHeaders(secret, body, { atMs: NOW }));
  return { ...one, 'webhook-signature': `${one?.['webhook-signature']} ${two?.['webhook-signature']}` };
}

function without(body: string, name: string): Record<string, string> {
  const { [name]: _left, ...others }: Record<string, string> = signatureHeaders(SECRET, body, { atMs: NOW });
  return others;
}

describe.each(['optional', 'required'] as const)('with a signing secret and WEBHOOK_SIGNATURE=%s', (mode) => {
  const fixture = beforeTests(() =>
    webhookFixture({
      env: { WEBHOOK_SIGNING_SECRET: SECRET, WEBHOOK_SIGNING_SECRET_PREVIOUS: PREVIOUS, WEBHOOK_SIGNATURE: mode },
      overrides: { nowMs: () => NOW, log },
    }),
  );

  describe.each(PATHS)('POST %s', (path) => {
    it.each(table)(
      'D6-15 4.5-05 D2-31: a request %s gets the expected status and reason',
      async (_name, headers, status, reason) => {
        const body = JSON.stringify(notification());
        const published = fixture.bus.deadlinesMs.length;
        const id = `signature-${mode}-${path}-${_name}`;
        const answer = await fixture.post(path, body, { ...headers(body), 'x-correlation-id': id });
        if (status === 401) expect(answer).toMatchObject(UNAUTHORIZED);
        if (status === 401) expect(answer.headers.get('www-authenticate')).toBe(CHALLENGE);
        expect(lines).toContainEqual(expect.objectContaining({ correlation_id: id, status, reason }));
        expect([answer.status, fixture.bus.deadlinesMs.length - published]).toEqual([status, status === 200 ? 1 : 0]);
      },
    );

    it(`D6-15 D2-31: a request without signature headers is ${UNSIGNED[mode]}, with reason incomplete if one is required`, async () => {
      const id = `unsigned-${mode}-${path}`;
      const answer = await fixture.post(path, JSON.stringify(notification()), { 'x-correlation-id': id });
      expect(answer.status).toBe(UNSIGNED[mode]);
      const reason = mode === 'required' ? 'incomplete' : undefined;
      expect(lines).toContainEqual(expect.objectContaining({ correlation_id: id, reason }));
    });

    it('D6-15: the signature is verified on the raw bytes, before they are parsed', async () => {
      const signed = (body: string | Buffer) => fixture.post(path, body, signatureHeaders(SECRET, body, { atMs: NOW }));
      expect(
        (await signed(` {"other" :\t"ü", "unknown": 1e400,${JSON.stringify(notification()).slice(1)} `)).status,
      ).toBe(200);
      for (const body of ['{', '', Buffer.from([0x7b, 0xff, 0x7d])]) {
        expect((await signed(body)).status).toBe(400);
        const wrong = signatureHeaders(FOREIGN, body, { atMs: NOW });
        expect(await fixture.post(path, body, wrong)).toMatchObject(UNAUTHORIZED);
      }
    });

    it('D6-15 4.5-03: a valid signature does not replace the credentials, and the response is the same 401', async () => {
      const body = JSON.stringify(notification());
      const signed = signatureHeaders(SECRET, body, { atMs: NOW });
      const answer = await fixture.post(path, body, { ...signed, authorization: basic('chain-processor', 'x') });
      expect(answer).toMatchObject(UNAUTHORIZED);
    });

    it('D6-15 D2-14: a body over the limit is a 400, without a check of its signature', async () => {
      const body = JSON.stringify(notification({ padding: 'x'.repeat(262_144) }));
      expect((await fixture.post(path, body, signatureHeaders(FOREIGN, body, { atMs: NOW }))).status).toBe(400);
    });
  });

  it('D2-31: the metric and the audit record have the reason', async () => {
    const before = await scrape(fixture.portcullis.service);
    const body = JSON.stringify(notification());
    const cases: [reason: string, headers: Record<string, string>][] = [
      ['password', { authorization: basic('chain-processor', 'x') }],
      ['signature', signatureHeaders(FOREIGN, body, { atMs: NOW })],
      ['stale', signatureHeaders(FOREIGN, body, { atMs: NOW - 301_000 })],
      ['future', signatureHeaders(SECRET, body, { atMs: NOW + 301_000 })],
      ['incomplete', without(body, 'webhook-id')],
    ];
    for (const [reason, headers] of cases) {
      await fixture.post(PATHS[1], body, { ...headers, 'x-correlation-id': `${mode}-${reason}` });
    }
    const after = await scrape(fixture.portcullis.service);
    for (const [reason] of cases) {
      const counts = [before, after].map((one) => one.value('portcullis_webhook_rejections_total', { reason }) ?? 0);
      expect([reason, Number(counts[1]) - Number(counts[0])]).toEqual([reason, 1]);
      const [record] = await recordsOf(fixture.portcullis, `${mode}-${reason}`);
      expect(record?.headers).toMatchObject({ ':reason': reason });
    }
  });

  it('D6-15: neither secret is in a log line, an audit record or a response', async () => {
    const body = JSON.stringify(notification());
    const signed = { ...signatureHeaders(FOREIGN, body, { atMs: NOW }), 'x-correlation-id': `looked-for-${mode}` };
    const { text } = await fixture.post(PATHS[0], body, signed);
    const records = await recordsOf(fixture.portcullis, `looked-for-${mode}`);
    expect(JSON.stringify(lines)).toContain(`looked-for-${mode}`);
    const told = JSON.stringify([text, lines, records]);
    for (const secret of [SECRET, PREVIOUS]) expect(told).not.toContain(secret.slice('whsec_'.length, -4));
  });
});

describe('without a signing secret', () => {
  it('D6-15: signature headers are ignored', async () => {
    await using fixture = await webhookFixture();
    const body = JSON.stringify(notification());
    for (const path of PATHS) {
      const answer = await fixture.post(path, body, signatureHeaders(FOREIGN, body, { atMs: 0 }));
      expect(answer.status).toBe(200);
    }
  });
});
