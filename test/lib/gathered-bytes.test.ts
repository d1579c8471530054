import { expect, it } from 'vitest';
import { GatheredBytes } from '../../src/lib/gathered-bytes.ts';

it('D2-24: many small pieces are gathered in one buffer of at most twice their length', () => {
  const gathered = new GatheredBytes();
  const buffers = new Set<ArrayBufferLike>();
  for (let at = 0; at < 100_000; at += 1) {
    gathered.push(Buffer.of(at % 251));
    buffers.add(gathered.bytes.buffer);
  }
  expect(gathered.bytes).toEqual(Buffer.from(Array.from({ length: 100_000 }, (_, at) => at % 251)));
  expect(gathered.bytes.buffer.byteLength).toBeLessThanOrEqual(200_000);
  expect(buffers.size).toBeLessThan(20);
});

it('a single piece is kept without a copy, and is not overwritten by later pieces', () => {
  const source = Buffer.from('abcdef');
  const gathered = new GatheredBytes();
  expect(gathered.bytes).toHaveLength(0);
  gathered.push(source.subarray(0, 2));
  gathered.push(Buffer.alloc(0));
  expect([String(gathered.bytes), gathered.bytes.buffer]).toEqual(['ab', source.buffer]);
  gathered.push(Buffer.from('X'));
  expect([String(gathered.bytes), gathered.length, String(source)]).toEqual(['abX', 3, 'abcdef']);
});
