import { writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { configurationPage } from './configuration-page.ts';

// Writes docs/configuration.md, which is committed.
writeFileSync(resolve(import.meta.dirname, '../docs/configuration.md'), configurationPage());
