import pg from 'pg';
import { expect, it, vi } from 'vitest';
import { type WalletRuleFilter, WalletRulePages } from '../../src/features/wallet-rules/wallet-rules.service.ts';
import { beforeTests } from '../support/harness/before-tests.ts';
import { realDatabase } from '../support/harness/databases.ts';
import { withPostgres } from '../support/services/pg-client.ts';
import { describeReal } from '../support/services/real.ts';

const NODE = 'aaaaaaaa-0000-4000-8000-000000000001';
const COUNT = 20_000;

const FILL = [
  `insert into nodes (id, name) values ('${NODE}', 'node')`,
  "insert into chains (id, name) values (gen_random_uuid(), 'chain')",
  `insert into accounts (id, node_id, name, type, status, created_at, updated_at)
    values (gen_random_uuid(), '${NODE}', 'A', 't', 1, now(), now())`,
  `insert into wallets (id, node_id, account_id, chain_id, created_at, updated_at)
    select gen_random_uuid(), '${NODE}', accounts.id, chains.id, now(), now()
    from accounts, chains, generate_series(1, 100)`,
  `insert into wallet_rules (id, node_id, wallet_id, name, type, network_id, network_currency_id, created_at, updated_at)
    select gen_random_uuid(), '${NODE}', (array(select id from wallets order by id))[1 + n % 100], 'r',
      case n % 2 when 0 then 'auto_transfer' else 'permissionless_transfer_limit' end, gen_random_uuid(),
      gen_random_uuid(), now() - n * interval '1 minute', now() - n * interval '1 minute'
    from generate_series(1, ${COUNT}) n`,
  'vacuum analyze wallet_rules',
];

describeReal('postgres', 'the list of the rules of a node', () => {
  const fixture = beforeTests(async () => {
    const database = await realDatabase();
    await withPostgres(database.url, async (client) => {
      for (const statement of FILL) await client.query(statement);
    });
    return { database, [Symbol.asyncDispose]: () => database[Symbol.asyncDispose]() };
  });

  it.each<[name: string, filter: WalletRuleFilter, index: string]>([
    ['all', {}, 'wallet_rules_of_node'],
    ['of a type', { type: 'auto_transfer' }, 'wallet_rules_of_node'],
    ['changed within the hour', { changedSince: { seconds: 1n, nanos: 0 } }, 'wallet_rules_of_node'],
    ['of a wallet', { walletId: NODE }, 'wallet_rules_page'],
  ])(
    'DG-02: a page of %s is read from an index without sorting, for any parameter values',
    async (_name, filter, index) => {
      const submit = vi.spyOn(pg.Query.prototype, 'submit');
      await new WalletRulePages(fixture.database.db).page(NODE, filter, {
        ...{ size: 20, backward: false, before: undefined },
        after: { at: '2020-01-01T00:00:00Z', id: NODE },
      });
      const sent = submit.mock.contexts as unknown as { text: string }[];
      const text = sent.find((one) => one.text.includes('"wallet_rules"'))?.text ?? '';
      submit.mockRestore();
      await withPostgres(fixture.database.url, async (client) => {
        const { rows } = await client.query(`explain (generic_plan) ${text}`);
        const plan = rows.map((row) => row['QUERY PLAN']).join('\n');
        expect(plan).toContain(`using ${index}`);
        expect(plan).not.toMatch(/Sort|Seq Scan/);
      });
    },
  );
});
