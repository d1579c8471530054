import { getNamedType, isObjectType } from 'graphql';
import { Kysely } from 'kysely';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, inject, it, vi } from 'vitest';
import { graphqlSchema } from '../../src/app/graphql-schema.ts';
import {
  askingFor,
  fillEveryList,
  GLOBAL_LISTS,
  LISTS,
  type List,
  LONG,
  rowsOf,
  SHORT,
} from '../support/graphql/every-list.ts';
import { type Fixture, OTHER_NODE, startFixture } from '../support/graphql/fixture.ts';
import { embeddedDatabase, scratchDatabase } from '../support/harness/databases.ts';
import { inTurn } from '../support/harness/in-turn.ts';
import { selectionOf } from '../support/tenancy/schema-slots.ts';

interface Connection {
  totalCount: number;
  pageInfo: { hasNextPage: boolean; hasPreviousPage: boolean; startCursor: string | null; endCursor: string | null };
  edges: { cursor: string; node: { key: string | number } }[];
}

interface Place {
  first?: number | null;
  last?: number | null;
  after?: string | null;
  before?: string | null;
}

const schema = graphqlSchema();
const everyList = Object.entries(LISTS).map(([name, list], turn) => [name, list, turn] as const);
/** What a batch takes. */
const BATCH = 10;

const isEmbedded = inject('isThorough') || inject('addresses').postgres === undefined;

let fixture: Fixture;
let short: string;
/** The cursor of the first row of each list of `OTHER_NODE`; and one of `NODE`, of a row that both nodes have. */
const firstCursors: Record<string, string> = {};
let ofOtherNode: string;

beforeAll(async () => {
  const database = await (isEmbedded ? embeddedDatabase() : scratchDatabase());
  fixture = await startFixture({ maxCost: Number.MAX_SAFE_INTEGER }, database);
  await fillEveryList(fixture);
  short = fixture.newToken({ nodeId: OTHER_NODE });
  const firsts = await answersTo(everyList.map(([, list]) => ({ query: askingFor(list), variables: { first: 1 } })));
  for (const [index, [name]] of everyList.entries()) {
    const { data } = firsts[index];
    firstCursors[name] = (data.list ?? data.of.list).edges[0].cursor;
  }
  const { json } = await fixture.query('{ networks(first: 1) { pageInfo { endCursor } } }');
  ofOtherNode = json.data.networks.pageInfo.endCursor;
});
afterAll(() => fixture[Symbol.asyncDispose]());

async function page(list: List, place: Place, token = short): Promise<Connection> {
  const { json, text } = await fixture.query(askingFor(list), { variables: { ...place }, token });
  if (json?.errors) throw new Error(text);
  return json.data.list ?? json.data.of.list;
}

/** The answers to many operations, as few requests as there can be. */
async function answersTo(operations: { query: string; variables: Place }[]) {
  const answers = [];
  for (let from = 0; from < operations.length; from += BATCH) {
    const batch = operations.slice(from, from + BATCH);
    answers.push(...(await fixture.post(batch, { authorization: `Bearer ${short}` })).json);
  }
  return answers;
}

async function messagesTo(list: List, places: Place[]): Promise<string[]> {
  const answers = await answersTo(places.map((variables) => ({ query: askingFor(list), variables })));
  return answers.map(({ errors, data }) => {
    expect(data?.list ?? data?.of ?? null).toBeNull();
    expect(errors).toHaveLength(1);
    return errors[0].message;
  });
}

function keysOf({ edges }: Connection): string[] {
  return edges.map(({ node }) => String(node.key));
}

describe('the table of lists', () => {
  it('DG-02: contains every connection of the schema', () => {
    const connections = Object.values(schema.getTypeMap())
      .filter(isObjectType)
      .flatMap((type) => Object.values(type.getFields()).map((field) => [`${type.name}.${field.name}`, field] as const))
      .filter(([, { type }]) => getNamedType(type).name.endsWith('Connection'))
      .map(([coordinate]) => coordinate);
    expect(connections.sort()).toEqual(Object.keys(LISTS).sort());
  });
});

/** In a quick run each list has its turn at one of so many. */
const EVERY = 3;
/** Both nodes have rows of it, and so its cursors. */
const OF_BOTH = 'Query.networks';
/** In a quick run each list has its turn at some of what all have by one mechanism. */
const isAll = inject('isThorough');

