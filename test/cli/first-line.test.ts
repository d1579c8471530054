import { Readable } from 'node:stream';
import { expect, it } from 'vitest';
import { UsageError } from '../../src/cli/kit/command.ts';
import { firstLine } from '../../src/cli/kit/command-input.ts';

it.each([
  [[], undefined],
  [['one\n'], 'one'],
  [['one'], 'one'],
  [['one\r\n'], 'one'],
  [['\n', 'two\n'], ''],
  [['o', 'ne\ntwo\n', 'three'], 'one'],
  [[' one two \n'], ' one two '],
])('of %j the first line is %j', async (chunks, line) => {
  expect(await firstLine(Readable.from(chunks.map((chunk) => Buffer.from(chunk))))).toBe(line);
});

it('a character may arrive in two chunks', async () => {
  const bytes = Buffer.from('caf\u00e9\n');
  expect(await firstLine(Readable.from([bytes.subarray(0, 4), bytes.subarray(4)]))).toBe('caf\u00e9');
});

it('nothing is read from a terminal, and nothing after the first line', async () => {
  const terminal = Object.assign(Readable.from([Buffer.from('typed\n')]), { isTTY: true });
  expect(await firstLine(terminal)).toBeUndefined();
  const open = new Readable({ read: () => undefined });
  open.push('one\n');
  expect(await firstLine(open)).toBe('one');
  expect(open.destroyed).toBe(true);
});

it.each([Buffer.alloc(70_000, 'x'), Buffer.from([0x63, 0xe9, 0x0a])])(
  'bytes that are not a line of text are rejected',
  async (bytes) => {
    await expect(firstLine(Readable.from([bytes]))).rejects.toThrow(UsageError);
  },
);
