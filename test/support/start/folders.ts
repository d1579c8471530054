import { rm } from 'node:fs/promises';
import { startFailure } from '../../../src/app/run.ts';
import { ConfigError, readConfig } from '../../../src/platform/config/config.ts';
import { newDataDir, startedDataDir, startPortcullis } from '../harness.ts';
import { temporaryFolder } from '../services/folders.ts';

/** A folder that is removed at the end of the test that made it. */
export interface TestFolder extends AsyncDisposable {
  path: string;
}

/** An empty folder. */
export async function emptyFolder(): Promise<TestFolder> {
  return disposable(await temporaryFolder());
}

/** A `DATA_DIR` whose database is migrated already, which saves the seconds of the first start. */
export async function migratedFolder(): Promise<TestFolder> {
  return disposable(await newDataDir());
}

/** A `DATA_DIR` of an instance that was started once, with its demo. */
export async function startedFolder(): Promise<TestFolder> {
  return disposable(await startedDataDir());
}

/** Starts an instance in this process, and returns the sentences with which it refuses; undefined where it starts after all. */
export async function refusalOf(dataDir: string, env: Record<string, string> = {}): Promise<string | undefined> {
  return (await refusedStart(dataDir, env))?.stderr;
}

/** Starts an instance in this process, and returns how a process that refuses ends; undefined where it starts after all. */
export async function refusedStart(dataDir: string, env: Record<string, string> = {}) {
  try {
    await using _started = await startPortcullis({ dataDir, env });
    return undefined;
  } catch (error) {
    const cause = error instanceof Error && error.cause ? error.cause : error;
    if (cause instanceof ConfigError) return { code: 78, stdout: '', stderr: cause.message };
    const sentence = startFailure(cause, readConfig({ DATA_DIR: dataDir, ...env }).config);
    if (sentence === undefined) throw error;
    return { code: 1, stdout: '', stderr: sentence };
  }
}

function disposable(path: string): TestFolder {
  return { path, [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }) };
}
