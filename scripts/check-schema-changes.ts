import { resolve } from 'node:path';
import { schemaHistory } from './schema-history.ts';

// Exit code 1 when the schema breaks what was committed or released before, and CHANGELOG.md does not name it.
const { compared, faults } = schemaHistory(resolve(import.meta.dirname, '..'));
for (const fault of faults) process.stderr.write(`${fault}\n`);
const said =
  compared.length === 0
    ? 'nothing to compare the schema with: this clone has no commit before the last'
    : `the schema was compared with ${compared.map((commit) => commit.slice(0, 12)).join(', ')}`;
process.stdout.write(`${said}\n`);
process.exitCode = faults.length === 0 ? 0 : 1;
