import type { Command, CommandBody, CommandTitle } from './kit/command.ts';

/**
 * Every command, by name and in the order of the help. Its summary is here and the rest in its own file, so that
 * the help waits for no command, and a command for no other.
 */
const LISTED: Readonly<Record<string, { summary: string; load(): Promise<CommandBody> }>> = {
  start: {
    summary: 'run the service until SIGINT or SIGTERM',
    load: async () => (await import('./commands/start.ts')).start,
  },
  migrate: {
    summary: 'migrate the database schema and create missing topics',
    load: async () => (await import('./commands/installation.ts')).migrateCommand,
  },
  seed: {
    summary: 'add the demo tenant to the database and write DATA_DIR/demo.json',
    load: async () => (await import('./commands/demo-commands.ts')).seed,
  },
  status: {
    summary: 'say what is wrong, since when, who is hit, and what to type',
    load: async () => (await import('./commands/installation.ts')).statusCommand,
  },
  'audit list': {
    summary: 'list audit records in the order of their arrival, and follow them',
    load: async () => (await import('./commands/audit-list.ts')).auditList,
  },
  'audit export': {
    summary: 'export audit records with what proves them to others, and a signed manifest',
    load: async () => (await import('./commands/audit-evidence.ts')).auditExport,
  },
  'audit redact': {
    summary: 'remove what callers wrote from audit records, as the owner of the tables',
    load: async () => (await import('./commands/audit-evidence.ts')).auditRedact,
  },
  'audit verify': {
    summary: 'check that no audit record was altered, removed or forged',
    load: async () => (await import('./commands/audit-evidence.ts')).auditVerify,
  },
  'config check': {
    summary: 'show the configuration, or every error in it',
    load: async () => (await import('./commands/config-check.ts')).configCheck,
  },
  'node create': {
    summary: 'create a node: a tenant, to which everything else belongs',
    load: async () => (await import('./commands/reference.ts')).nodeCreate,
  },
  'node list': {
    summary: 'list the nodes',
    load: async () => (await import('./commands/reference.ts')).nodeList,
  },
  'reference load': {
    summary: 'load nodes, chains, networks, currencies, accounts, wallets and assets from a file',
    load: async () => (await import('./commands/reference.ts')).referenceLoad,
  },
  'client create': {
    summary: 'create a client of a node and show its secret once',
    load: async () => (await import('./commands/clients.ts')).clientCreate,
  },
  'client list': {
    summary: 'list the clients of one tenant or of all tenants',
    load: async () => (await import('./commands/clients.ts')).clientList,
  },
  'client show': {
    summary: 'show a client, its use this month and the ends of its secrets',
    load: async () => (await import('./commands/clients.ts')).clientShow,
  },
  'client update': {
    summary: 'change the given members of a client',
    load: async () => (await import('./commands/clients.ts')).clientUpdate,
  },
  'client rotate-secret': {
    summary: 'issue a new client secret and show it once',
    load: async () => (await import('./commands/clients.ts')).clientRotateSecret,
  },
  'client disable': {
    summary: 'disable a client and revoke its tokens and the sessions created through it',
    load: async () => (await import('./commands/clients.ts')).clientDisable,
  },
  'client enable': {
    summary: 'make the secrets of a disabled client work again',
    load: async () => (await import('./commands/clients.ts')).clientEnable,
  },
  'supervisor create': {
    summary: 'create a supervisor of a node',
    load: async () => (await import('./commands/supervisors.ts')).supervisorCreate,
  },
  'supervisor list': {
    summary: 'list the supervisors of one tenant or of all tenants',
    load: async () => (await import('./commands/supervisors.ts')).supervisorList,
  },
  'supervisor disable': {
    summary: 'disable a supervisor and revoke their sessions',
    load: async () => (await import('./commands/supervisors.ts')).supervisorDisable,
  },
  'supervisor enable': {
    summary: 'let a disabled supervisor log in again',
    load: async () => (await import('./commands/supervisors.ts')).supervisorEnable,
  },
  'supervisor set-password': {
    summary: 'set the password of a supervisor and revoke their sessions',
    load: async () => (await import('./commands/supervisors.ts')).supervisorSetPassword,
  },
  'supervisor rename': {
    summary: 'give a supervisor another username and revoke their sessions',
    load: async () => (await import('./commands/supervisors.ts')).supervisorRename,
  },
  'supervisor unlock': {
    summary: 'unlock a supervisor after too many failed logins',
    load: async () => (await import('./commands/supervisors.ts')).supervisorUnlock,
  },
  'users import': {
    summary: 'migrate users from a CSV file',
    load: async () => (await import('./commands/users-import.ts')).usersImport,
  },
  'users rename': {
    summary: 'give a user another email',
    load: async () => (await import('./commands/users.ts')).usersRename,
  },
  'users erase': {
    summary: 'erase the personal data of a user permanently',
    load: async () => (await import('./commands/users.ts')).usersErase,
  },
  clashes: {
    summary: 'list users and supervisors whose emails or usernames count as one',
    load: async () => (await import('./commands/users.ts')).clashes,
  },
  'transactions replay': {
    summary: 'replay dead letters, or all messages from a time range',
    load: async () => (await import('./commands/dead-letters.ts')).transactionsReplay,
  },
  'dead-letters list': {
    summary: 'list the dead letters that wait for a decision',
    load: async () => (await import('./commands/dead-letters.ts')).deadLettersList,
  },
  'dead-letters show': {
    summary: 'show a dead letter, with secrets masked',
    load: async () => (await import('./commands/dead-letters.ts')).deadLettersShow,
  },
  'dead-letters replay': {
    summary: 'replay one dead letter',
    load: async () => (await import('./commands/dead-letters.ts')).deadLettersReplay,
  },
  'dead-letters discard': {
    summary: 'decide that a dead letter is never replayed',
    load: async () => (await import('./commands/dead-letters.ts')).deadLettersDiscard,
  },
  'simulate transaction': {
    summary: 'post the notifications of a transaction to a running instance, outside production',
    load: async () => (await import('./commands/demo-commands.ts')).simulateTransaction,
  },
  recover: {
    summary: 'after a restore or failover: re-read events since a given time and report what was lost',
    load: async () => (await import('./commands/installation.ts')).recover,
  },
  completion: {
    summary: 'print the completion script for bash or zsh',
    load: async () => (await import('./commands/completion.ts')).completionOf(loadCommands),
  },
};

export const COMMAND_NAMES: readonly string[] = Object.keys(LISTED);

/** Every command as the help lists it, in the order of the help. */
export const COMMAND_TITLES: readonly CommandTitle[] = Object.entries(LISTED).map(([name, { summary }]) => ({
  name,
  summary,
}));

/** Returns the command with a name; undefined if the name is not among `COMMAND_NAMES`. */
export async function loadCommand(name: string): Promise<Command | undefined> {
  const listed = LISTED[name];
  return listed && { name, summary: listed.summary, ...(await listed.load()) };
}

/** Returns every command, in the order of the help. */
export async function loadCommands(): Promise<readonly Command[]> {
  return (await Promise.all(COMMAND_NAMES.map(loadCommand))).filter((command) => command !== undefined);
}
