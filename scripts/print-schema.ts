import { mkdirSync, writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { printedSchema } from '../src/app/graphql-schema.ts';

// Writes schema/schema.graphql, which is committed: a change of the surface shows in the diff.
const folder = resolve(import.meta.dirname, '../schema');
mkdirSync(folder, { recursive: true });
writeFileSync(resolve(folder, 'schema.graphql'), printedSchema());
