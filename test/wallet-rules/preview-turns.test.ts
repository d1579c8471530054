import { setImmediate as nextIteration } from 'node:timers/promises';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { WalletRulePreviews } from '../../src/features/wallet-rules/preview.service.ts';
import type { WalletRuleRow } from '../../src/features/wallet-rules/wallet-rules.service.ts';
import { inRequest, MemoryAccounts } from '../../src/platform/held-memory.ts';

const RULES = 500;
const FACTS = { balances: [], transfers: [], at: { seconds: 0n, nanos: 0 } };
/** How long the evaluation of a rule takes here, in milliseconds. */
const RULE_MS = 1;

// Later than what other files of this process have done.
let nowMs = performance.now() + 1e6;
let evaluated: string[] = [];
beforeEach(async () => {
  await nextIteration();
  evaluated = [];
  vi.spyOn(performance, 'now').mockImplementation(() => nowMs);
});
afterEach(() => vi.restoreAllMocks());

/** A rule of a tenant, whose evaluation is noted and takes its time. */
function ruleOf(nodeId: string): WalletRuleRow {
  const row = { id: 'rule', name: 'rule', priority: null, network_currency_id: 'currency' };
  const limit = { max_amount: '1', time_period: 'day', time_period_value: 1 };
  return {
    ...row,
    permissionless_transfer_limit_rule: limit,
    get type() {
      if (evaluated.push(nodeId) % 3 === 0) nowMs += RULE_MS;
      return 'permissionless_transfer_limit';
    },
  } as unknown as WalletRuleRow;
}

const previews = new WalletRulePreviews({
  pages: {
    find: async () => undefined,
    active: async (nodeId) => Array.from({ length: RULES }, () => ruleOf(nodeId)),
  },
  wallets: { find: async () => ({ id: '', account_id: '', chain: '', created_at: '' }) },
  networks: {} as never,
  nowMs: () => 0,
});
const accounts = new MemoryAccounts();

function preview(nodeId: string) {
  const held = accounts.open(nodeId);
  return { held, previewed: inRequest(held, () => previews.previewWallet(nodeId, 'wallet', FACTS)) };
}

/** Returns the most that was evaluated in one iteration of the event loop until all that was previewed has settled. */
async function mostAtOnce(previewed: Promise<unknown>[]): Promise<number> {
  let isOver = false;
  const settled = Promise.allSettled(previewed).then(() => {
    isOver = true;
  });
  let most = 0;
  for (let seen = 0; !isOver; seen = evaluated.length) {
    await nextIteration();
    most = Math.max(most, evaluated.length - seen);
  }
  await settled;
  return most;
}

it('D6-24 D6-26: previews of 500 rules yield to the event loop within 20 ms, and tenants share the time equally', async () => {
  const previewed = [...Array(18).fill('a'), 'b', 'c'].map((nodeId: string) => preview(nodeId).previewed);
  expect((await mostAtOnce(previewed)) * (RULE_MS / 3)).toBeLessThanOrEqual(20);
  await expect(Promise.all(previewed)).resolves.toHaveLength(20);
  const last = (nodeId: string) => evaluated.lastIndexOf(nodeId) / evaluated.length;
  // Each of three tenants has a third of the time, whatever the others ask for.
  expect(last('b')).toBeLessThan(0.2);
  expect(last('c')).toBeLessThan(0.2);
});

it('D6-26: previews stop soon after their client disconnected', async () => {
  const all = Array.from({ length: 18 }, () => preview('a'));
  await nextIteration();
  for (const { held } of all) held.leave();
  const before = evaluated.length;
  await mostAtOnce(all.map(({ previewed }) => previewed));
  for (const { previewed } of all) await expect(previewed).rejects.toMatchObject({ code: 'service_unavailable' });
  // Those that are resumed in this very moment still evaluate a slice.
  expect(evaluated.length - before).toBeLessThanOrEqual(30);
  expect(evaluated.length).toBeLessThan(RULES);
});

it("D6-26: a tenant's wallets are read one after another, beside those of other tenants", async () => {
  const open = new Set<string>();
  const seen: string[][] = [];
  const counted = new WalletRulePreviews({
    pages: {
      find: async () => undefined,
      async active(nodeId) {
        expect(open).not.toContain(nodeId);
        seen.push([...open.add(nodeId)]);
        await nextIteration();
        open.delete(nodeId);
        return [];
      },
    },
    wallets: { find: async () => ({ id: '', account_id: '', chain: '', created_at: '' }) },
    networks: {} as never,
    nowMs: () => 0,
  });
  const asked = ['a', 'a', 'a', 'b'].map((nodeId) => counted.previewWallet(nodeId, 'wallet', FACTS));
  await expect(Promise.all(asked)).resolves.toHaveLength(4);
  expect(seen).toContainEqual(['a', 'b']);
});
