import { afterEach, describe, expect, it, vi } from 'vitest';
import { databaseEventLog } from '../../src/events/streams/event-log.ts';
import { EventStreams } from '../../src/events/streams/event-streams.ts';
import { MemoryWakeUps } from '../../src/events/streams/wake-ups.ts';
import { UserPages } from '../../src/features/users/users.service.ts';
import { NODE, useFixture } from '../support/graphql/fixture.ts';

const fixture = useFixture();

afterEach(() => {
  vi.restoreAllMocks();
  fixture.faults.length = 0;
});

const wakeUps = new MemoryWakeUps();
const SECRET = 'select secret from vault';

describe('unexpected internal errors', () => {
  it.each(['application/json', 'application/graphql-response+json'])(
    'DG-05: are masked with the correlation id and logged once (%s)',
    async (accept) => {
      vi.spyOn(UserPages.prototype, 'page').mockImplementation(() => {
        throw new Error(SECRET);
      });
      const headers = { accept, 'x-correlation-id': 'find-me' };
      const { status, json, text } = await fixture.query('{ users { totalCount } }', { headers });
      expect(status).toBe(200);
      expect(json.errors).toEqual([
        {
          message: 'internal error',
          path: ['users'],
          locations: [{ line: 1, column: 3 }],
          extensions: { code: 'INTERNAL_SERVER_ERROR', correlationId: 'find-me' },
        },
      ]);
      expect(text).not.toContain(SECRET);
      expect(fixture.faults).toEqual([
        { correlation_id: 'find-me', err: expect.objectContaining({ message: SECRET }) },
      ]);
    },
  );

  it('DG-05: in many fields at once are each masked, and logged once', async () => {
    const { db } = fixture.database;
    await db.unscoped('a test sets its rows').raw(
      (sql) => sql`insert into supervisors (id, node_id, username, password_hash, role)
        select gen_random_uuid(), ${NODE}, 'user-' || n, '', 'viewer' from generate_series(1, 3) n`,
    );
    vi.spyOn(db, 'forNode').mockImplementation(() => {
      throw new Error(SECRET);
    });
    const { json } = await fixture.query('{ supervisors { edges { node { lockedUntil } } } }');
    expect(json.data.supervisors.edges).toHaveLength(3);
    expect(json.errors).toHaveLength(3);
    for (const { extensions } of json.errors) expect(extensions.code).toBe('INTERNAL_SERVER_ERROR');
    expect(fixture.faults).toHaveLength(1);
  });

  it('DG-05: in a batch are each masked, and other operations are answered', async () => {
    vi.spyOn(fixture.transactions, 'register').mockRejectedValue(new Error(SECRET));
    const mutation =
      'mutation { registerTransaction(input: {id: "x", collection: OTC_TRANSACTIONS, type: 1}) { __typename } }';
    const { status, json, text } = await fixture.post([{ query: mutation }, { query: '{ me { subject } }' }]);
    expect(status).toBe(200);
    expect(json[0].errors[0].extensions.code).toBe('INTERNAL_SERVER_ERROR');
    expect(json[1]).toEqual({ data: { me: { subject: 'somebody' } } });
    expect(text).not.toContain(SECRET);
    expect(fixture.faults).toHaveLength(1);
  });

  it('DG-05: in a running subscription end it, masked', async () => {
    vi.spyOn(fixture.streams, 'subscribe').mockImplementation((options) => {
      const stream = new EventStreams({ log: databaseEventLog(fixture.database.db), wakeUps, onError() {} }).subscribe(
        options,
      );
      stream.end(new Error(SECRET));
      return stream;
    });
    const { status, text } = await fixture.query('subscription { transactionUpdates { cursor } }', {
      headers: { accept: 'text/event-stream' },
    });
    expect(status).toBe(200);
    expect(text).toContain('"code":"INTERNAL_SERVER_ERROR"');
    expect(text).not.toContain(SECRET);
    expect(text).toMatch(/event: complete\ndata:\n\n$/);
    expect(fixture.faults).toHaveLength(1);
  });
});

describe('invalid requests', () => {
  it('DG-06: an ambiguous operation gets 400', async () => {
    for (const accept of ['application/json', 'application/graphql-response+json', '*/*']) {
      const { status, json } = await fixture.query('query A { me { nodeId } } query B { me { nodeId } }', {
        headers: { accept },
      });
      expect([status, json.errors[0].extensions]).toEqual([400, { code: 'OPERATION_RESOLUTION_FAILURE' }]);
    }
  });

  it('DG-06: a body without a declared length gets 413 at the byte that passes the limit', async () => {
    const headers = { 'content-type': 'application/json', authorization: `Bearer ${fixture.token}` };
    let sent = 0;
    const body = new ReadableStream({
      pull(controller) {
        sent += 1;
        controller.enqueue(new Uint8Array(256 * 1024).fill(0x20));
      },
    });
    const streaming = { method: 'POST', headers, body, duplex: 'half' };
    const { status, json } = await fixture.fetch(streaming);
    expect(status).toBe(413);
    expect(json.message).toBe('payload_too_large');
    expect(sent).toBeLessThan(1_000);
  });
});

describe('a literal that its scalar rejects', () => {
  const UUID = 'ffffffff-0000-4000-8000-00000000000f';
  const rule = (amount: string) =>
    `mutation { createWalletRule(walletId: "${UUID}", input: {name: "r", type: "permissionless_transfer_limit", networkId: "${UUID}", networkCurrencyId: "${UUID}", permissionlessTransferLimitRule: {maxAmount: ${amount}, timePeriod: "day", timePeriodValue: 1}}) { __typename } }`;

  it.each([
    ['DateTime', '{ transactions(filter: {updatedSince: "yesterday"}) { totalCount } }', '"yesterday"'],
    ['DateTime', '{ transactions(filter: {updatedSince: 7}) { totalCount } }', '7'],
    ['Decimal', rule('"much"'), '"much"'],
    ['Decimal', rule('true'), 'true'],
    ['File', 'mutation { startUserMigration(file: "users.csv") { __typename } }', '"users.csv"'],
  ])('gets an error with its location: %s, %s', async (scalar, query, literal) => {
    const { json } = await fixture.query(query);
    expect(json.errors).toEqual([
      {
        message: expect.stringContaining(`${scalar} must be`),
        locations: [{ line: 1, column: query.indexOf(literal) + 1 }],
        extensions: { code: 'GRAPHQL_VALIDATION_FAILED' },
      },
    ]);
  });
});
