import { randomUUID } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { apollo, apolloInBatches } from '../../support/graphql/clients/apollo.ts';
import { type Followed, follow, startFixture } from '../../support/graphql/clients/fixture.ts';
import type { Door, RealClient } from '../../support/graphql/clients/real-client.ts';
import { urqlAlone, urqlWithEvents, urqlWithSockets } from '../../support/graphql/clients/urql.ts';
import { until } from '../../support/graphql/fixture.ts';
import { beforeTests } from '../../support/harness/before-tests.ts';
import {
  AccountsDocument,
  CancelUserMigrationDocument,
  ClientsDocument,
  MigrationProgressDocument,
  RegisterTransactionDocument,
  StartUserMigrationDocument,
  TransactionStatesDocument,
  TransactionUpdatesDocument,
} from '../generated/graphql.ts';

const CLIENTS: [name: string, connect: (door: Door) => RealClient][] = [
  ['Apollo Client', apollo],
  ['Apollo Client in batches', apolloInBatches],
  ['urql with graphql-ws', urqlWithSockets],
  ['urql by GET, with graphql-sse', urqlWithEvents],
  ['urql without add-ons', urqlAlone],
];

const MISSING = 'ffffffff-0000-4000-8000-00000000000f';

const fixture = beforeTests(startFixture);

function cursorsOf({ told }: Followed): unknown[] {
  return told.map(({ data }) => data?.transactionUpdates.cursor);
}

describe.each(CLIENTS)('%s', (_name, connect) => {
  let client: RealClient;
  beforeEach(() => {
    client = connect(fixture.door);
  });
  afterEach(() => client[Symbol.asyncDispose]());

  it('DG-08: gets responses to queries and mutations', async () => {
    const { data } = await client.run(AccountsDocument, { first: 2 });
    expect([data.accounts.totalCount, data.accounts.edges.length]).toEqual([25, 2]);
    const input = { id: randomUUID(), collection: 'OTC_TRANSACTIONS', type: 1 };
    expect((await client.run(RegisterTransactionDocument, { input })).data.registerTransaction).toMatchObject({
      __typename: 'Transaction',
      id: input.id,
      status: null,
    });
  });

  it('DG-03: gets a rejected mutation as a member of its union', async () => {
    const input = { id: '', collection: 'OTC_TRANSACTIONS', type: 1 };
    const [invalid, missing] = await Promise.all([
      client.run(RegisterTransactionDocument, { input }),
      client.run(CancelUserMigrationDocument, { id: MISSING }),
    ]);
    expect(invalid.data.registerTransaction).toMatchObject({
      __typename: 'ValidationError',
      issues: [{ path: ['id'] }],
    });
    expect(missing.data.result).toMatchObject({ __typename: 'NotFoundError', message: 'not found' });
  });

  it('DG-04: gets the missing permission of a query and of a subscription', async () => {
    const { data, errors } = await client.run(ClientsDocument);
    expect(data ?? null).toBeNull();
    expect(errors).toMatchObject([{ extensions: { code: 'FORBIDDEN', permission: 'clients:manage' } }]);
    const progress = follow(client, MigrationProgressDocument, { id: MISSING });
    await until(() => progress.isOver);
    expect(progress.told).toMatchObject([
      { errors: [{ extensions: { code: 'FORBIDDEN', permission: 'users:read' } }] },
    ]);
  });

  it('DG-08 D6-11: follows a transaction until it is final', async () => {
    const id = await fixture.register();
    const states = follow(client, TransactionStatesDocument, { id });
    await until(() => states.told.length >= 1);
    await fixture.bring(id, 1);
    await until(() => states.told.length >= 2);
    await fixture.bring(id, 3);
    await until(() => states.isOver);
    expect(states.told.map(({ data }) => data.transaction.status)).toEqual([null, 'STARTED', 'DONE']);
  });

  it('D6-10: resumes after its last cursor when the connection breaks: nothing is missed or duplicated', async () => {
    const id = await fixture.register();
    const first = await fixture.bring(id, 1);
    const updates = follow(client, TransactionUpdatesDocument, { after: `${BigInt(first) - 1n}` });
    await until(() => updates.told.length >= 1);
    fixture.proxy.set('cut');
    const second = await fixture.bring(id, 2);
    fixture.proxy.set('passing');
    await until(() => updates.told.length >= 2);
    const third = await fixture.bring(id, 3);
    await until(() => updates.told.length >= 3);
    expect(cursorsOf(updates)).toEqual([first, second, third]);
    updates.end();
  });
});

describe('the requests of the clients', () => {
  it('DG-08: Apollo Client sends concurrent queries as one batch', async () => {
    await using client = apolloInBatches(fixture.door);
    fixture.requests.length = 0;
    await Promise.all([1, 2, 3].map((first) => client.run(AccountsDocument, { first })));
    expect(fixture.requests).toMatchObject([{ method: 'POST', body: expect.stringMatching(/^\[/) }]);
  });

  it('DG-08: urql sends a query by GET and a mutation by POST, and requests an event stream', async () => {
    await using client = urqlWithEvents(fixture.door);
    await using alone = urqlAlone(fixture.door);
    fixture.requests.length = 0;
    await client.run(AccountsDocument, { first: 1 });
    await client.run(CancelUserMigrationDocument, { id: MISSING });
    const states = follow(alone, TransactionStatesDocument, { id: await fixture.register() });
    await until(() => states.told.length >= 1);
    states.end();
    expect(fixture.requests.map(({ method }) => method)).toEqual(['GET', 'POST', 'POST']);
    expect(fixture.requests.map(({ accept }) => accept?.startsWith('text/event-stream'))).toEqual([false, false, true]);
  });

  it('DG-09: urql sends a file as a multipart upload', async () => {
    await using client = urqlAlone(fixture.door);
    fixture.requests.length = 0;
    const file = new File(['wallet_address,email\n0xurql,urql@example.com\n'], 'users.csv', { type: 'text/csv' });
    const { data } = await client.run(StartUserMigrationDocument, { file });
    expect(data.result).toMatchObject({ __typename: 'Migration' });
    expect(fixture.requests).toMatchObject([{ method: 'POST', body: expect.any(FormData) }]);
  });
});

it('D6-10 DG-08: after a restart every client resumes after its last cursor', async () => {
  const clients = CLIENTS.map(([, connect]) => connect(fixture.door));
  const id = await fixture.register();
  const first = await fixture.bring(id, 1);
  const followed = clients.map((client) =>
    follow(client, TransactionUpdatesDocument, { after: `${BigInt(first) - 1n}` }),
  );
  await until(() => followed.every(({ told }) => told.length >= 1));
  await fixture.stop();
  const port = await fixture.start();
  const second = await fixture.bring(id, 2);
  fixture.proxy.targetPort = port;
  await until(() => followed.every(({ told }) => told.length >= 2));
  for (const updates of followed) expect(cursorsOf(updates)).toEqual([first, second]);
  for (const updates of followed) updates.end();
  await Promise.all(clients.map((client) => client[Symbol.asyncDispose]()));
});
