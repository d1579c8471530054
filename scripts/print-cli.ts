import { writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { loadCommands } from '../src/cli/commands.ts';
import { referencePage } from '../src/cli/reference-page.ts';

// Writes docs/cli.md, which is committed: a change of a command shows in the diff.
writeFileSync(resolve(import.meta.dirname, '../docs/cli.md'), referencePage(await loadCommands()));
