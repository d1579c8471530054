import { setImmediate as turnOfLoop } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { AuditChain, type UnchainedRecord } from '../../src/audit/audit-record.ts';

function recordOf(fixed: string): UnchainedRecord {
  return { fixed, erasable: '', salts: '', digests: [], length: fixed.length };
}

/** A spool that tells what it was given, and refuses lines that say so. */
function fixture() {
  const told: string[] = [];
  const append = (...lines: string[]) => {
    const records = lines.map((line) => line.split('\t')[5]);
    told.push(lines.length > 4 ? `append ${lines.length}` : `append ${records.join(' ')}`);
    if (records.includes('bad')) throw new Error('refused');
  };
  const onLost = (error: unknown, { fixed }: UnchainedRecord) => told.push(`lost ${fixed}: ${String(error)}`);
  const onFault = (error: unknown) => told.push(String(error));
  const chain = new AuditChain('chain', { append }, { onLost, onFault });
  const add = (fixed: string, onStored?: () => void) => chain.add(recordOf(fixed), onStored);
  return { told, turn: { add, commit: () => chain.commit() } };
}

it('D2-07: lines of one iteration of the event loop are stored with one write, and then their callbacks run', async () => {
  const { told, turn } = fixture();
  turn.add('a', () => told.push('kept a'));
  queueMicrotask(() => turn.add('b', () => told.push('kept b')));
  process.nextTick(() => turn.add('c'));
  expect(told).toEqual([]);
  await turnOfLoop();
  expect(told).toEqual(['append a b c', 'kept a', 'kept b']);
  turn.add('d');
  await turnOfLoop();
  expect(told.slice(3)).toEqual(['append d']);
});

it('D2-07: a commit writes at once, and the end of the iteration writes nothing twice', async () => {
  const { told, turn } = fixture();
  turn.add('a', () => told.push('kept a'));
  turn.commit();
  expect(told).toEqual(['append a', 'kept a']);
  turn.commit();
  await turnOfLoop();
  expect(told).toEqual(['append a', 'kept a']);
});

it('D2-07: a line that cannot be stored does not affect others, and its callback runs too', async () => {
  const { told, turn } = fixture();
  for (const line of ['a', 'bad', 'c']) turn.add(line, () => told.push(`answered ${line}`));
  await turnOfLoop();
  expect(told).toEqual([
    'append a bad c',
    'append a',
    'append bad',
    'lost bad: Error: refused',
    'append c',
    'answered a',
    'answered bad',
    'answered c',
  ]);
});

it('D2-07: many lines of one iteration are written in several writes, in order', async () => {
  const { told, turn } = fixture();
  for (let line = 0; line < 25; line += 1) turn.add('x'.repeat(100_000));
  expect(told).toEqual(['append 11', 'append 11']);
  await turnOfLoop();
  expect(told.map((text) => text.slice(0, 10))).toEqual(['append 11', 'append 11', 'append xxx']);
});

it('D2-07: a callback that throws does not keep the others from running', () => {
  const { told, turn } = fixture();
  turn.add('a', () => {
    throw new Error('cannot answer');
  });
  turn.add('b', () => told.push('kept b'));
  turn.commit();
  expect(told).toEqual(['append a b', 'Error: cannot answer', 'kept b']);
});