describe.each(everyList)('%s', (name, list, turn) => {
  it('DG-02 DG-12 DG-13: returns each row once and in order by pages of any size, in both directions', async () => {
    const rows = await rowsOf(fixture, list);
    expect(rows).toHaveLength(GLOBAL_LISTS.includes(name) ? LONG : SHORT);
    for (const size of inTurn(GLOBAL_LISTS.includes(name) ? [7, 13] : [1, 3, 7], EVERY, turn)) {
      const forward: string[] = [];
      const backward: string[] = [];
      for (let place: Place | undefined = { first: size }; place; ) {
        const { edges, pageInfo, totalCount } = await page(list, place);
        expect(totalCount).toBe(rows.length);
        expect([pageInfo.startCursor, pageInfo.endCursor]).toEqual([edges.at(0)?.cursor, edges.at(-1)?.cursor]);
        expect(pageInfo.hasPreviousPage).toBe(forward.length > 0);
        forward.push(...edges.map(({ node }) => String(node.key)));
        place = pageInfo.hasNextPage ? { first: size, after: pageInfo.endCursor } : undefined;
      }
      for (let place: Place | undefined = { last: size }; place; ) {
        const { edges, pageInfo } = await page(list, place);
        expect(pageInfo.hasNextPage).toBe(backward.length > 0);
        backward.unshift(...edges.map(({ node }) => String(node.key)));
        place = pageInfo.hasPreviousPage ? { last: size, before: pageInfo.startCursor } : undefined;
      }
      expect([forward, backward]).toEqual([rows, rows]);
    }
  });

  it.runIf(isAll || turn % 2 === 0)('DG-02: is bounded by after and before, and empty for a size of 0', async () => {
    const rows = await rowsOf(fixture, list);
    const { edges } = await page(list, { first: SHORT });
    const [after, before] = [edges[1]?.cursor ?? null, edges[6]?.cursor ?? null];
    expect(keysOf(await page(list, { after, before }))).toEqual(rows.slice(2, 6));
    expect(keysOf(await page(list, { after, before, first: 3 }))).toEqual(rows.slice(2, 5));
    expect(keysOf(await page(list, { after, before, last: 3 }))).toEqual(rows.slice(3, 6));
    expect(keysOf(await page(list, { after: before, before: after }))).toEqual([]);
    for (const place of [{ first: 0 }, { last: 0 }]) {
      const empty = await page(list, place);
      expect(empty).toMatchObject({ edges: [], pageInfo: { startCursor: null, endCursor: null } });
      expect(empty.totalCount).toBe(rows.length);
      expect([empty.pageInfo.hasNextPage, empty.pageInfo.hasPreviousPage].sort()).toEqual([false, true]);
    }
  });

  it.runIf(isAll || turn % 2 === 1 || name === OF_BOTH)(
    'DG-02 DG-12: rejects invalid pages and foreign cursors, each with one clear error',
    async () => {
      const own = firstCursors[name] ?? '';
      const cursors = everyList.flatMap(([other]) => (other === name ? [] : [firstCursors[other] ?? '']));
      const forged = [
        ...inTurn(cursors, EVERY, turn),
        ofOtherNode,
        '',
        'x',
        own.slice(1),
        `${own}=`,
        `${own}A`,
        own.toLowerCase(),
      ];
      const messages = await messagesTo(
        list,
        forged.map((after) => ({ after })),
      );
      expect(new Set(messages)).toEqual(new Set(['after: is not a cursor of this list']));
      expect(await messagesTo(list, [{ before: cursors[0] ?? '' }])).toEqual(['before: is not a cursor of this list']);
      expect(await messagesTo(list, [{ first: 1, last: 1 }])).toEqual(['first: must not be combined with last']);
      expect(await messagesTo(list, [{ first: -1 }, { last: -1 }])).toEqual([
        expect.stringContaining('first'),
        expect.stringContaining('last'),
      ]);
      expect(fixture.faults).toEqual([]);
    },
  );

  it.runIf(isAll || turn % 2 === 0)('DG-12: rejects a cursor of which any byte was changed', async () => {
    const bytes = Buffer.from(firstCursors[name] ?? '', 'base64url');
    const changed = inTurn([...bytes.keys()], EVERY, turn).map((at) => {
      const forged = Buffer.from(bytes);
      forged.writeUInt8((bytes[at] ?? 0) ^ 1, at);
      return { after: forged.toString('base64url') };
    });
    expect(new Set(await messagesTo(list, changed))).toEqual(new Set(['after: is not a cursor of this list']));
  });

  it('DG-02: counts its rows only when totalCount is requested', async () => {
    const [bare] = await statementsOf(askingFor(list, 'edges { cursor } pageInfo { hasNextPage }'), [{}]);
    const [counted] = await statementsOf(askingFor(list, 'totalCount edges { cursor } pageInfo { hasNextPage }'), [{}]);
    expect(counted).toBe((bare ?? 0) + 1);
  });
});

