import { beforeAll, expect, it } from 'vitest';
import { Networks } from '../../src/features/networks/networks.service.ts';
import { walletRuleInput } from '../../src/features/wallet-rules/wallet-rule.input.ts';
import { WalletRules } from '../../src/features/wallet-rules/wallet-rules.service.ts';
import { Refusal } from '../../src/platform/errors.ts';
import { beforeTests } from '../support/harness/before-tests.ts';
import { realDatabase } from '../support/harness/databases.ts';
import { describeReal } from '../support/services/real.ts';
import { seedTwoNodes, type TwoNodes } from '../support/tenancy/two-nodes.ts';
import { limit } from '../support/wallet-rules/rules.ts';
import { newestOf, versionsOf } from '../support/wallet-rules/versions.ts';

const AT_ONCE = 20;

function picked({ version, name, status, correlation_id }: Awaited<ReturnType<typeof versionsOf>>[number]) {
  return { version, name, status, correlation_id };
}

describeReal('postgres', 'several at once', () => {
  const database = beforeTests(realDatabase);
  let nodes: TwoNodes;
  let rules: WalletRules;

  beforeAll(async () => {
    nodes = await seedTwoNodes(database.db);
    rules = new WalletRules({ db: database.db, nowMs: Date.now });
  });

  const author = (nodeId: string) => ({ nodeId, subject: 'races', clientId: undefined, correlationId: 'races' });
  const content = (name: string) => walletRuleInput.parse(limit({ name }));
  const door = () => database.db.unscoped('test');

  it('D5-05: of concurrent replacements with the same If-Match version, exactly one succeeds', async () => {
    const { nodeId, walletIds } = nodes.mine;
    const [walletId = ''] = walletIds;
    const { id } = await rules.create(author(nodeId), walletId, content('first'));
    const winners = ['first'];
    for (let version = 1; version <= 3; version += 1) {
      const outcomes = await Promise.allSettled(
        Array.from({ length: AT_ONCE }, (_, index) =>
          rules.replace(author(nodeId), { walletId, id }, content(`${version}-${index}`), [version]),
        ),
      );
      const done = outcomes.filter((outcome) => outcome.status === 'fulfilled');
      expect(done.map(({ value }) => value.version)).toEqual([version + 1]);
      for (const outcome of outcomes) {
        if (outcome.status === 'fulfilled') continue;
        expect(outcome.reason).toBeInstanceOf(Refusal);
        expect(outcome.reason.code).toBe('precondition_failed');
      }
      const [row] = await door().run((k) => k.selectFrom('wallet_rules').select('name').where('id', '=', id));
      expect(row?.name).toBe(done[0]?.value.name);
      winners.push(row?.name ?? '');
    }
    const kept = await versionsOf(database, id);
    expect(kept.map(({ version, name, subject }) => [version, name, subject])).toEqual(
      winners.map((name, at) => [at + 1, name, 'races']),
    );
  });

  it('D5-05: concurrent replacements without If-Match each create their own version', async () => {
    const { nodeId, walletIds } = nodes.mine;
    const [walletId = ''] = walletIds;
    const { id } = await rules.create(author(nodeId), walletId, content('first'));
    const replaced = await Promise.all(
      Array.from({ length: AT_ONCE }, (_, index) =>
        rules.replace(author(nodeId), { walletId, id }, content(String(index))),
      ),
    );
    expect(replaced.map(({ version }) => version).sort((a, b) => a - b)).toEqual(
      Array.from({ length: AT_ONCE }, (_, index) => index + 2),
    );
    const kept = await versionsOf(database, id);
    expect(kept.map(({ version }) => version)).toEqual(Array.from({ length: AT_ONCE + 1 }, (_, index) => index + 1));
    const names = new Map(replaced.map(({ version, name }) => [version, name]));
    for (const { version, name } of kept.slice(1)) expect(name).toBe(names.get(version));
  });

  it('D5-09: concurrent replacements, status changes and the deletion of the wallet leave versions without gaps', async () => {
    const { nodeId, walletIds } = nodes.mine;
    const walletId = walletIds[1] ?? '';
    const place = { walletId, id: (await rules.create(author(nodeId), walletId, content('first'))).id };
    await door().run((k) => k.deleteFrom('wallet_networks').where('wallet_id', '=', walletId));
    const write = async (index: number) => {
      const by = { ...author(nodeId), correlationId: String(index) };
      if (index === AT_ONCE) {
        await door().run((k) => k.deleteFrom('wallets').where('id', '=', walletId));
        return undefined;
      }
      const work =
        index % 2 === 0
          ? rules.replace(by, place, content(String(index)))
          : rules.setStatus(by, place.id, index % 4 === 1 ? 'disabled' : 'active');
      return work.then(
        ({ version, name, status }) => ({ version, name, status, correlation_id: String(index) }),
        (error) => {
          expect(error.code).toBe('not_found');
          return undefined;
        },
      );
    };
    const done = await Promise.all(Array.from({ length: 2 * AT_ONCE }, (_, index) => write(index)));
    const kept = await versionsOf(database, place.id);
    expect(await newestOf(database, place.id)).toBeUndefined();
    expect(kept.map(({ version }) => version)).toEqual(kept.map((_version, at) => at + 1));
    expect(kept.map(({ deleted }) => deleted)).toEqual(kept.map((_version, at) => at === kept.length - 1));
    for (const version of kept.slice(1, -1)) expect(done).toContainEqual(expect.objectContaining(picked(version)));
  });

  it('4.2-02: no rule remains for a wallet that is deleted concurrently', async () => {
    const { nodeId, walletIds } = nodes.mine;
    const walletId = walletIds.at(-1) ?? '';
    await door().run((k) => k.deleteFrom('wallet_networks').where('wallet_id', '=', walletId));
    const outcomes = await Promise.allSettled([
      ...Array.from({ length: AT_ONCE }, () => rules.create(author(nodeId), walletId, content('late'))),
      door().run((k) => k.deleteFrom('wallets').where('id', '=', walletId)),
      ...Array.from({ length: AT_ONCE }, () => rules.create(author(nodeId), walletId, content('late'))),
    ]);
    for (const outcome of outcomes) {
      if (outcome.status === 'rejected') expect(outcome.reason.code).toBe('not_found');
    }
    expect(
      await door().run((k) => k.selectFrom('wallet_rules').select('id').where('wallet_id', '=', walletId)),
    ).toEqual([]);
  });

  it('D5-07: concurrent assignments of one network create one row', async () => {
    const { nodeId, walletIds } = nodes.mine;
    const [walletId = ''] = walletIds;
    await door().run((k) => k.deleteFrom('wallet_networks'));
    const [wallet] = await door().run((k) => k.selectFrom('wallets').selectAll().where('id', '=', walletId));
    const [network] = await door().run((k) =>
      k
        .selectFrom('networks')
        .select('id')
        .where('chain_id', '=', wallet?.chain_id ?? ''),
    );
    const assignments = new Networks({ db: database.db, nowMs: Date.now });
    const author = { nodeId, subject: 's', clientId: undefined, correlationId: 'c' };
    const outcomes = await Promise.all(
      Array.from({ length: AT_ONCE }, () => assignments.assign(author, walletId, network?.id ?? '')),
    );
    expect(new Set(outcomes.map(({ id }) => id))).toEqual(new Set([walletId]));
    expect(await door().run((k) => k.selectFrom('wallet_networks').select(['wallet_id', 'node_id']))).toEqual([
      { wallet_id: walletId, node_id: nodeId },
    ]);
  });
});
