import { execFileSync } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestProject } from 'vitest/node';
import { generateOperations } from '../graphql/operations.ts';
import { ROOT } from '../start/process.ts';
import { dropDatabase, startedDatabase } from './pg-client.ts';
import {
  type Addresses,
  describeMissing,
  EVERYTHING,
  type MissingService,
  provision,
  type ServiceName,
} from './provision.ts';

declare module 'vitest' {
  interface ProvidedContext {
    addresses: Addresses;
    /** Whether every case is tried, as `npm run test:long` does, where `npm test` takes some in turn. */
    isThorough: boolean;
    /** A folder of this run. */
    runFolder: string;
    startedServices: ServiceName[];
    missingServices: MissingService[];
  }
}

/** Generates the typed operations, bundles the packages as `npm start` does, provisions the real servers, the browser, Prometheus and Python once for the whole run, and returns the function that ends them. */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  generateOperations();
  // In a Node of its own: the test runner's imports show other exports of a package.
  execFileSync(process.execPath, ['scripts/bundle-packages.ts'], { cwd: ROOT, stdio: 'inherit' });
  const services = await provision(process.env, EVERYTHING);
  const runFolder = await mkdtemp(join(tmpdir(), 'portcullis-run-'));
  project.provide('runFolder', runFolder);
  project.provide('addresses', services.addresses);
  project.provide('startedServices', services.started);
  project.provide('missingServices', services.missing);
  if (services.missing.length > 0) {
    process.stderr.write(`Suites that need these services are skipped:\n${describeMissing(services.missing)}\n`);
  }
  return async () => {
    const { postgres } = services.addresses;
    if (postgres) await dropDatabase(postgres, startedDatabase(runFolder));
    await services.stop();
    await rm(runFolder, { recursive: true, force: true });
  };
}
