import { beforeAll, describe, expect, it } from 'vitest';
import { OTHER_NODE, useFixture } from '../support/graphql/fixture.ts';
import {
  AssignNetworkDocument,
  CreateWalletRuleDocument,
  NetworksDocument,
  SetWalletRuleStatusDocument,
  WalletDocument,
} from './generated/graphql.ts';

const MISSING = 'ffffffff-0000-4000-8000-00000000000f';
const CHAIN = 'cccccccc-0000-4000-8000-000000000003';
const OTHER_CHAIN = 'cccccccc-0000-4000-8000-000000000009';
const RULES = 23;
const networks = Array.from({ length: 5 }, (_, index) => `99999999-0000-4000-8000-00000000000${9 - index}`);
const strange = '99999999-0000-4000-8000-0000000000aa';

const fixture = useFixture();
let account: string;
let wallets: string[];
let ruleIds: string[];

beforeAll(async () => {
  const door = fixture.database.db.unscoped('test');
  await door.run((k) => k.insertInto('chains').values({ id: OTHER_CHAIN, name: 'polygon' }));
  const rows = networks.map((id, index) => ({ id, chain_id: CHAIN, name: `net ${index}`, created_at: minute(index) }));
  await door.run((k) => k.insertInto('networks').values(rows));
  await door.run((k) =>
    k.insertInto('networks').values({ id: strange, chain_id: OTHER_CHAIN, name: 'far', created_at: minute(9) }),
  );
  [account = ''] = await fixture.addAccounts(1);
  wallets = await fixture.addWallets(account, 4);
  const [foreign = ''] = await fixture.addAccounts(1, { nodeId: OTHER_NODE });
  const [foreignWallet = ''] = await fixture.addWallets(foreign, 1, OTHER_NODE);
  ruleIds = [];
  for (let index = 0; index < RULES; index += 1) ruleIds.push(await addRule(wallets[0] ?? ''));
  for (const wallet of wallets.slice(1)) await addRule(wallet);
  await addRule(foreignWallet, fixture.newToken({ nodeId: OTHER_NODE }));
  for (const id of networks.slice(0, 3)) await assign(wallets[0] ?? '', id);
  await assign(wallets[1] ?? '', networks[4] ?? '');
});

function minute(index: number): string {
  return new Date(Date.UTC(2026, 0, 1) + index * 60_000).toISOString();
}

async function addRule(walletId: string, token = fixture.token): Promise<string> {
  const permissionlessTransferLimitRule = { maxAmount: 1, timePeriod: 'day', timePeriodValue: 1 };
  const type = 'permissionless_transfer_limit';
  const input = { name: '', type, networkId: MISSING, networkCurrencyId: MISSING, permissionlessTransferLimitRule };
  const { result } = await fixture.run(CreateWalletRuleDocument, { walletId, input }, { token });
  return result.__typename === 'WalletRule' ? result.id : '';
}

async function assign(walletId: string, networkId: string, token = fixture.token) {
  return (await fixture.run(AssignNetworkDocument, { walletId, networkId }, { token })).result;
}

function idOf(edge: { node: { id: string } }): string {
  return edge.node.id;
}

describe('walletRules', () => {
  it('DG-13 D4-01: without a wallet are the rules of every wallet of the node, filtered by type and time of the last change', async () => {
    const all = async (more = '') => {
      const list = `walletRules(first: 100${more}) { totalCount edges { node { id type updatedAt } } }`;
      const { json } = await fixture.query(`{ ${list} }`);
      expect(json.data.walletRules.totalCount).toBe(json.data.walletRules.edges.length);
      return json.data.walletRules.edges.map(({ node }: { node: object }) => node);
    };
    const rules = await all();
    expect(rules).toHaveLength(RULES + 3);
    expect(rules.slice(0, RULES).map(({ id }: { id: string }) => id)).toEqual(ruleIds);
    expect(await all(', type: "permissionless_transfer_limit"')).toEqual(rules);
    expect(await all(', type: "auto_transfer"')).toEqual([]);
    await new Promise((resolve) => setTimeout(resolve, 5));
    const since = new Date().toISOString();
    await fixture.run(SetWalletRuleStatusDocument, { id: ruleIds[4] ?? '', status: 'DISABLED' });
    const changed = await all(`, changedSince: "${since}"`);
    expect(changed.map(({ id }: { id: string }) => id)).toEqual([ruleIds[4]]);
    expect(await all(`, changedSince: "${since}", walletId: "${wallets[1]}"`)).toEqual([]);
    await fixture.run(SetWalletRuleStatusDocument, { id: ruleIds[4] ?? '', status: 'ACTIVE' });
  });
});

