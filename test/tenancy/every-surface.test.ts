import { join } from 'node:path';
import { isRequiredArgument } from 'graphql';
import { beforeAll, describe, expect, it } from 'vitest';
import { graphqlSchema } from '../../src/app/graphql-schema.ts';
import { readGatewayConfig } from '../../src/gateway/endpoints/gateway-config.ts';
import { openStream } from '../support/graphql/event-reader.ts';
import { browserForm } from '../support/graphql/upload-requests.ts';
import { beforeTests } from '../support/harness/before-tests.ts';
import type { Portcullis } from '../support/harness.ts';
import { askList, GRAPHQL_ROWS, LISTS, operate } from '../support/tenancy/graphql-rows.ts';
import { marksOf, type Things } from '../support/tenancy/marked-node.ts';
import { MCP, NAMELESS, REST_ROWS } from '../support/tenancy/rest-rows.ts';
import { selectionOf, slotsOf } from '../support/tenancy/schema-slots.ts';
import { missing, type SurfaceRow, told, withoutNewIds } from '../support/tenancy/surface-row.ts';
import { type TwoMarkedNodes, twoMarkedNodes } from '../support/tenancy/two-marked-nodes.ts';

const schema = graphqlSchema();
const slots = slotsOf(schema);
const queries = Object.values(schema.getQueryType()?.getFields() ?? {});
const { endpoints } = readGatewayConfig(join(import.meta.dirname, '../../gateway.yaml'));
const ROWS = [...REST_ROWS, ...GRAPHQL_ROWS.filter(({ covers }) => slots.includes(covers))];
/** The same for every node, or of the caller alone. */
const GLOBAL: ReadonlySet<string> = new Set(['networkCurrencies', 'networks', 'gasFees']);
/** Slots that no row can name a thing of a node by, and why. */
const APART: Record<string, string> = {
  'Mutation.assignNetwork(networkId)': 'networks are of no node',
  'Mutation.createClient': 'makes a client, names none',
  'Mutation.startUserMigration': 'the rows of its file name people: has a test of its own',
  'Mutation.registerTransaction(input.id)': 'one space over all nodes: has a test of its own',
  'Subscription.transactionUpdates(after)': 'a number in the log of the node: has a test of its own',
  'Subscription.transactionUpdates(filter.idOrHash)': 'reads the log of the node: has a test of its own',
  'Subscription.transactionUpdates(filter.search)': 'reads the log of the node: has a test of its own',
  'Query.transactionStats': 'names nothing: test/transactions/filters.test.ts has two nodes',
  'Query.auditRecords(filter.hideReadsOf)': 'leaves out records, whoever is named',
  ...Object.fromEntries(
    [
      'attemptedUsername',
      'clientId',
      'correlationId',
      'correlationIds',
      'hideReadsOf',
      'path',
      'pathPrefix',
      'subject',
    ].map((name) => [
      `Mutation.requestAuditExport(filter.${name})`,
      'the export has records of the own node: test/audit/audit-export-job.test.ts has two nodes',
    ]),
  ),
  'Mutation.changeOwnPassword': 'the caller',
  'Mutation.endOwnSessions': 'the caller',
  'Query.networkCurrencies(networkId)': 'networks are of no node',
  'Query.me': 'the caller',
  'Mutation.markSeen(id)': 'a hash of what is in a group: test/graphql/desk.test.ts has two nodes',
  'Query.needsAttention': 'names nothing: test/graphql/desk.test.ts has two nodes',
  'Query.search(search)': 'finds things of all kinds: test/graphql/desk.test.ts has two nodes',
  'Subscription.transactionUpdates(filter.error)': 'reads the log of the node: has a test of its own',
  'Query.gasFees': 'of no node',
};

/** What GraphQL says of a thing that is not there. */
const HIDES = /^\{"data":\{"\w+":null\}\}$|^"__typename":"NotFoundError"$|^"code":"NOT_FOUND"$/;

const fixture = beforeTests(twoMarkedNodes);
let p: Portcullis;
let as: TwoMarkedNodes['as'];
let mine: Things;
let theirs: Things;
let before: unknown;

