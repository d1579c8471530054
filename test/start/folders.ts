import { rm } from 'node:fs/promises';
import { newDataDir } from '../harness.ts';
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

function disposable(path: string): TestFolder {
  return { path, [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }) };
}
