import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { asyncApiDocument } from './document.ts';

/** The largest uint64 as a double prints it, and as it is. */
const ROUNDED_UINT64 = String(Number(2n ** 64n - 1n));
const MAX_UINT64 = String(2n ** 64n - 1n);

const HEAD = '# Generated from the schemas that messages are read by: npm run schema\n';

/** The document for `schema/asyncapi.yaml`; always the same text. */
export function printedAsyncApi(): string {
  const path = join(import.meta.dirname, '../../../package.json');
  const { version } = JSON.parse(readFileSync(path, 'utf8'));
  const text = stringify(asyncApiDocument(version), { aliasDuplicateObjects: false, lineWidth: 0 });
  return `${HEAD}${text.replaceAll(ROUNDED_UINT64, MAX_UINT64)}`;
}
