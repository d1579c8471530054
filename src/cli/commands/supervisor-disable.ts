import { OPERATOR } from '../../oauth/administration.rules.ts';
import { openAdministration, orCommandError } from '../administration.ts';
import { type Command, EXIT_OK } from '../command.ts';
import { uuid } from '../flags.ts';
import { supervisorView } from '../supervisor-view.ts';

/** `portcullis supervisor disable`: the end of a supervisor and of the sessions. */
export const supervisorDisable: Command = {
  name: 'supervisor disable',
  summary: 'disable a supervisor and end the sessions',
  description: [
    'Disables a supervisor: no login and no refresh any more, and the sessions end, on running servers',
    'within a second. The last active admin of a node stays.',
  ].join('\n'),
  positionals: ['ID'],
  flags: {},
  flagHelp: {},
  examples: ['portcullis supervisor disable ID', 'portcullis supervisor disable ID --json'],
  async run({ positionals, env, json, print }) {
    const id = uuid('ID', positionals[0]);
    await using stack = new AsyncDisposableStack();
    const { supervisors, nodeOfSupervisor } = await openAdministration(env, 'mutation setSupervisorStatus', stack);
    const changed = supervisors.setStatus(await nodeOfSupervisor(id), OPERATOR, id, 'disabled');
    const supervisor = await orCommandError(`there is no supervisor ${id}`, changed);
    print(json ? `${JSON.stringify(supervisorView(supervisor))}\n` : `Supervisor ${supervisor.id} is disabled.\n`);
    return EXIT_OK;
  },
};
