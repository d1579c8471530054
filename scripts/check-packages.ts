import { resolve } from 'node:path';
import { packageFaults } from './packages.ts';

// Exit code 1 when the chosen packages, package.json and the imports do not agree.
const faults = packageFaults(resolve(import.meta.dirname, '..'));
for (const fault of faults) process.stderr.write(`${fault}\n`);
process.exitCode = faults.length === 0 ? 0 : 1;
