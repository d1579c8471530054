import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestProject } from 'vitest/node';
import { generateOperations } from '../graphql/operations.ts';
import { dropDatabase, startedDatabase } from './pg-client.ts';
import { describeMissing, type MissingService, provision, type ServerName } from './provision.ts';

declare module 'vitest' {
  interface ProvidedContext {
    databaseUrl: string | undefined;
    redisUrl: string | undefined;
    kafkaBrokers: string | undefined;
    chromium: string | undefined;
    prometheus: string | undefined;
    python: string | undefined;
    /** Whether every case is tried, as `npm run test:long` does, where `npm test` takes some in turn. */
    isThorough: boolean;
    /** A folder of this run. */
    runFolder: string;
    startedServices: ServerName[];
    missingServices: MissingService[];
  }
}

/** Generates the typed operations, provisions the real servers, the browser, Prometheus and Python once for the whole run, and returns the function that ends them. */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  generateOperations();
  const services = await provision(process.env, { browser: true, prometheus: true, python: true });
  const runFolder = await mkdtemp(join(tmpdir(), 'portcullis-run-'));
  project.provide('runFolder', runFolder);
  project.provide('databaseUrl', services.databaseUrl);
  project.provide('redisUrl', services.redisUrl);
  project.provide('kafkaBrokers', services.kafkaBrokers);
  project.provide('chromium', services.chromium);
  project.provide('prometheus', services.prometheus);
  project.provide('python', services.python);
  project.provide('startedServices', services.started);
  project.provide('missingServices', services.missing);
  if (services.missing.length > 0) {
    process.stderr.write(`Suites that need these services are skipped:\n${describeMissing(services.missing)}\n`);
  }
  return async () => {
    if (services.databaseUrl) await dropDatabase(services.databaseUrl, startedDatabase(runFolder));
    await services.stop();
    await rm(runFolder, { recursive: true, force: true });
  };
}
