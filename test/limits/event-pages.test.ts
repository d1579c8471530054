import { beforeAll, expect, it, vi } from 'vitest';
import { databaseEventLog, hasMore, type LoggedEvent, PAGE_BYTES } from '../../src/events/streams/event-log.ts';
import { HeldMemory } from '../../src/platform/held-memory.ts';
import { usePortcullis } from '../support/harness.ts';
import { hasGot, logged, overSocket, overSse, registered } from '../support/realtime/live.ts';
import { notification } from '../support/webhook/fixture.ts';

const EVENTS = 70;
/** Few rows of it make a page, and the limit of a first page is met by their number otherwise. */
const ERROR = 'é'.repeat(60_000);

const p = usePortcullis();
let token: string;

beforeAll(async () => {
  token = await p.loginToken();
  const ids = await registered(p, EVENTS);
  const deliveries = ids.map((id) => ({
    body: Buffer.from(JSON.stringify(notification({ id, status: 4, error: ERROR }))),
    correlationId: 'long',
  }));
  await p.service.context.transactions.applyBatch('transactions.user', deliveries);
});

it('D7-13: a page of the event log ends at one mebibyte, and the next page continues after it', async () => {
  const log = databaseEventLog(p.service.context.database.db);
  const pages: LoggedEvent[][] = [];
  for (let at = 0n; ; ) {
    const page = await log.readEvents(p.demo.node_id, at, 500);
    pages.push(page);
    at = page.at(-1)?.seq ?? at;
    if (!hasMore(page, 500)) break;
  }
  // A page has the event that reaches the limit, and no more of them.
  const most = Math.ceil(PAGE_BYTES / Buffer.byteLength(ERROR));
  expect(pages.length).toBeGreaterThan(EVENTS / most);
  for (const page of pages) expect(page.length).toBeLessThanOrEqual(most);
  expect(pages.flat().map(({ seq }) => seq.toString())).toEqual(await logged(p));
});

it.each([
  ['server-sent events', overSse],
  ['a WebSocket', overSocket],
])(
  'D7-13 D6-10: a replay of long events over %s sends each once, in order, and holds one page at most',
  async (_name, over) => {
    const { memory } = p.service.context;
    const most = { bytes: 0 };
    const { add } = HeldMemory.prototype;
    const spy = vi.spyOn(HeldMemory.prototype, 'add').mockImplementation(function (this: HeldMemory, ...rows) {
      const error = add.apply(this, rows);
      most.bytes = Math.max(most.bytes, this.rows);
      return error;
    });
    await using live = await over(p, { token, after: '0' });
    await hasGot(live, await logged(p));
    spy.mockRestore();
    expect(most.bytes).toBeGreaterThan(PAGE_BYTES);
    expect(most.bytes).toBeLessThan(2 * PAGE_BYTES);
    // The subscription is still open, with what its record keeps: at most 256 KiB.
    await vi.waitFor(() => expect(memory.held(p.demo.node_id)).toBeLessThan(PAGE_BYTES / 2));
  },
);
