import { describe, expect, it } from 'vitest';
import { silentLog } from '../../src/lib/log.ts';
import { scrape } from '../support/observability/scrape.ts';
import { basic, notification, PATHS, webhookFixture } from '../support/webhook/fixture.ts';

const METRIC = 'portcullis_webhook_wrong_passwords_total';
const MESSAGE = 'too many webhook requests with a wrong password from one address within a minute';

async function fixture() {
  const clock = { nowMs: Date.UTC(2026, 10, 21, 12) };
  const warned: object[] = [];
  const log = {
    ...silentLog,
    warn: (fields: object, message: string) => {
      if (message === MESSAGE) warned.push(fields);
    },
  };
  const { portcullis: p, ...rest } = await webhookFixture({ overrides: { log, nowMs: () => clock.nowMs } });
  const { username, password } = p.webhook;
  async function statuses(times: number, address: string, guess?: string): Promise<number[]> {
    const answers: number[] = [];
    for (let at = 0; at < times; at += 1) {
      const { status } = await p.call('POST', PATHS[at % 2] ?? '', {
        json: notification(),
        headers: { authorization: basic(username, guess ?? `guess ${at}`), 'x-forwarded-for': address },
      });
      answers.push(status);
    }
    return answers;
  }
  return {
    ...rest,
    p,
    clock,
    warned,
    guess: (times: number, address: string) => statuses(times, address),
    knock: (address: string) => statuses(1, address, password),
    async counted() {
      const { value } = await scrape(p.service);
      return { single: value(METRIC, { kind: 'single' }), repeated: value(METRIC, { kind: 'repeated' }) };
    },
  };
}

describe('wrong passwords at the webhook', () => {
  it('5.4-01: wrong passwords always get 401, are counted by address and logged; correct requests are accepted', async () => {
    await using s = await fixture();
    expect(await s.counted()).toEqual({ single: 0, repeated: 0 });
    expect(new Set(await s.guess(60, '198.51.100.7'))).toEqual(new Set([401]));
    expect(await s.counted()).toEqual({ single: 20, repeated: 40 });
    expect(s.warned).toEqual([20, 40, 60].map((count) => ({ real_ip: '198.51.100.7', count })));
    expect(await s.knock('198.51.100.7')).toEqual([200]);
    expect(new Set(await s.guess(19, '2001:db8::1'))).toEqual(new Set([401]));
    expect(await s.counted()).toEqual({ single: 39, repeated: 40 });
    expect(s.warned).toHaveLength(3);
    expect(await s.guess(1, '2001:db8::2')).toEqual([401]);
    expect(s.warned[3]).toEqual({ real_ip: '2001:db8:0:0::/64', count: 20 });
  });

  it('5.4-01: wrong passwords are counted from zero in the next minute', async () => {
    await using s = await fixture();
    await s.guess(21, '198.51.100.7');
    s.clock.nowMs += 60_000;
    await s.guess(1, '198.51.100.7');
    expect(await s.counted()).toEqual({ single: 21, repeated: 1 });
  });

  it('5.4-01: requests without credentials do not count as wrong passwords', async () => {
    await using s = await fixture();
    expect((await s.p.call('POST', PATHS[0], { json: notification() })).status).toBe(401);
    expect(await s.counted()).toEqual({ single: 0, repeated: 0 });
  });
});
