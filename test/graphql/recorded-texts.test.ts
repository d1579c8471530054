import { expect, it } from 'vitest';
import { SharedResults, sharedOf } from '../../src/api/graphql/execution/shared-results.ts';
import { type OperationRecord, SocketOperations } from '../../src/api/graphql/sockets/socket-operations.ts';
import type { Exchange } from '../../src/gateway/exchange/exchange.ts';
import { textWeight } from '../../src/lib/heap-weight.ts';
import { inRequest, MemoryAccounts } from '../../src/platform/held-memory.ts';

const KEPT_CHARACTERS = 64 * 1024;
/** More than an operation is charged for the places of its texts. */
const PLACES = 100;

function begun() {
  const accounts = new MemoryAccounts(1024 * 1024 * 1024);
  const records: OperationRecord[] = [];
  const recordOperation = async (record: OperationRecord) => void records.push(record);
  const operations = new SocketOperations({} as Exchange, { recordOperation, isAuditFull: () => false });
  for (const id of ['1', '2']) {
    inRequest(accounts.open('node'), () => operations.begin(id, {} as never, { query: '' }));
  }
  return { operations, records, charged: () => accounts.held('node') };
}

it('D6-25: of a long result that subscribers share, one beginning is kept for their records, and charged once', async () => {
  const { operations, records, charged } = begun();
  const text = 'x'.repeat(10 * KEPT_CHARACTERS);
  const result = await new SharedResults().own({}, Promise.resolve({ data: { text } }));
  const shared = sharedOf(result);
  for (const id of ['1', '2']) operations.next(id, shared?.text ?? '', false, shared);
  const once = textWeight('x'.repeat(KEPT_CHARACTERS));
  expect(shared?.recordedText?.value).toBe(shared?.text?.slice(0, KEPT_CHARACTERS));
  expect(charged()).toBeGreaterThanOrEqual(once);
  expect(charged()).toBeLessThan(once + PLACES);
  await operations.end('1');
  expect(charged()).toBeGreaterThanOrEqual(once);
  await operations.end('2');
  expect(charged()).toBeLessThan(PLACES);
  expect(records.map(({ responseText }) => responseText.length)).toEqual([KEPT_CHARACTERS, KEPT_CHARACTERS]);
});

it('D6-25: the results and the errors of one subscriber are charged until its operation is recorded', async () => {
  const { operations, records, charged } = begun();
  operations.next('1', 'a'.repeat(1_000), true);
  operations.next('2', 'b'.repeat(3_000), false);
  expect(charged()).toBeGreaterThan(4_000);
  await operations.reject('1', [{ message: 'c' }]);
  expect(charged()).toBeGreaterThan(3_000);
  expect(charged()).toBeLessThan(4_000);
  await operations.end('2');
  expect(charged()).toBeLessThan(PLACES);
  expect(records.map(({ responseText }) => responseText)).toEqual([
    `${'a'.repeat(1_000)}\n{"errors":[{"message":"c"}]}`,
    'b'.repeat(3_000),
  ]);
});
