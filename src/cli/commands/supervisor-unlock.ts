import { OPERATOR } from '../../oauth/administration.rules.ts';
import { openAdministration, orCommandError } from '../administration.ts';
import { type Command, EXIT_OK } from '../command.ts';
import { uuid } from '../flags.ts';
import { supervisorView } from '../supervisor-view.ts';

/** `portcullis supervisor unlock`: the end of a lock. */
export const supervisorUnlock: Command = {
  name: 'supervisor unlock',
  summary: 'let a supervisor log in again after too many failed logins',
  description: [
    'Forgets the failed logins of a supervisor: five of them in fifteen minutes lock a username for',
    'fifteen minutes. The sessions stay.',
  ].join('\n'),
  positionals: ['ID'],
  flags: {},
  flagHelp: {},
  examples: ['portcullis supervisor unlock ID', 'portcullis supervisor unlock ID --json'],
  async run({ positionals, env, json, print }) {
    const id = uuid('ID', positionals[0]);
    await using stack = new AsyncDisposableStack();
    const { supervisors, nodeOfSupervisor } = await openAdministration(env, 'mutation unlockSupervisor', stack);
    const changed = supervisors.unlock(await nodeOfSupervisor(id), OPERATOR, id);
    const supervisor = await orCommandError(`there is no supervisor ${id}`, changed);
    print(json ? `${JSON.stringify(supervisorView(supervisor))}\n` : `Supervisor ${supervisor.id} is unlocked.\n`);
    return EXIT_OK;
  },
};
