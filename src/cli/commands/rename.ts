import { OPERATOR } from '../../access/administration/administration.ts';
import { usernameInput } from '../../features/supervisors/supervisor.input.ts';
import { emailInput } from '../../features/user-migrations/migration.input.ts';
import { emailOf } from '../../features/users/users.rules.ts';
import { renameUser } from '../../features/users/users.service.ts';
import { objectInput } from '../../lib/input.ts';
import { changeCommand } from '../kit/change-command.ts';
import { checked } from '../kit/flags.ts';
import { printable } from '../kit/progress.ts';
import { supervisorView } from './supervisors.ts';

const emailFlag = objectInput({ email: emailInput.refine((email) => emailOf(email) !== '', 'must not be blank') });
const usernameFlag = objectInput({ username: usernameInput });

/** `portcullis users rename`: gives a user another email. */
export const usersRename = changeCommand({
  noun: 'user',
  description: [
    'Gives a user another email. It resolves a clash that portcullis clashes lists: emails of earlier releases that count as',
    'one. The id, external id, wallet and KYC status stay, and no event is published. The former email can be used again.',
  ].join('\n'),
  flags: { email: { help: 'email, unique within the tenant', required: 'EMAIL' } },
  examples: [
    'portcullis users rename ID --email ada@example.com',
    'portcullis users rename ID --email ada@example.com --json',
  ],
  readFlags: ({ flags }) => checked(emailFlag, flags),
  change: async ({ db }, nodeId, id, { email }) => ({ id, email: (await renameUser(db, nodeId, id, email)).email }),
  now: ({ email }) => printable(email),
});

/** `portcullis supervisor rename`: gives a supervisor another username. */
export const supervisorRename = changeCommand({
  noun: 'supervisor',
  description: [
    'Gives a supervisor another username and revokes their sessions. It resolves a clash that portcullis clashes lists: usernames',
    'of earlier releases that count as one. Password, role and status stay. Failed logins count for the username that they named:',
    'those of the former one, and a lockout by them, do not follow.',
  ].join('\n'),
  flags: { username: { help: 'login name, unique within the tenant', required: 'NAME' } },
  examples: [
    'portcullis supervisor rename ID --username ada2',
    'portcullis supervisor rename ID --username ada2 --json',
  ],
  readFlags: ({ flags }) => checked(usernameFlag, flags),
  change: async ({ supervisorAdministration }, nodeId, id, { username }) =>
    supervisorView(await supervisorAdministration.rename(nodeId, OPERATOR, id, username)),
  now: ({ username }) => printable(username),
});
