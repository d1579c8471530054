import { mkdirSync, writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { TOOLS } from '../src/app/tools.ts';

// Writes schema/tools.json, which is committed: a change of a tool, or of a word that a model reads, shows in the diff.
const folder = resolve(import.meta.dirname, '../schema');
const tools = [...TOOLS.values()].map(({ listed }) => listed);
mkdirSync(folder, { recursive: true });
writeFileSync(resolve(folder, 'tools.json'), `${JSON.stringify({ tools }, null, 2)}\n`);
