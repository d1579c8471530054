import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { lengthsPage } from '../../scripts/lengths-page.ts';
import { ROOT } from '../support/start/process.ts';

it('D7-13: docs/lengths.md lists the maximum lengths in force', () => {
  expect(readFileSync(join(ROOT, 'docs/lengths.md'), 'utf8')).toBe(lengthsPage());
});
