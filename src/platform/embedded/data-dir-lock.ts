import { join } from 'node:path';
import { FileLock, makeFolder } from '../../lib/files.ts';
import { StartError } from '../errors.ts';

/**
 * Takes the kernel lock of `DATA_DIR`, since two processes on one embedded database would lose rows. Returns undefined if
 * another process holds it.
 * @throws StartError if the folder cannot be used.
 */
export function lockDataDir(dataDir: string): Disposable | undefined {
  try {
    makeFolder(dataDir);
    const lock = FileLock.create(join(dataDir, 'lock'));
    return lock && { [Symbol.dispose]: () => lock.release() };
  } catch (error) {
    const reason = error instanceof Error && 'code' in error ? String(error.code) : String(error);
    throw new StartError(`DATA_DIR ${dataDir} cannot be used (${reason}): set it to a writable folder`);
  }
}

/** Makes the error of a process that needs `DATA_DIR` for itself while another one runs on it. */
export function inUse(dataDir: string, advice: string): StartError {
  return new StartError(`another Portcullis is running on ${dataDir}: ${advice}`);
}
