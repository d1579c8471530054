import { randomInt } from 'node:crypto';
import { expect, it } from 'vitest';
import { checkGeneratedCode } from '../support/graphql/generated-code.ts';

const DOCUMENTS = 100_000;

it('no text of 100,000 documents reaches generated code, and their names change nothing there but themselves', async () => {
  const seed = randomInt(2 ** 31);
  const { compiled, refused } = await checkGeneratedCode(DOCUMENTS, seed);
  process.stdout.write(`seed ${seed}: ${compiled} compiled, ${refused} refused\n`);
  expect(Math.min(compiled, refused)).toBeGreaterThan(DOCUMENTS / 4);
}, 3_600_000);