beforeAll(async () => {
  ({ p, mine, theirs, as } = fixture);
  before = await fixture.contentOf(theirs.nodeId);
});

function notification(members: object): Buffer {
  const at = '2026-03-01T00:00:00Z';
  return Buffer.from(JSON.stringify({ ...members, created_at: at, updated_at: at }));
}

function tellsNothingOf(of: Things, text: string): void {
  for (const mark of marksOf(of)) expect(text).not.toContain(mark);
}

describe('the table of this test', () => {
  it('D4-01: covers every argument of the schema that can name an object', () => {
    const lists = Object.keys(LISTS).flatMap((list) => [`${list}(after)`, `${list}(before)`]);
    const covered = new Set([...ROWS.map(({ covers }) => covers), ...lists, ...Object.keys(APART)]);
    expect(slots.filter((slot) => !covered.has(slot))).toEqual([]);
  });

  it('D4-01: covers every route, and every id in its path', () => {
    const wanted = endpoints.flatMap(({ methods, path }) => {
      const names = path.match(/\{\w+\}/g) ?? [''];
      return methods.flatMap((method) => names.map((name) => [`${method} ${path}`, name] as const));
    });
    const covered = [...ROWS.map(({ covers }) => covers), ...NAMELESS, ...MCP];
    const lacking = wanted.filter(
      ([route, name]) => !covered.some((row) => row === route || (row.startsWith(`${route} `) && row.includes(name))),
    );
    expect(lacking).toEqual([]);
  });
});

describe('lists and routes without an id', () => {
  it.each(queries.filter(({ args }) => !args.some(isRequiredArgument)).map((field) => [field.name, field] as const))(
    'D4-01: %s returns objects of the own node, and none of the other',
    async (name, field) => {
      const text = `query { ${selectionOf(field, 2)} }`.replace('first: 3', 'first: 60');
      const answer = await operate(as(mine), text);
      expect([answer.status, answer.json.errors]).toEqual([200, undefined]);
      tellsNothingOf(theirs, answer.text);
      if (GLOBAL.has(name)) return;
      expect(marksOf(mine).some((mark) => answer.text.includes(mark))).toBe(true);
      const { text: own } = await operate(as(theirs), text);
      expect(marksOf(theirs).some((mark) => own.includes(mark))).toBe(true);
    },
  );

  it('D4-01: GET /v1/accounts returns accounts of the own node, and none of the other', async () => {
    const { text, json } = await as(mine)('GET', '/v1/accounts?limit=100&include_deleted=true');
    expect(json.data.map((row: { node_id: string }) => row.node_id)).toEqual(json.data.map(() => mine.nodeId));
    expect(text).toContain(mine.account);
    tellsNothingOf(theirs, text);
  });

  it.each(NAMELESS)('D4-01: %s reveals nothing of any node', async (route) => {
    const [method = '', path = ''] = route.replace('*', 'openapi.json').split(' ');
    const { text } = await as(mine)(method, path);
    for (const of of [mine, theirs]) tellsNothingOf(of, text);
  });

  it.each(MCP)('D4-01: %s reveals nothing of the other node', async (route) => {
    const [method = '', path = ''] = route.replace('**', 'x').split(' ');
    const json = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'list_accounts', arguments: {} } };
    const headers = {
      authorization: `Bearer ${mine.client.client_secret}`,
      accept: 'application/json, text/event-stream',
    };
    const { text } = await as(mine)(method, path, { headers, ...(method === 'POST' ? { json } : {}) });
    tellsNothingOf(theirs, text);
  });
});

