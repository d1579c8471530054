import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { type Log, silentLog } from '../../src/lib/log.ts';
import { recordOf } from '../support/audit/records.ts';
import { type Desk, desk, MISTAKES, type Mistake } from '../support/gateway/mistakes.ts';
import { type Portcullis, startPortcullis } from '../support/harness.ts';

const logged: Record<string, unknown>[] = [];
const log: Log = { ...silentLog, info: (fields) => void logged.push({ ...fields }) };

let p: Portcullis;
let given: Desk;
beforeAll(async () => {
  p = await startPortcullis({ overrides: { log } });
  given = await desk(p);
});
afterAll(() => p[Symbol.asyncDispose]());

function answerTo(mistake: Mistake, more: Record<string, string> = {}) {
  const { to, headers, ...request } = mistake.request(given);
  const [method = '', path = ''] = to.split(' ');
  return p.call(method, path, { ...request, headers: { ...more, ...headers } });
}

it.each(MISTAKES.map((mistake) => [mistake.what, mistake] as const))(
  'D2-11 D2-12 D2-13 D2-14 D3-11 D3-32: %s: the answer says how to mend it, as far as the contract lets it',
  async (_what, mistake) => {
    const { status, headers, text } = await answerTo(mistake);
    const told = `${headers.get('www-authenticate') ?? headers.get('allow')}\n${text}`;
    expect([status, told]).toEqual([mistake.status, expect.stringContaining(mistake.says[0] ?? '')]);
    for (const words of mistake.says) expect(told).toContain(words);
  },
);

it('D2-07 D2-12 D3-32: why a path is not found, or a token not taken, stands in the log and in the audit record', async () => {
  const reasons = MISTAKES.filter(({ reason }) => reason !== undefined);
  for (const [index, mistake] of reasons.entries()) {
    const { text } = await answerTo(mistake, { 'x-correlation-id': `mistake-${index}` });
    expect(text).not.toContain(mistake.reason);
  }
  for (const [index, { status, reason }] of reasons.entries()) {
    const id = `mistake-${index}`;
    expect((await recordOf(p, id)).headers).toMatchObject({ ':reason': reason });
    await vi.waitFor(() =>
      expect(logged.find(({ correlation_id }) => correlation_id === id)).toMatchObject({ status, reason }),
    );
  }
});

it('D2-13: all but what the contract closes can be mended from the answer alone', () => {
  const open = MISTAKES.filter(({ closed }) => closed === undefined);
  expect(open.filter(({ says }) => says.length === 0)).toEqual([]);
});
