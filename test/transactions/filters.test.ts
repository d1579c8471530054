import { randomUUID } from 'node:crypto';
import { setTimeout } from 'node:timers/promises';
import { beforeAll, describe, expect, it } from 'vitest';
import { topicOf } from '../../src/features/transactions/type-codes.rules.ts';
import type { TransactionCollection } from '../../src/tables/transaction-content.ts';
import { NODE, OTHER_NODE, useFixture } from '../support/graphql/fixture.ts';

const fixture = useFixture();

const DAY = '2026-03-02T';
const at = (time: string) => `${DAY}${time}Z`;

/** Transactions of a day: their collection, the notifications of each, and whether its type is unknown. */
type Told = readonly [status: number, updated: string, hash?: string];
const GIVEN: [id: string, collection: TransactionCollection, type: number, told: Told[]][] = [
  ['started', 'user_transactions', 1, [[1, '00:10:00.000']]],
  ['in-progress', 'user_transactions', 10, [[2, '01:59:59.999']]],
  ['waiting', 'token_transactions', 22, [[5, '02:00:00.000', '0xa']]],
  ['done', 'token_transactions', 1, [[3, '02:30:00.000', '0xb']]],
  [
    'both',
    'token_transactions',
    2,
    [
      [4, '02:40:00.000', '0xc'],
      [3, '02:50:00.000', '0xc'],
    ],
  ],
  ['unknown', 'token_transactions', 23, [[4, '23:59:59.999']]],
  ['unknown-too', 'otc_transactions', 0, [[3, '23:00:00.000', '0xb']]],
  ['silent', 'node_transactions', 61, []],
];

beforeAll(async () => {
  for (const [id, collection, type, told] of GIVEN) {
    await fixture.transactions.register({ id, nodeId: NODE, collection, type, assetId: null });
    for (const [status, updated, hash = ''] of told) {
      const times = { created_at: at('00:00:00.000'), updated_at: at(updated) };
      const body = Buffer.from(JSON.stringify({ id, type, status, transaction_hash: hash, ...times }));
      await fixture.transactions.applyBatch(topicOf(collection), [{ body, correlationId: 'x' }]);
    }
  }
  await fixture.register('of-another', OTHER_NODE);
  await fixture.notify('of-another', 3, { transaction_hash: '0xb', updated_at: at('02:30:00.000') });
});

describe('transaction filters', () => {
  it.each([
    ['status: ERROR', ['unknown']],
    ['status: DONE', ['done', 'both', 'unknown-too']],
    ['idOrHash: "done"', ['done']],
    ['idOrHash: "0xb"', ['done', 'unknown-too']],
    ['idOrHash: "0xB"', []],
    ['idOrHash: ""', []],
    ['search: "unknown"', ['unknown', 'unknown-too']],
    ['search: "0x"', ['waiting', 'done', 'both', 'unknown-too']],
    ['search: "known"', []],
    ['search: "don%"', []],
    ['search: "un", status: DONE', ['unknown-too']],
    [`updatedUntil: "${at('02:00:00.000')}"`, ['started', 'in-progress']],
    [`updatedSince: "${at('02:00:00.000')}"`, ['waiting', 'done', 'both', 'unknown', 'unknown-too']],
    [`updatedSince: "${at('01:59:59.999')}", updatedUntil: "${at('02:00:00.001')}"`, ['in-progress', 'waiting']],
    ['conflict: true', ['both']],
    ['conflict: false, status: DONE', ['done', 'unknown-too']],
    ['flagged: true', ['unknown', 'unknown-too', 'silent']],
    ['flagged: false, collection: TOKEN_TRANSACTIONS', ['waiting', 'done', 'both']],
    [`flagged: true, idOrHash: "0xb", updatedUntil: "${at('23:30:00.000')}"`, ['unknown-too']],
  ])('DG-01: the list and the updates with the filter %s return the same transactions', async (filter, ids) => {
    const page = `transactions(filter: {${filter}}) { totalCount totalCountAtLeast edges { node { id } } }`;
    const { json } = await fixture.query(`{ ${page} }`);
    const { edges, ...counts } = json.data.transactions;
    expect(edges.map(({ node }: { node: { id: string } }) => node.id)).toEqual(ids);
    expect(counts).toEqual({ totalCount: ids.length, totalCountAtLeast: ids.length });
    const updates = `subscription { transactionUpdates(filter: {${filter}}, after: "0") { transaction { id } } }`;
    await using stream = await fixture.stream(updates);
    // A filter applies to the state after each change, so that more than its last state of `both` can match.
    const wanted = new Set(ids.filter((id) => id !== 'silent'));
    const seen = new Set<string>();
    const read = async () => {
      const { data } = await stream.nextJson();
      seen.add(data.transactionUpdates.transaction.id);
    };
    while (!wanted.isSubsetOf(seen)) await read();
    await Promise.race([setTimeout(100), read()]);
    expect(new Set([...seen, 'both'])).toEqual(new Set([...wanted, 'both']));
  });

  it('DG-01: an invalid filter value is BAD_USER_INPUT, and a null filter counts as absent', async () => {
    const all = await fixture.query(
      '{ transactions(filter: {idOrHash: null, conflict: null}) { totalCount totalCountAtLeast } }',
    );
    expect(all.json.data.transactions).toEqual({ totalCount: GIVEN.length, totalCountAtLeast: GIVEN.length });
    const { json } = await fixture.query('{ transactions(filter: {idOrHash: "\\u0000"}) { totalCount } }');
    expect(json.errors[0].extensions.code).toBe('BAD_USER_INPUT');
  });
});

