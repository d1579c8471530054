import { randomUUID } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { beforeTests } from '../support/harness/before-tests.ts';
import { basic, notification, PATHS, PREVIOUS_PASSWORD, webhookFixture } from '../support/webhook/fixture.ts';

const UUID_V7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
const LIMIT = 262_144;

const fixture = beforeTests(() => webhookFixture());

/** A body of exactly so many bytes. */
function bodyOf(bytes: number): string {
  const body = JSON.stringify(notification({ padding: '' }));
  return body.replace('"padding":""', `"padding":"${'x'.repeat(bytes - body.length)}"`);
}

describe.each(PATHS)('POST %s', (path) => {
  it('4.5-01 4.5-05 7.3-01: returns 200 with an empty body once both topics have the message', async () => {
    const body = JSON.stringify(notification());
    const answer = await fixture.post(path, body);
    expect({ status: answer.status, text: answer.text, length: answer.headers.get('content-length') }).toEqual({
      status: 200,
      text: '',
      length: '0',
    });
    for (const topic of [fixture.admin, fixture.user]) await expect.poll(() => topic.texts).toContain(body);
  });

  it('6-01 D6-16 2.7-08: publishes the unchanged bytes to both topics, with the same five headers', async () => {
    const id = randomUUID();
    const head = `  {"id" : "${id}", "type":1.0,"status":2, "created_at":"2026-11-21T10:30:00Z",`;
    const body = Buffer.from(
      `${head}\n"updated_at":"2026-11-21 10:30:00,5+0100","unknown":{"a":"\\u0000","b":1e400,"a":[]}}\t`,
    );
    const startedAt = Date.now();
    const answer = await fixture.post(path, body, { 'x-correlation-id': 'corr-1' });
    expect(answer.status).toBe(200);
    const found = [];
    for (const topic of [fixture.admin, fixture.user]) {
      await expect.poll(() => topic.keys).toContain(id);
      found.push(topic.messages.find(({ key }) => key === id));
    }
    for (const message of found) {
      expect(message?.value?.equals(body)).toBe(true);
      expect(message?.headers).toEqual({
        'event-id': expect.stringMatching(UUID_V7),
        'event-type': 'transaction.notification',
        'schema-version': '1',
        'correlation-id': 'corr-1',
        'received-at': expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
      });
      expect(Date.parse(message?.headers['received-at'] ?? '')).toBeGreaterThanOrEqual(startedAt);
    }
    expect(found[0]?.headers).toEqual(found[1]?.headers);
  });

  it('4.5-04: accepts a repeat with 200, and publishes it as another event', async () => {
    const told = notification();
    const before = fixture.admin.messages.length;
    for (let time = 0; time < 2; time += 1) expect((await fixture.post(path, JSON.stringify(told))).status).toBe(200);
    await fixture.admin.count(before + 2);
    const ids = fixture.admin.messages.filter(({ key }) => key === told.id).map(({ headers }) => headers['event-id']);
    expect(new Set(ids).size).toBe(2);
  });

  it('D6-05: accepts a PendingReceipt with 200, whatever its collection', async () => {
    const { transactions } = fixture.portcullis.demo;
    const told = notification({ id: transactions.user_transactions, status: 5 });
    expect((await fixture.post(path, JSON.stringify(told))).status).toBe(200);
  });

  it('5.4-01: accepts both passwords during a rotation, and any case of the scheme', async () => {
    const { username, password } = fixture.portcullis.webhook;
    const accepted = [
      basic(username, PREVIOUS_PASSWORD),
      basic(username, password).replace('Basic', 'basic'),
      basic(username, password).replace('Basic ', 'BASIC  '),
    ];
    for (const authorization of accepted) {
      expect((await fixture.post(path, JSON.stringify(notification()), { authorization })).status).toBe(200);
    }
  });

  it('D3-35: compares the password in NFC', async () => {
    const { username } = fixture.portcullis.webhook;
    const authorization = basic(username, PREVIOUS_PASSWORD.normalize('NFD'));
    expect((await fixture.post(path, JSON.stringify(notification()), { authorization })).status).toBe(200);
  });
});

it('D6-09: only responses of the alias have the Deprecation, Sunset and Link headers, and all of them do', async () => {
  const { username, password } = fixture.portcullis.webhook;
  const calls = (path: string) => [
    fixture.post(path, JSON.stringify(notification())),
    fixture.post(path, '{'),
    fixture.post(path, bodyOf(LIMIT + 1)),
    fixture.post(path, JSON.stringify(notification()), { authorization: basic(username, `${password}x`) }),
  ];
  const headersOf = async (path: string) =>
    (await Promise.all(calls(path))).map(({ status, headers }) => ({
      status,
      deprecation: headers.get('deprecation'),
      sunset: headers.get('sunset'),
      link: headers.get('link'),
    }));
  const statuses = [200, 400, 400, 401];
  expect(await headersOf('/v2/webhooks')).toEqual(
    statuses.map((status) => ({
      status,
      deprecation: `@${Date.parse('2026-11-01T00:00:00Z') / 1000}`,
      sunset: 'Mon, 01 Nov 2027 00:00:00 GMT',
      link: '</v2/webhooks/custodial>; rel="successor-version"',
    })),
  );
  expect(await headersOf('/v2/webhooks/custodial')).toEqual(
    statuses.map((status) => ({ status, deprecation: null, sunset: null, link: null })),
  );
});
