import { beforeEach, expect, it } from 'vitest';
import type { WalletRulePreviews } from '../../src/features/wallet-rules/preview.service.ts';
import { runCooperatively } from '../../src/lib/yielding.ts';
import { heldMemory } from '../../src/platform/held-memory.ts';
import { startFixture, until } from '../support/graphql/fixture.ts';
import { openSocket } from '../support/graphql/sockets.ts';
import { beforeTests } from '../support/harness/before-tests.ts';

const PREVIEW = '{ previewWallet(walletId: "w", facts: { balances: [] }) { rules { name } } }';
const TWO_SLICES_MS = 10;

const fixture = beforeTests(() =>
  startFixture({
    services: { walletRulePreviews: { previewWallet } as unknown as WalletRulePreviews },
  }),
);
/** The pieces of work that were done for each wallet preview, and why the others were not. */
let pieces: number[] = [];
let reasons: unknown[] = [];

/** Works until its caller has left. */
async function previewWallet(): Promise<never> {
  const at = pieces.push(0) - 1;
  for (;;) {
    try {
      await runCooperatively(() => {
        pieces[at] = (pieces[at] ?? 0) + 1;
        for (const until = performance.now() + TWO_SLICES_MS; performance.now() < until; );
      }, heldMemory());
    } catch (error) {
      reasons.push(error);
      throw error;
    }
  }
}

beforeEach(() => {
  pieces = [];
  reasons = [];
  fixture.records.length = 0;
});

it('D6-26: `complete` stops only its own operation, which is recorded', async () => {
  using opened = await openSocket(fixture, fixture.token);
  opened.subscribe('1', PREVIEW);
  opened.subscribe('2', PREVIEW);
  await until(() => pieces.length === 2);
  opened.send({ type: 'complete', id: '1' });
  await until(() => reasons.length === 1);
  expect(reasons[0]).toMatchObject({ code: 'service_unavailable' });
  await until(() => fixture.records.length === 1);
  const [before = 0] = pieces.slice(1);
  await until(() => (pieces[1] ?? 0) > before);
  opened.socket.terminate();
  await until(() => fixture.records.length === 2);
});

it('D6-26: a closed socket stops all its operations, which are recorded', async () => {
  using opened = await openSocket(fixture, fixture.token);
  for (const id of ['1', '2', '3']) opened.subscribe(id, PREVIEW);
  await until(() => pieces.length === 3);
  opened.socket.terminate();
  await until(() => fixture.records.length === 3);
  expect(reasons).toHaveLength(3);
});
