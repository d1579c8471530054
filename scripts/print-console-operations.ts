import { createHash } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import * as generated from '../console/generated/graphql.ts';

/** Writes the operations that the console sends, by their hashes, as a file of persisted operations. */
function main(): void {
  const documents = Object.entries(generated)
    .filter(([name]) => name.endsWith('Document'))
    .map(([, document]) => String(document));
  const byHash = documents.map((text) => [createHash('sha256').update(text).digest('hex'), text]);
  const path = join(import.meta.dirname, '../schema/console-operations.json');
  writeFileSync(path, `${JSON.stringify(Object.fromEntries(byHash), null, 2)}\n`);
}

main();
