import fc from 'fast-check';
import { beforeAll, expect, inject, it } from 'vitest';
import { WalletRules } from '../../src/features/wallet-rules/wallet-rules.service.ts';
import type { Database } from '../../src/platform/database/open-database.ts';
import { RULE_STATUSES, type RuleStatus, type WalletRuleContent } from '../../src/tables/wallet-rule-content.ts';
import { beforeTests } from '../support/harness/before-tests.ts';
import { embeddedDatabase, realDatabase } from '../support/harness/databases.ts';
import { describeEmbedded } from '../support/harness/in-turn.ts';
import { describeReal } from '../support/services/real.ts';
import { seedTwoNodes, type TwoNodes } from '../support/tenancy/two-nodes.ts';
import { CURRENCY, logics, ruleWith } from '../support/wallet-rules/logics.ts';
import { newestOf, versionsOf } from '../support/wallet-rules/versions.ts';

describeEmbedded('on the embedded database', () => historySuite(embeddedDatabase));
describeReal('postgres', 'on PostgreSQL', () => historySuite(realDatabase));

const limits = fc.record({ name: fc.string(), priority: fc.option(fc.integer({ min: 1, max: 100 })) }).map(
  ({ name, priority }): WalletRuleContent => ({
    ...{ name: name.replaceAll('\0', '').toWellFormed(), type: 'permissionless_transfer_limit' },
    ...{ network_id: CURRENCY, network_currency_id: CURRENCY, priority: priority ?? undefined },
    permissionless_transfer_limit_rule: {
      max_amount: '12345678901234567890',
      time_period: 'day',
      time_period_value: 1,
    },
  }),
);
const contents = fc.oneof(limits, logics.map(ruleWith));

/** A write of the rule: by which version of it the caller goes (the one that it has, another, or none), or by SQL. */
const writes = fc.oneof(
  fc.record({ replace: contents, ifVersion: fc.constantFrom('none', 'right', 'wrong') }),
  fc.record({ status: fc.constantFrom(...RULE_STATUSES) }),
  fc.record({ bySql: fc.constantFrom(...RULE_STATUSES) }),
);

function historySuite(open: () => Promise<Database>): void {
  const database = beforeTests(open);
  let nodes: TwoNodes;
  let rules: WalletRules;

  beforeAll(async () => {
    nodes = await seedTwoNodes(database.db);
    rules = new WalletRules({ db: database.db, nowMs: Date.now });
  });

  const door = () => database.db.unscoped('a test writes as others do');
  /** What the release before sends for a change of the status: it knows nothing of versions that are kept. */
  const changeBySql = (id: string, status: RuleStatus) =>
    door().raw(
      (sql) =>
        sql`update wallet_rules set status = ${status}, version = version + 1, updated_at = now() where id = ${id}`,
    );

  it('D5-09: any sequence of writes leaves unchanged versions without a gap, the newest of which is the rule', async () => {
    const { nodeId, walletIds } = nodes.mine;
    const [walletId = ''] = walletIds;
    await fc.assert(
      fc.asyncProperty(contents, fc.array(writes, { maxLength: 12 }), async (first, sequence) => {
        const by = (index: number) => ({
          nodeId,
          subject: `s-${index}`,
          clientId: `c-${index}`,
          correlationId: `r-${index}`,
        });
        const { id } = await rules.create(by(0), walletId, first);
        const expected: unknown[] = [];
        const remember = async (index: number | null) => {
          const author = { subject: `s-${index}`, client_id: `c-${index}`, correlation_id: `r-${index}` };
          const unknown = { subject: null, client_id: null, correlation_id: null };
          const rule = await newestOf(database, id);
          // A write that changes nothing has no version.
          if (rule?.version !== expected.length) expected.push({ ...rule, ...(index === null ? unknown : author) });
        };
        await remember(0);
        for (const [at, write] of sequence.entries()) {
          const index = at + 1;
          if ('bySql' in write) await changeBySql(id, write.bySql);
          else if ('status' in write) await rules.setStatus(by(index), id, write.status);
          else {
            const version = expected.length;
            const versions = { none: undefined, right: [version], wrong: [version + 1] }[write.ifVersion];
            const replaced = rules.replace(by(index), { walletId, id }, write.replace, versions);
            if (write.ifVersion === 'wrong') await expect(replaced).rejects.toThrow('different version');
            else await replaced;
          }
          await remember('bySql' in write ? null : index);
        }
        const kept = await versionsOf(database, id);
        expect(kept).toEqual(expected);
        expect(kept.map(({ version }) => version)).toEqual(expected.map((_version, at) => at + 1));
      }),
      { numRuns: inject('isThorough') ? 25 : 8 },
    );
  });

  it('D5-09: the database rejects a change that does not raise the version by 1', async () => {
    const { nodeId, walletIds } = nodes.mine;
    const author = { nodeId, subject: 'x', clientId: undefined, correlationId: 'x' };
    const content: WalletRuleContent = {
      ...ruleWith({ field: 'a', op: 'lt', value: '1', network_currency_id: CURRENCY }),
    };
    const { id } = await rules.create(author, walletIds[0] ?? '', content);
    const kept = await versionsOf(database, id);
    for (const version of ['version', 'version + 2', 'version - 1']) {
      const update = door().raw(
        (sql) => sql`update wallet_rules set name = 'x', version = ${sql.raw(version)} where id = ${id}`,
      );
      await expect(update).rejects.toThrow('a change of a wallet rule raises its version by 1');
    }
    await door().raw((sql) => sql`update wallet_rules set name = name where id = ${id}`);
    expect(await versionsOf(database, id)).toEqual(kept);
  });
}