/** How many statements each answer takes, through any door of the database; one that takes no more than `enough` is asked for once. */
async function statementsOf(document: string, places: Place[], token = short, enough = 0): Promise<number[]> {
  // On PostgreSQL, prepared statements pass by the query builder.
  const run = isEmbedded ? vi.spyOn(Kysely.prototype, 'executeQuery') : vi.spyOn(pg.Query.prototype, 'submit');
  const unscoped = vi.spyOn(fixture.database.db, 'unscoped');
  const counts: number[] = [];
  for (const variables of places) {
    let least = Number.POSITIVE_INFINITY;
    // On a busy machine, statements of the background fall into a measurement.
    for (let attempt = 0; attempt < 3 && least > enough; attempt += 1) {
      run.mockClear();
      const { json, text } = await fixture.query(document, { variables: { ...variables }, token });
      if (json?.errors) throw new Error(text);
      least = Math.min(least, run.mock.calls.length);
    }
    counts.push(least);
  }
  expect(unscoped).not.toHaveBeenCalled();
  run.mockRestore();
  unscoped.mockRestore();
  return counts;
}

describe('the number of SQL statements', () => {
  const roots = everyList.filter(([name]) => name.startsWith('Query.')).map(([name]) => name);
  /** What a root list needs to be asked for: the first wallet, the first rule of it, or nothing. */
  const argumentOf = async (names: readonly string[]) => {
    const { json } = await fixture.query(
      '{ wallets(first: 1) { edges { node { id rules { edges { node { id } } } } } } }',
    );
    const wallet = json.data.wallets.edges[0].node;
    if (names.includes('walletId')) return `walletId: "${wallet.id}", `;
    return names.includes('ruleId') ? `ruleId: "${wallet.rules.edges[0].node.id}", ` : '';
  };

  /** One for each list and each total, one for all accounts of wallets, all locks of supervisors, all previous secrets of clients. */
  const STATEMENTS: Record<string, number> = {
    ...{ 'Query.accounts': 14, 'Query.wallets': 19, 'Query.walletRules': 5, 'Query.networks': 2, 'Query.users': 4 },
    ...{ 'Query.migrations': 6, 'Query.transactions': 7, 'Query.assets': 4, 'Query.clients': 5 },
    ...{
      'Query.supervisors': 5,
      'Query.auditRecords': 2,
      'Query.auditExports': 2,
      'Query.walletRuleVersions': 3,
      'Query.networkCurrencies': 2,
    },
  };

  it.each(roots)(
    'DG-02: of %s with all its fields, three objects deep, is the same for 50 rows as for one',
    async (name) => {
      const field = schema.getQueryType()?.getFields()[name.replace('Query.', '')];
      if (!field) throw new Error(`no ${name}`);
      const required = await argumentOf(field.args.map((arg) => arg.name));
      const selection = selectionOf(field, 3, 2).replace('(first: 2)', `(${required}first: $first)`);
      const sizes = (inject('isThorough') ? [1, 10, LONG] : [LONG]).map((first) => ({ first }));
      const most = STATEMENTS[name] ?? 0;
      const counts = await statementsOf(`query ($first: Int) { ${selection} }`, sizes, fixture.token, most);
      // Loads of several depths that happen to begin in the same turn of the event loop share a statement.
      expect(Math.max(...counts)).toBeLessThanOrEqual(most);
    },
  );

  it.each(roots.filter((name) => !name.startsWith('Query.walletRule')))(
    'DG-02: %s returns 20 rows by default',
    async (name) => {
      const list = LISTS[name];
      if (!list) throw new Error(`no ${name}`);
      const { edges, totalCount } = await page(list, {}, fixture.token);
      expect(edges).toHaveLength(20);
      expect(totalCount).toBe(name === 'Query.wallets' ? 2 * LONG : LONG);
    },
  );
});
