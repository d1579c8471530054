import { mkdirSync, writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { printedAsyncApi } from './asyncapi.ts';

// Writes schema/asyncapi.yaml, which is committed: a change of the topics' content shows in the diff.
const folder = resolve(import.meta.dirname, '../schema');
mkdirSync(folder, { recursive: true });
writeFileSync(resolve(folder, 'asyncapi.yaml'), printedAsyncApi());
