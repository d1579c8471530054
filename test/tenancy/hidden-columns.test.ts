import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { isRequiredArgument } from 'graphql';
import { DefaultQueryExecutor, type QueryResult } from 'kysely';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { graphqlSchema } from '../../src/app/graphql-schema.ts';
import { TOOLS } from '../../src/app/tools.ts';
import { readGatewayConfig } from '../../src/gateway/endpoints/gateway-config.ts';
import { beforeTests } from '../support/harness/before-tests.ts';
import { callOf, post } from '../support/mcp/agents.ts';
import { rows } from '../support/oauth/clients.ts';
import { operate } from '../support/tenancy/graphql-rows.ts';
import type { Things } from '../support/tenancy/marked-node.ts';
import { selectionOf } from '../support/tenancy/schema-slots.ts';
import { twoMarkedNodes } from '../support/tenancy/two-marked-nodes.ts';

/** A member that every row has while it is planted, and what it holds. */
const MEMBER = 'of_no_face';
const VALUE = `hidden-${randomUUID()}`;

const queries = Object.values(graphqlSchema().getQueryType()?.getFields() ?? {});
const { endpoints } = readGatewayConfig(join(import.meta.dirname, '../../gateway.yaml'));
const reads = endpoints.filter(({ methods }) => methods.includes('GET')).map(({ path }) => path);
const tools = [...TOOLS.values()].filter(({ listed }) => listed.annotations?.readOnlyHint);

const fixture = beforeTests(twoMarkedNodes);
let mine: Things;

beforeAll(async () => {
  ({ mine } = fixture);
  plantInEveryRow();
});
afterAll(async () => {
  vi.restoreAllMocks();
});

/** Makes every query return rows that have the member, as they would of a table with one more column. */
function plantInEveryRow(): void {
  const executor = Object.getPrototypeOf(DefaultQueryExecutor.prototype);
  const execute: (...given: unknown[]) => Promise<QueryResult<object>> = executor.executeQuery;
  vi.spyOn(executor, 'executeQuery').mockImplementation(async function (this: unknown, ...given: unknown[]) {
    const result = await execute.apply(this, given);
    for (const row of result.rows) Object.assign(row, { [MEMBER]: VALUE });
    return result;
  });
}

/** The value of an argument or of a part of a path, by its name. */
function namedValue(name: string): unknown {
  const given: Readonly<Record<string, unknown>> = { ...mine, balances: [], id: mine.asset, key: mine.exportKey };
  const value = given[name.replace('_id', '')];
  if (value === undefined) throw new Error(`no value for ${name}`);
  return value;
}

function showsNothingHidden(text: string): void {
  expect(text).not.toContain(MEMBER);
  expect(text).not.toContain(VALUE);
}

describe('a column that no interface declares', () => {
  it('is in every row read from the database', async () => {
    const read = await rows(fixture.p).run((k) => k.selectFrom('accounts').select('id'));
    expect(read.length).toBeGreaterThan(0);
    expect(JSON.stringify(read).split(VALUE)).toHaveLength(read.length + 1);
  });

  it('is detected by this test when a row is returned as it is', async () => {
    const [account] = await rows(fixture.p).run((k) => k.selectFrom('accounts').select('id'));
    expect(() => showsNothingHidden(JSON.stringify({ ...account }))).toThrow(MEMBER);
  });

  it.each(reads)('is not in the response of GET %s', async (path) => {
    const filled = path.replace(/\{(\w+)\}/g, (_match, name: string) => String(namedValue(name))).replace(/\*+/, 'x');
    showsNothingHidden((await fixture.as(mine)('GET', filled)).text);
  });

  it.each(queries.map((field) => [field.name, field] as const))(
    'is not in the response of the query %s',
    async (_name, field) => {
      const required = field.args.filter(isRequiredArgument).map(({ name }) => name);
      const given = required.map((name) => `${name}: $${name}`).join(', ');
      const selection = selectionOf(field, 3);
      const text = selection.replace(/^\w+ ?(\()?/, (start, open) => {
        if (given === '') return start;
        return open ? `${field.name}(${given}, ` : `${field.name}(${given}) `;
      });
      const input = { ruleId: mine.rule, balances: [] };
      const ids = { id: idOf(field.name), walletId: mine.wallet, ruleId: mine.rule };
      const facts = { balances: [] };
      const answer = await operate(fixture.as(mine), `query { ${text} }`, {
        ...{ ...ids, input, facts, search: 'mark' },
        ...DAY,
      });
      expect([answer.status, answer.json.errors]).toEqual([200, undefined]);
      showsNothingHidden(answer.text);
    },
  );

  it.each(tools.map((tool) => [tool.name, tool] as const))(
    'is not in the result of the tool %s',
    async (name, { listed }) => {
      const { required = [] } = listed.inputSchema;
      const more = name === 'preview_wallet_rule' ? { rule_id: mine.rule } : {};
      const given = Object.fromEntries(required.map((argument) => [argument, namedValue(argument)]));
      const answer = await post(fixture.p, mine.client.client_secret, callOf(name, { ...given, ...more }));
      expect(answer.json.result.isError ?? false).toBe(false);
      showsNothingHidden(answer.text);
    },
  );
});

const DAY = { since: '2026-01-01T00:00:00Z', until: '2026-01-02T00:00:00Z', bucket: 'DAY' };

/** The id of what a query asks for, of which two have other names than the query. */
function idOf(query: string): unknown {
  const names: Readonly<Record<string, keyof Things>> = { walletRule: 'rule', client: 'idleClient' };
  return mine[names[query] ?? (query as keyof Things)];
}
