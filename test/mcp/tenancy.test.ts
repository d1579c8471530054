import { beforeAll, describe, expect, it } from 'vitest';
import { TOOLS } from '../../src/app/tools.ts';
import { beforeTests } from '../support/harness/before-tests.ts';
import { callOf, post } from '../support/mcp/agents.ts';
import { marksOf, type Things } from '../support/tenancy/marked-node.ts';
import { missing, told, withoutNewIds } from '../support/tenancy/surface-row.ts';
import { twoMarkedNodes } from '../support/tenancy/two-marked-nodes.ts';
import { limit } from '../support/wallet-rules/rules.ts';

/** A tool's argument that names a thing of a node, and what else the call needs. */
interface Place {
  tool: string;
  argument: string;
  thing: (of: Things) => string;
  more?: (own: Things) => object;
}

const account = ({ account: id }: Things) => id;
const wallet = ({ wallet: id }: Things) => id;
const rule = ({ rule: id }: Things) => id;
const transaction = ({ transaction: id }: Things) => id;
const migration = ({ migration: id }: Things) => id;
const user = ({ user: id }: Things) => id;

const PLACES: readonly Place[] = [
  { tool: 'list_accounts', argument: 'account_id', thing: account },
  { tool: 'list_wallets', argument: 'wallet_id', thing: wallet },
  { tool: 'list_wallets', argument: 'account_id', thing: account },
  { tool: 'list_networks', argument: 'wallet_id', thing: wallet },
  { tool: 'assign_network', argument: 'wallet_id', thing: wallet, more: ({ network: network_id }) => ({ network_id }) },
  { tool: 'list_wallet_rules', argument: 'wallet_id', thing: wallet },
  { tool: 'get_wallet_rule', argument: 'rule_id', thing: rule },
  { tool: 'get_wallet_rule', argument: 'rule_id', thing: rule, more: () => ({ versions: 9 }) },
  { tool: 'preview_wallet_rule', argument: 'rule_id', thing: rule, more: () => ({ balances: [] }) },
  { tool: 'preview_wallet_rule', argument: 'wallet_id', thing: wallet, more: () => ({ balances: [] }) },
  { tool: 'create_wallet_rule', argument: 'wallet_id', thing: wallet, more: () => ({ rule: limit() }) },
  {
    tool: 'create_wallet_rule',
    argument: 'wallet_id',
    thing: wallet,
    more: ({ key }) => ({ rule: limit({ network_id: key.length, name: '' }), idempotency_key: key }),
  },
  { tool: 'replace_wallet_rule', argument: 'rule_id', thing: rule, more: () => ({ rule: limit() }) },
  { tool: 'replace_wallet_rule', argument: 'rule_id', thing: rule, more: () => ({ status: 'disabled' }) },
  { tool: 'get_transaction', argument: 'transaction_id', thing: transaction },
  { tool: 'get_transaction', argument: 'transaction_id', thing: transaction, more: () => ({ events: 9 }) },
  { tool: 'list_users', argument: 'user_id', thing: user },
  { tool: 'get_migration', argument: 'migration_id', thing: migration },
  { tool: 'get_migration', argument: 'migration_id', thing: migration, more: () => ({ rows: 9 }) },
];

/** Arguments that name nothing of one node: networks are of none; ids inside of a rule are stored as they came. */
const APART: ReadonlySet<string> = new Set(['list_wallets.network_id', 'assign_network.network_id']);

const fixture = beforeTests(twoMarkedNodes);
let mine: Things;
let theirs: Things;
let before: unknown;

beforeAll(async () => {
  ({ mine, theirs } = fixture);
  before = await fixture.contentOf(theirs.nodeId);
});

const call = (node: Things, tool: string, args: object) =>
  post(fixture.p, node.client.client_secret, callOf(tool, args), { headers: { 'x-correlation-id': 'tools' } });

function tellsNothingOf(of: Things, text: string): void {
  for (const mark of marksOf(of)) expect(text).not.toContain(mark);
}

it('D4-01: the table of this test covers every tool argument that is an id', () => {
  const ids = [...TOOLS.values()].flatMap(({ name, listed }) =>
    Object.keys(listed.inputSchema.properties ?? {}).flatMap((member) =>
      member.endsWith('_id') && member !== 'external_id' ? `${name}.${member}` : [],
    ),
  );
  const covered = new Set([...PLACES.map(({ tool, argument }) => `${tool}.${argument}`), ...APART]);
  expect(ids.filter((id) => !covered.has(id))).toEqual([]);
});

describe('objects of another node', () => {
  it.each(PLACES.map((place) => [place.tool, place.argument, place] as const))(
    'D4-01 D8-06: %s(%s) of another node gives the response of an unknown id, byte for byte',
    async (tool, argument, { thing, more = () => ({}) }) => {
      const id = thing(theirs);
      const nowhere = missing(id);
      const ask = async (named: string) => told(await call(mine, tool, { ...more(mine), [argument]: named }), named);
      const foreign = await ask(id);
      tellsNothingOf(theirs, foreign);
      expect(withoutNewIds(foreign)).toBe(withoutNewIds(await ask(nowhere)));
    },
  );

  it.each([...TOOLS.keys()].filter((name) => /^list_/.test(name) && !/wallet_/.test(name)))(
    'D4-01 D8-06: %s lists nothing of another node',
    async (tool) => {
      const { text, json } = await call(
        mine,
        tool,
        tool === 'list_gas_fees' ? {} : { limit: 100, include_total: true },
      );
      expect(json.result.isError).toBeUndefined();
      tellsNothingOf(theirs, text);
    },
  );

  it('D4-01 DG-12: a cursor of another node gets the error of a forged cursor', async () => {
    const list = async (node: Things, args: object) => call(node, 'list_users', { limit: 1, ...args });
    const cursor: string = (await list(theirs, {})).json.result.structuredContent.next_cursor;
    const ask = async (given: string) => told(await list(mine, { cursor: given }), given);
    const foreign = await ask(cursor);
    expect(foreign).toContain('invalid_arguments');
    expect(foreign).toBe(await ask(missing(cursor)));
  });

  it('D4-01 D7-03: a user of another node does not count as a duplicate', async () => {
    const [{ email, external_id, wallet_address } = { email: '', external_id: '', wallet_address: '' }] = theirs.users;
    const users = [{ email, external_id, wallet_address, kyc_sent: true }];
    const { json } = await call(mine, 'migrate_users', { users });
    expect(json.result.structuredContent).toMatchObject({ success: 1 });
  });

  it('D4-01: the other node is unchanged after these calls', async () => {
    expect(await fixture.contentOf(theirs.nodeId)).toEqual(before);
  });

  it('D4-01 D8-06: an agent of the other node reads them', async () => {
    for (const { tool, argument, thing } of PLACES.filter((place) => /^(get|list)_/.test(place.tool))) {
      const { text, json } = await call(theirs, tool, { [argument]: thing(theirs) });
      expect([tool, json.result.isError]).toEqual([tool, undefined]);
      expect(text).toMatch(/"data":\[\{|"id":/);
    }
  });
});
