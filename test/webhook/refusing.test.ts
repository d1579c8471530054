import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { setTimeout } from 'node:timers/promises';
import { afterEach, describe, expect, it } from 'vitest';
import { beforeTests } from '../support/harness/before-tests.ts';
import { basic, notification, PATHS, webhookFixture } from '../support/webhook/fixture.ts';

const SLOW_BODY_MS = 400;

const fixture = beforeTests(() => webhookFixture());

afterEach(() => {
  fixture.bus.mood = 'accepts';
});

const credentials: Record<string, (username: string, password: string) => string | undefined> = {
  'no Authorization': () => undefined,
  'an empty Authorization': () => '',
  'another user': (username, password) => basic(`${username}x`, password),
  'a user in another case': (username, password) => basic(username.toUpperCase(), password),
  'another password': (username, password) => basic(username, `${password}x`),
  'an empty password': (username) => basic(username, ''),
  'no colon': (username, password) => `Basic ${Buffer.from(`${username}${password}`).toString('base64')}`,
  'only the user': (username) => `Basic ${Buffer.from(username).toString('base64')}`,
  'bad base64': () => 'Basic !!!!',
  'no credentials': () => 'Basic',
  'the pair in the clear': (username, password) => `Basic ${username}:${password}`,
  'another scheme': (username, password) => basic(username, password).replace('Basic', 'Bearer'),
  'a scheme without a space': (username, password) => basic(username, password).replace('Basic ', 'Basic'),
  'more after the credentials': (username, password) => `${basic(username, password)} x`,
};

describe.each(PATHS)('POST %s', (path) => {
  it.each(Object.entries(credentials))('4.5-03 5.4-01 D2-11: %s is 401, whatever the body', async (_name, make) => {
    const { username, password } = fixture.portcullis.webhook;
    const authorization = make(username, password);
    for (const body of [JSON.stringify(notification()), '{', 'x'.repeat(300_000)]) {
      const answer = await fixture.portcullis.call('POST', path, {
        body,
        headers: { 'content-type': 'text/plain', ...(authorization === undefined ? {} : { authorization }) },
      });
      expect(answer).toMatchObject({ status: 401, json: { code: -1, domain: 0, message: 'unauthorized' } });
      expect(answer.headers.get('www-authenticate')).toMatch(/^Basic realm="[^"]+", charset="UTF-8"$/);
    }
  });

  /** One member of each kind: notification-input.test.ts has all of them, gateway/bad-input.test.ts bodies and content types. */
  const invalid: [name: string, members: object, path: string, message: RegExp][] = [
    ['2.7-01: no id', { id: undefined }, 'id', /required/],
    ['2.7-03: a status of 6', { status: 6 }, 'status', /1 \(Started\)/],
    ['2.7-07: only a date', { created_at: '2026-11-21' }, 'created_at', /ISO 8601/],
    ['D2-22: an error with a lone surrogate', { error: '\ud800' }, 'error', /surrogate/],
  ];

  it.each(invalid)('4.5-02 D2-13 %s is 400 with the member and the reason', async (_name, members, member, message) => {
    const published = fixture.bus.deadlinesMs.length;
    const answer = await fixture.post(path, JSON.stringify(notification(members)));
    expect(answer).toMatchObject({ status: 400, json: { code: -1, domain: 0, message: 'invalid_request' } });
    expect(answer.json.errors).toEqual([{ path: member, message: expect.stringMatching(message) }]);
    expect(fixture.bus.deadlinesMs).toHaveLength(published);
  });

  it.each(['rejects', 'does not respond'] as const)('7.3-01: a bus that %s causes a masked 500', async (mood) => {
    fixture.bus.mood = mood;
    const answer = await fixture.post(path, JSON.stringify(notification()));
    expect(answer).toMatchObject({ status: 500, text: '{"code":-1,"domain":0,"message":"internal_error"}' });
    fixture.bus.mood = 'accepts';
    expect((await fixture.post(path, JSON.stringify(notification()))).status).toBe(200);
  });

  it('7.3-01: the deadline for the bus is 4 s after the request arrived, not after its body', async () => {
    const { username, password } = fixture.portcullis.webhook;
    fixture.bus.deadlinesMs.length = 0;
    const body = JSON.stringify(notification());
    const headers = { authorization: basic(username, password), 'content-type': 'application/json' };
    const sent = request(`${fixture.portcullis.url}${path}`, { method: 'POST', headers });
    const { promise: arrived, resolve: onArrival } = Promise.withResolvers<unknown>();
    subscribe('http.server.request.start', onArrival);
    sent.write(body.slice(0, 10));
    await arrived;
    unsubscribe('http.server.request.start', onArrival);
    await setTimeout(SLOW_BODY_MS);
    sent.end(body.slice(10));
    const [answer] = (await once(sent, 'response')) as [IncomingMessage];
    answer.resume();
    expect(answer.statusCode).toBe(200);
    const [deadlineMs] = fixture.bus.deadlinesMs;
    // A timer may be early by a millisecond.
    expect(deadlineMs).toBeLessThanOrEqual(4_001 - SLOW_BODY_MS);
  });
});
