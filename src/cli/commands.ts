import type { Command } from './kit/command.ts';

type Loaders = Readonly<Record<string, () => Promise<Command>>>;

const WORKING: Loaders = {
  start: async () => (await import('./commands/start.ts')).start,
  migrate: async () => (await import('./commands/migrate.ts')).migrateCommand,
  seed: async () => (await import('./commands/seed.ts')).seed,
  'audit list': async () => (await import('./commands/audit-list.ts')).auditList,
  'config check': async () => (await import('./commands/config-check.ts')).configCheck,
  'node create': async () => (await import('./commands/node-create.ts')).nodeCreate,
  'reference load': async () => (await import('./commands/reference-load.ts')).referenceLoad,
  'client create': async () => (await import('./commands/clients.ts')).clientCreate,
  'client list': async () => (await import('./commands/clients.ts')).clientList,
  'client rotate-secret': async () => (await import('./commands/clients.ts')).clientRotateSecret,
  'client disable': async () => (await import('./commands/clients.ts')).clientDisable,
  'supervisor create': async () => (await import('./commands/supervisors.ts')).supervisorCreate,
  'supervisor disable': async () => (await import('./commands/supervisors.ts')).supervisorDisable,
  'supervisor set-password': async () => (await import('./commands/supervisors.ts')).supervisorSetPassword,
  'supervisor unlock': async () => (await import('./commands/supervisors.ts')).supervisorUnlock,
  'users import': async () => (await import('./commands/users-import.ts')).usersImport,
  'users erase': async () => (await import('./commands/users-erase.ts')).usersErase,
  'transactions replay': async () => (await import('./commands/transactions-replay.ts')).transactionsReplay,
};

/**
 * The functions that load each command, by name and in the order of the help. Each imports only its own command, so
 * that running one does not wait for the dependencies of the others.
 */
const LOADERS: Loaders = {
  ...WORKING,
  completion: async () => (await import('./commands/completion.ts')).completionOf(() => loaded(WORKING)),
};

export const COMMAND_NAMES: readonly string[] = Object.keys(LOADERS);

/** Returns the command with a name; undefined if the name is not among `COMMAND_NAMES`. */
export async function loadCommand(name: string): Promise<Command | undefined> {
  return await LOADERS[name]?.();
}

/** Returns every command, in the order of the help. */
export function loadCommands(): Promise<readonly Command[]> {
  return loaded(LOADERS);
}

function loaded(loaders: Loaders): Promise<readonly Command[]> {
  return Promise.all(Object.values(loaders).map((load) => load()));
}
