import { expect, it } from 'vitest';
import { holdText } from '../../src/api/graphql/execution/shared-results.ts';
import { heldMemory, inRequest, MemoryAccounts } from '../../src/platform/held-memory.ts';
import { modelStreams, NODE, settle } from '../support/realtime/model.ts';

const MIB = 1024 * 1024;

/** A tenant whose open requests hold more than its share, so that its reads take turns. */
function fullAccount() {
  const memory = new MemoryAccounts(128 * MIB);
  memory.limits.waitMs = 100;
  memory.open(NODE).charge(70 * MIB);
  return memory;
}

it('D6-24 D6-26: a replayed page that waits for its reader does not keep others of its tenant from reading', async () => {
  const memory = fullAccount();
  const { log, subscribe } = modelStreams();
  log.append(NODE, 100);
  log.reading = async (read) =>
    heldMemory()?.read(async () => {
      heldMemory()?.add(MIB, true);
      return read();
    }) ?? read();
  const stream = inRequest(memory.open(NODE), () => subscribe({ after: 0n }));
  await settle();
  expect(memory.held(NODE)).toBe(71 * MIB);
  await expect(memory.open(NODE).read(async () => 'rows')).resolves.toBe('rows');
  await stream.return();
  expect(memory.held(NODE)).toBe(70 * MIB);
});

it('D6-24 D6-26: a long result that waits for its reader does not keep others of its tenant from reading', async () => {
  const memory = fullAccount();
  const held = memory.open(NODE);
  await inRequest(held, () => holdText(MIB));
  expect(held.rows).toBe(MIB);
  await expect(memory.open(NODE).read(async () => 'rows')).resolves.toBe('rows');
});
