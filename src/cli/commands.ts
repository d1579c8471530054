import type { Command } from './command.ts';
import { auditList } from './commands/audit-list.ts';
import { clientCreate } from './commands/client-create.ts';
import { clientDisable } from './commands/client-disable.ts';
import { clientList } from './commands/client-list.ts';
import { clientRotateSecret } from './commands/client-rotate-secret.ts';
import { completionOf } from './commands/completion.ts';
import { configCheck } from './commands/config-check.ts';
import { migrateCommand } from './commands/migrate.ts';
import { nodeCreate } from './commands/node-create.ts';
import { referenceLoad } from './commands/reference-load.ts';
import { seed } from './commands/seed.ts';
import { start } from './commands/start.ts';
import { supervisorCreate } from './commands/supervisor-create.ts';
import { supervisorDisable } from './commands/supervisor-disable.ts';
import { supervisorSetPassword } from './commands/supervisor-set-password.ts';
import { supervisorUnlock } from './commands/supervisor-unlock.ts';
import { transactionsReplay } from './commands/transactions-replay.ts';
import { usersErase } from './commands/users-erase.ts';
import { usersImport } from './commands/users-import.ts';

const WORKING: readonly Command[] = [
  start,
  migrateCommand,
  seed,
  auditList,
  configCheck,
  nodeCreate,
  referenceLoad,
  clientCreate,
  clientList,
  clientRotateSecret,
  clientDisable,
  supervisorCreate,
  supervisorDisable,
  supervisorSetPassword,
  supervisorUnlock,
  usersImport,
  usersErase,
  transactionsReplay,
];

/** Every command, in the order of the help. */
export const COMMANDS: readonly Command[] = [...WORKING, completionOf(WORKING)];
