import { writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { secretNamesPage } from './secret-names-page.ts';

// Writes docs/secret-names.md, which is committed.
writeFileSync(resolve(import.meta.dirname, '../docs/secret-names.md'), secretNamesPage());
