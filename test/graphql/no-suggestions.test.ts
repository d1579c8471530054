import { createHash } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Fixture, startFixture } from '../support/graphql/fixture.ts';
import { socketClient } from '../support/graphql/sockets.ts';

interface Operation {
  query?: string;
  variables?: Record<string, unknown>;
  documentId?: string;
}

const FILTERED = 'query ($f: TransactionFilter) { transactions(filter: $f) { totalCount } }';
const CREATE = 'mutation ($i: SupervisorInput!) { createSupervisor(input: $i) { __typename } }';
const LIVE = 'subscription ($f: TransactionFiltr) { transactionUpdates { cursr } }';
const ID = createHash('sha256').update(FILTERED).digest('hex');

/** Names nearly right, each with a name of the schema that would be suggested. */
const OPERATIONS: [name: string, operation: Operation, hidden: RegExp][] = [
  ['a field', { query: '{ acounts { totalCount } }' }, /accounts/],
  ['an argument', { query: '{ accounts(firts: 1) { totalCount } }' }, /"first"/],
  ['a type', { query: '{ me { ... on Viewe { nodeId } } }' }, /Viewer/],
  ['a type of a variable, and a field of an event', { query: LIVE }, /TransactionFilter"|"cursor"/],
  ['a directive', { query: '{ me @skp(if: true) { nodeId } }' }, /"@?skip"/],
  ['a member of a union', { query: 'mutation { eraseUser(id: "x") { messge } }' }, /NotFoundError|Erased/],
  ['a member of a literal', { query: '{ transactions(filter: {statuss: DONE}) { totalCount } }' }, /"status"/],
  ['an enum value of a literal', { query: '{ transactions(filter: {status: DON}) { totalCount } }' }, /DONE/],
  ['a member of a variable', { query: FILTERED, variables: { f: { statuss: 'DONE' } } }, /"status"/],
  ['an enum value of a variable', { query: FILTERED, variables: { f: { status: 'DON' } } }, /DONE/],
  ['a member of a deep variable', { query: CREATE, variables: { i: { username: 'u', rol: 'r' } } }, /"role"\?/],
  ['a member of a variable of a listed document', { documentId: ID, variables: { f: { statuss: 'x' } } }, /"status"/],
  ['an enum value of a listed document', { documentId: ID, variables: { f: { status: 'DON' } } }, /DONE/],
];

describe('outside production, with introspection off', () => {
  let fixture: Fixture;
  let listed: Fixture;
  beforeAll(async () => {
    const documents = new Map([[ID, FILTERED]]);
    fixture = await startFixture({ introspection: false, persistedMode: 'allow', persistedDocuments: () => documents });
    listed = await startFixture({ persistedMode: 'allow', persistedDocuments: () => documents });
  });
  afterAll(() => Promise.all([fixture, listed].map((one) => one[Symbol.asyncDispose]())));

  const overHttp = async (one: Fixture, operation: Operation) => (await one.post(operation)).text;

  async function overSocket(one: Fixture, operation: Operation): Promise<string> {
    const client = socketClient(one, one.token);
    try {
      const told: unknown[] = [];
      // A persisted operation comes without a query.
      const payload = { query: '', ...operation };
      await new Promise<void>((resolve) => {
        client.subscribe(payload, {
          next: (result) => told.push(result),
          error: (error) => resolve(void told.push(error)),
          complete: resolve,
        });
      });
      return JSON.stringify(told);
    } finally {
      await client.dispose();
    }
  }

  it.each(OPERATIONS)(
    'DG-11: %s with a typo gets an error without the correct name',
    async (_name, operation, hidden) => {
      for (const tell of [overHttp, overSocket]) {
        const told = await tell(fixture, operation);
        expect(told).toMatch(/errors|message/);
        expect(told).not.toMatch(/Did you mean/);
        expect(told).not.toMatch(hidden);
      }
    },
  );

  it('DG-11: with introspection on suggestions are returned over both transports', async () => {
    const [, operation] = OPERATIONS[0] ?? [];
    for (const tell of [overHttp, overSocket]) expect(await tell(listed, operation ?? {})).toMatch(/Did you mean/);
  });

  it('DG-11: introspection is rejected over both transports, also under an alias', async () => {
    for (const query of [
      '{ __schema { types { name } } }',
      '{ a: __type(name: "Query") { ...F } } fragment F on __Type { name }',
    ]) {
      for (const tell of [overHttp, overSocket]) {
        expect(await tell(fixture, { query })).toMatch(/introspection has been disabled/);
      }
    }
  });
});
