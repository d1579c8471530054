import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { disagreements, parsePage, readTests, syncPage } from '../test/support/contract/contract-page.ts';

/** Fills the proof column of docs/contract.md from the names of the tests; exit code 1 when a disagreement is left. */
function main(root: string): void {
  const path = join(root, 'docs/contract.md');
  const tests = readTests(root);
  const page = readFileSync(path, 'utf8');
  const synced = syncPage(page, tests);
  if (synced !== page) writeFileSync(path, synced);
  const { clauses } = parsePage(synced);
  const proved = clauses.filter(({ files, remark }) => files.length > 0 && remark === undefined).length;
  const inPart = clauses.filter(({ files, remark }) => files.length > 0 && remark !== undefined).length;
  process.stdout.write(`${proved} of ${clauses.length} clauses proved, ${inPart} in part\n`);
  const left = disagreements(synced, tests);
  for (const fault of left) process.stderr.write(`${fault}\n`);
  process.exitCode = left.length === 0 ? 0 : 1;
}

main(join(import.meta.dirname, '..'));
