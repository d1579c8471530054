import { writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { loadCommands } from '../src/cli/commands.ts';
import { manualPage } from './cli-page.ts';

// Writes docs/cli.md, which is committed: a change of a command shows in the diff.
writeFileSync(resolve(import.meta.dirname, '../docs/cli.md'), manualPage(await loadCommands()));
