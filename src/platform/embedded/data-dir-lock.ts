import { join } from 'node:path';
import { FileLock } from '../../lib/file-lock.ts';
import { makeFolder } from '../../lib/files.ts';
import { StartError } from '../errors.ts';

const ADVICE = 'stop it, or set a different DATA_DIR for this one';

/**
 * Takes the kernel lock of `DATA_DIR`: two processes on one embedded database would lose rows. `advice` ends the error
 * message.
 * @throws StartError if another process holds the lock, or the folder cannot be used.
 */
export function lockDataDir(dataDir: string, advice = ADVICE): Disposable {
  const path = join(dataDir, 'lock');
  const lock = createLock(dataDir, path);
  if (!lock) {
    throw new StartError(`another Portcullis is running on ${dataDir}: ${advice}`);
  }
  return { [Symbol.dispose]: () => lock.release() };
}

function createLock(dataDir: string, path: string): FileLock | undefined {
  try {
    makeFolder(dataDir);
    return FileLock.create(path);
  } catch (error) {
    const reason = error instanceof Error && 'code' in error ? String(error.code) : String(error);
    throw new StartError(`DATA_DIR ${dataDir} cannot be used (${reason}): set it to a writable folder`);
  }
}
