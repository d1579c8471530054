import { OPERATOR } from '../../oauth/administration.rules.ts';
import { passwordInput } from '../../supervisors/supervisor.input.ts';
import { openAdministration, orCommandError } from '../administration.ts';
import { type Command, EXIT_OK } from '../command.ts';
import { checked, uuid } from '../flags.ts';
import { givenPassword } from '../given-password.ts';
import { withPassword } from '../supervisor-view.ts';

/** `portcullis supervisor set-password`: another password; the sessions so far end. */
export const supervisorSetPassword: Command = {
  name: 'supervisor set-password',
  summary: 'set the password of a supervisor and end the sessions',
  description: [
    'Sets the password of a supervisor; the sessions so far end, on running servers within a second. The',
    'password is the first line of what is piped in; without one it is made here and shown this once.',
  ].join('\n'),
  positionals: ['ID'],
  flags: {},
  flagHelp: {},
  examples: ['portcullis supervisor set-password ID', 'portcullis supervisor set-password ID < password.txt'],
  async run(input) {
    const { positionals, env, json, print } = input;
    const id = uuid('ID', positionals[0]);
    const given = await givenPassword(input);
    const { password } = checked(passwordInput, { password: given.password }, { password: 'the password' });
    await using stack = new AsyncDisposableStack();
    const { supervisors, nodeOfSupervisor } = await openAdministration(env, 'mutation setSupervisorPassword', stack);
    const changed = supervisors.setPassword(await nodeOfSupervisor(id), OPERATOR, id, password);
    print(withPassword(await orCommandError(`there is no supervisor ${id}`, changed), given, json));
    return EXIT_OK;
  },
};
