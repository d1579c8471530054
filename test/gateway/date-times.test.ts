import { randomUUID } from 'node:crypto';
import { beforeAll, describe, expect, it } from 'vitest';
import { parseReferenceChange } from '../../src/features/reference/reference.input.ts';
import { portcullis } from '../support/cli/in-process.ts';
import { beforeTests } from '../support/harness/before-tests.ts';
import { realDatabase } from '../support/harness/databases.ts';
import { inTurn } from '../support/harness/in-turn.ts';
import { usePortcullis } from '../support/harness.ts';
import { connect } from '../support/mcp/agents.ts';
import { basicOf } from '../support/oauth/requests.ts';
import { describeReal } from '../support/services/real.ts';
import { migratedFolder } from '../support/start/folders.ts';

const FIRST = '0000-01-01T00:00:00.000Z';
const LAST = '9999-12-31T23:59:59.999Z';

/** Times whose offset is valid, and how they are shown: some are out of the years 0000 to 9999 in UTC. */
const TIMES: [text: string, shown: string][] = [
  ['0000-01-01T00:00:00Z', FIRST],
  ['0000-01-01T00:00:00+14:00', FIRST],
  ['0000-01-01T00:00:00+23:59', FIRST],
  ['0000-12-31T19:00:00-05:00', '0001-01-01T00:00:00.000Z'],
  ['9999-12-31T23:59:59.9999999Z', LAST],
  ['9999-12-31T24:00:00', LAST],
  ['9999-12-31T23:59:59-12:00', LAST],
  ['9999-12-31T00:01:00-23:59', LAST],
];

const p = usePortcullis();
const agent = beforeTests(() => connect(p, p.demo.client.client_secret));
let token: string;
beforeAll(async () => {
  token = await p.clientToken();
});

async function query(text: string, variables: object) {
  const { json, text: answer } = await p.call('POST', '/graphql', { token, json: { query: text, variables } });
  expect(answer).not.toContain('"errors"');
  return json.data;
}

describe('a time that its offset carries out of the years 0000 to 9999', () => {
  it.each(TIMES)('2.7-07 DG-07: %s is taken by the webhook, and shown as %s', async (time, shown) => {
    const transactionId = randomUUID();
    const register = `mutation ($id: ID!) { registerTransaction(input: {id: $id, collection: USER_TRANSACTIONS, type: 1}) { __typename } }`;
    expect((await query(register, { id: transactionId })).registerTransaction.__typename).toBe('Transaction');
    const json = { id: transactionId, type: 1, status: 1, created_at: time, updated_at: time };
    const headers = { authorization: basicOf({ client_id: p.webhook.username, client_secret: p.webhook.password }) };
    expect((await p.call('POST', '/v2/webhooks/custodial', { headers, json })).status).toBe(200);
    const ask = 'query ($id: ID!) { transaction(id: $id) { createdAt updatedAt } }';
    await expect
      .poll(async () => (await query(ask, { id: transactionId })).transaction)
      .toEqual({ createdAt: shown, updatedAt: shown });
  });

  it.each(TIMES)('DG-07: %s is taken by every filter and every preview of GraphQL', async (time) => {
    await query(
      `query ($t: DateTime!) {
        since: transactions(filter: {updatedSince: $t}) { totalCount }
        until: transactions(filter: {updatedUntil: $t}) { totalCount }
        stats: transactionStats(since: $t, until: $t, bucket: DAY) { at }
        auditSince: auditRecords(filter: {since: $t}) { totalCount }
        auditUntil: auditRecords(filter: {until: $t}) { totalCount }
        rules: walletRules(changedSince: $t) { totalCount }
      }`,
      { t: time },
    );
    const amount = { networkCurrencyId: p.demo.network_currency_id, amount: '1', at: time };
    const rule = {
      ...{ name: 'limit', type: 'permissionless_transfer_limit', networkId: p.demo.network_id },
      ...{ networkCurrencyId: p.demo.network_currency_id },
      permissionlessTransferLimitRule: { maxAmount: 5, timePeriod: 'year', timePeriodValue: 1 },
    };
    await query('query ($i: PreviewWalletRuleInput!) { previewWalletRule(input: $i) { fires } }', {
      i: { balances: [], transfers: [amount], at: time, rule },
    });
  });

  it.each(TIMES)('D8-08: %s is taken by the tools', async (time) => {
    const { error, text } = await agent.call('list_transactions', { updated_since: time });
    expect([error, text]).toEqual([undefined, expect.any(String)]);
  });

  it.each(TIMES)('D1-10: %s is taken in reference data, and is stored in the years 1 to 9999', (time, shown) => {
    const { row } = parseReferenceChange('accounts', randomUUID(), {
      ...{ version: 1, node_id: p.demo.node_id, name: 'a', type: 'organisation', status: 1 },
      ...{ created_at: time, updated_at: time },
    });
    expect(row?.created_at).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/);
    expect(row?.created_at).toContain(shown.replace(/^0000/, '0001').slice(0, 19));
  });
});

describeReal('postgres', 'a time on the command line', () => {
  const database = beforeTests(realDatabase);
  const folder = beforeTests(migratedFolder);

  const COMMANDS = [
    'audit list --since TIME',
    'audit list --until TIME',
    'audit verify --from TIME --to TIME',
    'transactions replay --from 0000-01-01T00:00:00Z --to TIME',
    'transactions replay --from TIME',
  ];

  it.each(COMMANDS.map((command, turn) => [command, turn] as const))(
    'D1-12: %s takes every time that its offset carries out of the years 0000 to 9999',
    async (command, turn) => {
      for (const [time] of inTurn([...TIMES, ['999999d', ''] as const], 4, turn)) {
        if (time === '999999d' && !command.startsWith('audit list')) continue;
        for (const env of [{ DATA_DIR: folder.path }, { DATA_DIR: folder.path, DATABASE_URL: database.url }]) {
          const { code, err } = await portcullis(command.replaceAll('TIME', time).split(' '), env);
          // A period that is empty or in the future is refused as such.
          expect([time, code, err]).toEqual([
            time,
            ...(code === 2 ? [2, expect.stringContaining('--from must be before')] : [0, '']),
          ]);
        }
      }
    },
  );
});
