import { writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { lengthsPage } from './lengths-page.ts';

// Writes docs/lengths.md, which is committed.
writeFileSync(resolve(import.meta.dirname, '../docs/lengths.md'), lengthsPage());
