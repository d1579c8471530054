import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { type Log, silentLog } from '../../src/lib/log.ts';
import { recordOf } from '../audit/records.ts';
import { type Portcullis, startPortcullis } from '../harness.ts';
import { type Desk, desk, MISTAKES } from './mistakes.ts';

const logged: Record<string, unknown>[] = [];
const log: Log = { ...silentLog, info: (fields) => void logged.push({ ...fields }) };

let p: Portcullis;
let given: Desk;
beforeAll(async () => {
  p = await startPortcullis({ overrides: { log } });
  given = await desk(p);
});
afterAll(() => p[Symbol.asyncDispose]());

const rows = MISTAKES.map((mistake, index) => [mistake.what, mistake, index] as const);

it.each(rows)(
  'D2-13 D2-14 D3-11 D3-32: %s: the answer says how to mend it, as far as the contract lets it',
  async (_what, mistake, index) => {
    const { to, headers, ...request } = mistake.request(given);
    const [method = '', path = ''] = to.split(' ');
    const correlationId = `mistake-${index}`;
    const answer = await p.call(method, path, {
      ...request,
      headers: { 'x-correlation-id': correlationId, ...headers },
    });
    const told = `${answer.headers.get('www-authenticate') ?? answer.headers.get('allow')}\n${answer.text}`;
    expect([answer.status, told]).toEqual([mistake.status, expect.anything()]);
    for (const words of mistake.says) expect(told).toContain(words);
    if (mistake.reason === undefined) return;
    expect((await recordOf(p, correlationId)).headers).toMatchObject({ ':reason': mistake.reason });
    const line = await vi.waitFor(() => {
      const found = logged.find(({ correlation_id: id }) => id === correlationId);
      if (!found) throw new Error('no line yet');
      return found;
    });
    expect(line).toMatchObject({ status: 404, reason: mistake.reason });
  },
);

it('D2-12 D2-13: all but what the contract closes can be mended from the answer alone', () => {
  const open = MISTAKES.filter(({ closed }) => closed === undefined);
  expect(open.length).toBeGreaterThan(40);
  for (const { says, what } of open) expect([what, says.length > 0]).toEqual([what, true]);
});
