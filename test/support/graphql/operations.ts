import { execFileSync } from 'node:child_process';
import { globSync, statSync, utimesSync } from 'node:fs';
import { resolve } from 'node:path';

const ROOT = resolve(import.meta.dirname, '../../..');
const CONFIG = 'test/graphql/codegen.yml';
const GENERATED = 'test/graphql/generated/graphql.ts';

function changedMs(file: string): number {
  return statSync(resolve(ROOT, file), { throwIfNoEntry: false })?.mtimeMs ?? 0;
}

/** Generates the typed operations of `test/graphql/operations`, unless nothing that they depend on is newer. */
export function generateOperations(): void {
  const sources = [CONFIG, 'schema/schema.graphql', ...globSync('test/graphql/operations/*.graphql', { cwd: ROOT })];
  if (sources.every((source) => changedMs(source) < changedMs(GENERATED))) return;
  execFileSync('node_modules/.bin/graphql-codegen', ['--config', CONFIG], { cwd: ROOT, stdio: 'pipe' });
  // A file whose content is the same is not written again.
  utimesSync(resolve(ROOT, GENERATED), new Date(), new Date());
}

if (import.meta.main) generateOperations();
