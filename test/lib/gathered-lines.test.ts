import { expect, it } from 'vitest';
import { GatheredLines } from '../../src/lib/fast/gathered-lines.ts';

it('D1-07: lines of the log are handed on together, each once and in their order, at 64 Ki characters or when told', () => {
  const written: string[] = [];
  const gathered = new GatheredLines((text) => written.push(text));
  const lines = Array.from({ length: 1_000 }, (_, n) => `${n} ${'x'.repeat(200)}\n`);
  for (const line of lines) gathered.write(line);
  expect(written.map((text) => text.length >= 64 * 1024)).toEqual([true, true, true]);
  gathered.flush();
  gathered.flush();
  expect(written.length).toBe(4);
  expect(written.join('')).toBe(lines.join(''));
});