describe('transactionStats', () => {
  const ask = (since: string, until: string, bucket: string) =>
    fixture.query(`{ transactionStats(since: "${since}", until: "${until}", bucket: ${bucket}) { at status count } }`);
  const statsOf = async (since: string, until: string, bucket: string) => {
    const { json } = await ask(since, until, bucket);
    return json.data.transactionStats.map((row: { at: string; status: string; count: number }) =>
      Object.values(row).join(' '),
    );
  };

  it('DG-01: counts by status and hour of the last update in UTC, and omits empty hours', async () => {
    expect(await statsOf(at('00:00:00.000'), at('24:00:00.000'), 'HOUR')).toEqual([
      `${DAY}00:00:00.000Z STARTED 1`,
      `${DAY}01:00:00.000Z IN_PROGRESS 1`,
      `${DAY}02:00:00.000Z DONE 2`,
      `${DAY}02:00:00.000Z PENDING_RECEIPT 1`,
      `${DAY}23:00:00.000Z DONE 1`,
      `${DAY}23:00:00.000Z ERROR 1`,
    ]);
  });

  it('DG-01: counts by day, from the start of the range and before its end', async () => {
    expect(await statsOf('2026-03-02T01:59:59.999+00:00', '2026-03-03T03:40:00+01:00', 'DAY')).toEqual([
      `${DAY}00:00:00.000Z IN_PROGRESS 1`,
      `${DAY}00:00:00.000Z DONE 3`,
      `${DAY}00:00:00.000Z ERROR 1`,
      `${DAY}00:00:00.000Z PENDING_RECEIPT 1`,
    ]);
    expect(await statsOf(at('02:00:00.000'), at('02:30:00.000'), 'DAY')).toEqual([
      `${DAY}00:00:00.000Z PENDING_RECEIPT 1`,
    ]);
    expect(await statsOf('1969-12-31T23:00:00Z', '1970-01-01T01:00:00Z', 'DAY')).toEqual([]);
  });

  it('DG-01: rejects more than 31 days, and an end before the start', async () => {
    const month = ['2026-01-01T00:00:00Z', '2026-02-01T00:00:00Z'] as const;
    expect((await ask(...month, 'DAY')).json.errors).toBeUndefined();
    for (const [since, until] of [
      [month[0], '2026-02-01T00:00:00.001Z'],
      [month[1], month[0]],
    ] as const) {
      const { json } = await ask(since, until, 'HOUR');
      expect(json.errors[0].extensions).toMatchObject({ code: 'BAD_USER_INPUT', issues: [{ path: ['until'] }] });
    }
  });

  it('DG-01 DG-04: another tenant counts only its own, and without transactions:read it is forbidden', async () => {
    const query = `{ transactionStats(since: "${at('00:00:00.000')}", until: "${at('24:00:00.000')}", bucket: DAY) { count } }`;
    const other = await fixture.query(query, { token: fixture.newToken({ nodeId: OTHER_NODE }) });
    expect(other.json.data.transactionStats).toEqual([{ count: 1 }]);
    const { json } = await fixture.query(query, { token: fixture.newToken({ permissions: ['wallets:read'] }) });
    expect(json.errors[0].extensions).toEqual({ code: 'FORBIDDEN', permission: 'transactions:read' });
  });
});

// Last, because the lists above are whole.
it('2.7-04 D6-18 DG-01: a hash of any length is applied, and found by its text and its beginning', async () => {
  const hash = Array.from({ length: 20_000 }, (_, index) => ((index * 7_919) % 65_521).toString(36)).join('-');
  const id = `${randomUUID()}\u{1f600}`;
  await fixture.register(id);
  await fixture.notify(id, 3, { transaction_hash: hash, contract_address: hash, error: hash });
  const found = async (filter: object) => {
    const { json } = await fixture.query(
      'query ($filter: TransactionFilter) { transactions(filter: $filter) { edges { node { id transactionHash } } } }',
      { variables: { filter } },
    );
    return json.data.transactions.edges.map(({ node }: { node: object }) => node);
  };
  const all = [{ id, transactionHash: hash }];
  for (const text of [id, hash]) expect(await found({ idOrHash: text })).toEqual(all);
  for (const text of [id.slice(0, -2), hash.slice(0, 9), hash.slice(0, 999)]) {
    expect(await found({ search: text })).toEqual(all);
  }
  expect(await found({ idOrHash: `${hash}x` })).toEqual([]);
  expect(await found({ search: `${hash.slice(0, 999)}x` })).toEqual([]);
});
