import { resolve } from 'node:path';
import { sbomOf } from './sbom.ts';

// The bill of materials goes to standard output: a release keeps it, the repository does not.
process.stdout.write(`${JSON.stringify(sbomOf(resolve(import.meta.dirname, '..')), null, 2)}\n`);
