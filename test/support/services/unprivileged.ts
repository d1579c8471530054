import { runCommand } from './commands.ts';

export interface SystemUser {
  uid: number;
  gid: number;
}

/** A user without privileges to run a server as: none is needed unless this process is root's. */
export async function unprivilegedUser(): Promise<SystemUser | undefined> {
  if (process.getuid?.() !== 0) return undefined;
  for (const name of ['postgres', 'nobody']) {
    try {
      const [uid, gid] = await Promise.all([runCommand('id', ['-u', name]), runCommand('id', ['-g', name])]);
      return { uid: Number(uid), gid: Number(gid) };
    } catch {
      // No such user on this system: the next name.
    }
  }
  throw new Error('PostgreSQL refuses to run as root, and this system has neither the user postgres nor nobody');
}