describe('networks', () => {
  it('DG-13: are every network in the order of creation, for any token', async () => {
    const token = fixture.newToken({ permissions: [], nodeId: OTHER_NODE });
    const all = (await fixture.run(NetworksDocument, {}, { token })).networks;
    expect(all.totalCount).toBe(6);
    expect(all.edges.map(idOf)).toEqual([...networks, strange]);
    expect(all.edges[5]?.node).toEqual({ id: strange, name: 'far', chain: 'polygon' });
    const first = (await fixture.run(NetworksDocument, { first: 4 })).networks;
    const rest = (await fixture.run(NetworksDocument, { first: 4, after: first.pageInfo.endCursor })).networks;
    expect([...first.edges, ...rest.edges].map(idOf)).toEqual([...networks, strange]);
  });

  it('DG-13: their currencies are ordered by symbol, for all networks or one, and for any token', async () => {
    const currency = (n: number, network_id: string, more = {}) => {
      return { id: `88888888-0000-4000-8000-00000000000${n}`, network_id, symbol: `C${9 - n}`, ...more };
    };
    const rows = [
      currency(1, networks[0] ?? '', { name: 'Coin', decimals: 18 }),
      currency(2, networks[0] ?? ''),
      currency(3, strange),
    ];
    await fixture.database.db.unscoped('test').run((k) => k.insertInto('network_currencies').values(rows));
    const token = fixture.newToken({ permissions: [], nodeId: OTHER_NODE });
    const of = async (args: string) => {
      const fields = 'totalCount edges { node { id networkId symbol name decimals } }';
      const { json } = await fixture.query(`{ networkCurrencies${args} { ${fields} } }`, { token });
      return json.errors ?? json.data.networkCurrencies.edges.map(({ node }: { node: object }) => node);
    };
    const shown = rows.map(({ network_id: networkId, ...rest }) => ({
      name: null,
      decimals: null,
      ...rest,
      networkId,
    }));
    expect(await of('')).toEqual(shown.toReversed());
    expect(await of(`(networkId: "${networks[0]?.toUpperCase()}")`)).toEqual([shown[1], shown[0]]);
    expect(await of('(networkId: "x")')).toMatchObject([{ extensions: { code: 'BAD_USER_INPUT' } }]);
  });

  it('DG-01: may have an explorer URL, also below a wallet', async () => {
    const explorerUrl = 'https://explorer.example/tx/{hash}';
    await fixture.database.db.unscoped('test').run((k) =>
      k
        .updateTable('networks')
        .set({ explorer_url: explorerUrl })
        .where('id', '=', networks[0] ?? ''),
    );
    const fields = 'edges { node { explorerUrl } }';
    const { json } = await fixture.query(
      `{ networks(first: 2) { ${fields} } wallet(id: "${wallets[0]}") { networks(first: 1) { ${fields} } } }`,
    );
    expect(json.data.networks.edges).toEqual([{ node: { explorerUrl } }, { node: { explorerUrl: null } }]);
    expect(json.data.wallet.networks.edges).toEqual([{ node: { explorerUrl } }]);
  });

  it('4.4-01 D5-07: assignNetwork returns the wallet with its networks, also when repeated', async () => {
    for (let times = 0; times < 2; times += 1) {
      expect(await assign((wallets[3] ?? '').toUpperCase(), (networks[1] ?? '').toUpperCase())).toEqual({
        __typename: 'Wallet',
        id: wallets[3],
        networks: { totalCount: 1 },
      });
    }
  });

  it('D5-07: a network of another chain is a ValidationError', async () => {
    expect(await assign(wallets[0] ?? '', strange)).toEqual({
      __typename: 'ValidationError',
      message: 'the input is not valid',
      issues: [{ path: ['networkId'], message: "must be a network of the wallet's chain" }],
    });
  });
});

describe('wallets', () => {
  it('DG-01: have their account, their networks in order of assignment, and their rules', async () => {
    const { wallet } = await fixture.run(WalletDocument, { id: wallets[0]?.toUpperCase() ?? '' });
    expect(wallet).toMatchObject({ id: wallets[0], chain: 'ethereum', account: { id: account } });
    expect(wallet?.networks.edges.map(idOf)).toEqual(networks.slice(0, 3));
    expect([wallet?.networks.totalCount, wallet?.rules.totalCount]).toEqual([3, RULES]);
  });

  it('DG-01: are filtered by account and by network', async () => {
    const of = async (filter: object) => {
      const variables = { filter };
      const document =
        'query ($filter: WalletFilter) { wallets(filter: $filter) { totalCount edges { node { id } } } }';
      const { json } = await fixture.query(document, { variables });
      return json.errors?.[0].extensions.issues ?? json.data.wallets.edges.map(idOf);
    };
    expect(await of({ accountId: account.toUpperCase() })).toEqual(wallets);
    expect(await of({ accountId: MISSING })).toEqual([]);
    expect(await of({ networkId: networks[4] })).toEqual([wallets[1]]);
    expect(await of({ networkId: networks[4], accountId: null })).toEqual([wallets[1]]);
    expect(await of({ networkId: 'x' })).toMatchObject([{ path: ['filter', 'networkId'] }]);
  });
});
