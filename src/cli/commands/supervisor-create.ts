import { OPERATOR } from '../../oauth/administration.rules.ts';
import { ROLE_NAMES } from '../../oauth/permissions.rules.ts';
import { supervisorInput } from '../../supervisors/supervisor.input.ts';
import { openAdministration, orCommandError } from '../administration.ts';
import { type Command, EXIT_OK, UsageError } from '../command.ts';
import { checked, text, uuid } from '../flags.ts';
import { givenPassword } from '../given-password.ts';
import { withPassword } from '../supervisor-view.ts';

const FLAG_OF = { username: '--username', role: '--role', password: 'the password' };

/** `portcullis supervisor create`: a person who logs in to a node. */
export const supervisorCreate: Command = {
  name: 'supervisor create',
  summary: 'create a supervisor of a node',
  description: [
    'Creates a supervisor of a node. The password is the first line of what is piped in; without one it',
    'is made here and shown this once. It is never a flag: others on the machine could read it there.',
  ].join('\n'),
  positionals: [],
  required: { node: 'ID', role: 'ROLE' },
  flags: { node: { type: 'string' }, username: { type: 'string' }, name: { type: 'string' }, role: { type: 'string' } },
  flagHelp: {
    node: 'the node that the supervisor is of',
    username: 'the name to log in with: one of its kind on the node, in any case of its letters',
    name: 'the same as --username',
    role: 'admin, operator or viewer',
  },
  choices: { role: ROLE_NAMES },
  examples: [
    'portcullis supervisor create --node ID --username ada --role operator',
    'portcullis supervisor create --node ID --username ada --role admin < password.txt',
  ],
  async run(input) {
    const { flags, env, json, print } = input;
    const nodeId = uuid('--node', text(flags, 'node'));
    const username = usernameOf(text(flags, 'username'), text(flags, 'name'));
    const given = await givenPassword(input);
    const members = { username, role: text(flags, 'role'), password: given.password };
    const supervisor = checked(supervisorInput, members, FLAG_OF);
    await using stack = new AsyncDisposableStack();
    const { supervisors } = await openAdministration(env, 'mutation createSupervisor', stack);
    const created = supervisors.create(nodeId, OPERATOR, supervisor);
    print(withPassword(await orCommandError(`there is no node ${nodeId}`, created), given, json));
    return EXIT_OK;
  },
};

function usernameOf(username: string | undefined, name: string | undefined): string {
  if (username !== undefined && name !== undefined)
    throw new UsageError('--username and --name are one: give one of them');
  const given = username ?? name;
  if (given === undefined) throw new UsageError('without --username: wanted --username NAME');
  return given;
}