describe('objects of another node', () => {
  it.each(ROWS.map((row) => [row.covers, row] as const))(
    'D4-01: %s gives the response of an unknown id, and in GraphQL of one that is no UUID',
    async (_name, row) => {
      const id = row.thing(theirs);
      const nowhere = missing(id);
      const foreign = told(await row.ask(as(mine), id, mine, theirs), id);
      const absent = told(await row.ask(as(mine), nowhere, mine, theirs), nowhere);
      tellsNothingOf(theirs, foreign);
      expect(withoutNewIds(foreign)).toBe(withoutNewIds(absent));
      expect(foreign).toContain(row.says);
      // A member of an input is refused as such.
      if (!HIDES.test(row.says) || row.covers.includes('(input.')) return;
      const malformed = 'no uuid';
      expect(told(await row.ask(as(mine), malformed, mine, theirs), malformed)).toBe(absent);
    },
  );

  it.each(Object.keys(LISTS).flatMap((list) => ['after', 'before'].map((name) => [list, name] as const)))(
    'D4-01 DG-12: a cursor of another node for %s(%s) gets the error of a forged cursor',
    async (list, name) => {
      const cursor = /"cursor":"([^"]+)"/.exec((await askList(as(theirs), list, 'first: 1', theirs)).text)?.[1] ?? '';
      const ask = async (given: string, by = mine) =>
        told(await askList(as(by), list, `${name}: "${given}"`, by), given);
      const foreign = await ask(cursor);
      expect(foreign).toBe(await ask(missing(cursor)));
      expect(foreign).toContain(`${name}: is not a cursor of this list`);
      expect(await ask(cursor, theirs)).not.toContain('errors');
    },
  );

  it('D4-01 D7-03: users in a file are matched only against the own node', async () => {
    const { email, external_id: externalId, wallet_address: address } = theirs.users.at(-1) ?? {};
    const body = browserForm(`wallet_address,email,external_id,kyc_sent\n${address},${email},${externalId},true\n`);
    const headers = { authorization: `Bearer ${mine.token}` };
    const answer = await fetch(`${p.url}/graphql`, { method: 'POST', body, headers });
    const { id } = (await answer.json()).data.result;
    const text = 'subscription { migrationProgress(id: $id) { done success skipped failed } }';
    const progress = await operate(as(mine), text, { id }, 'text/event-stream');
    expect(progress.text).toContain('{"done":true,"success":1,"skipped":0,"failed":0}');
  });

  it('D4-01 D6-13: registering a transaction id of another node is a duplicate, and reveals nothing more', async () => {
    const register = (id: string, type: number) =>
      operate(
        as(mine),
        `mutation { registerTransaction(input: {id: "${id}", collection: USER_TRANSACTIONS, type: ${type}}) { ... on Error { message } ... on DuplicateError { reason } } }`,
      );
    const foreign = told(await register(theirs.transaction, 1), theirs.transaction);
    expect(foreign).toBe(told(await register(mine.transaction, 2), mine.transaction));
    expect(foreign).toContain('"reason":"duplicate_id"');
    tellsNothingOf(theirs, foreign);
  });

  it.each(['0', '1'])('D4-01 D6-17: transactionUpdates after %s delivers only the own log', async (after) => {
    const query = `subscription { transactionUpdates(after: "${after}") { cursor transaction { id error } } }`;
    await using reader = await openStream(p, mine.token, query);
    for (let at = Number(after); at < 2; at += 1) {
      const { data } = await reader.nextJson();
      expect(data.transactionUpdates.transaction).toEqual({ id: mine.transaction, error: mine.transaction });
    }
  });

  it('D4-01: the other node is unchanged after these requests', async () => {
    expect(await fixture.contentOf(theirs.nodeId)).toEqual(before);
    for (const token of [theirs.token, theirs.login.access_token]) {
      expect((await p.call('GET', '/v1/accounts', { token })).status).toBe(200);
    }
  });
});

describe('a request by the own node', () => {
  // What is done is told at once.
  beforeAll(async () => {
    const body = notification({ id: theirs.transaction, type: 1, status: 3 });
    await p.service.context.transactions.applyBatch('transactions.user', [{ body, correlationId: 'surface' }]);
  });

  it.each(ROWS.filter(({ alike }) => alike === undefined).map((row) => [row.covers, row] as const))(
    'D4-01: %s returns the object that is hidden from the other node',
    async (_name, row: SurfaceRow) => {
      const id = row.thing(theirs);
      expect(told(await row.ask(as(theirs), id, theirs, theirs), id)).not.toContain(row.says);
    },
  );
});
