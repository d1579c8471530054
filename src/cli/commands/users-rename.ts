import { emailInput } from '../../domain/user-migrations/migration.input.ts';
import { emailOf } from '../../domain/users/identifiers.rules.ts';
import { renameUser } from '../../domain/users/user-rename.service.ts';
import { objectInput } from '../../lib/input.ts';
import type { CommandBody } from '../kit/command.ts';
import { checked, text, uuid } from '../kit/flags.ts';
import { nodeOf, openReading, orCommandError, STOP_FIRST } from '../kit/open-services.ts';
import { printable } from '../kit/progress.ts';

const renaming = objectInput({ email: emailInput.refine((email) => emailOf(email) !== '', 'must not be blank') });

/** `portcullis users rename`: gives a user another email. */
export const usersRename: CommandBody = {
  description: [
    'Gives a user another email. It resolves a clash that portcullis clashes lists: emails of earlier releases that count as',
    'one.',
  ].join('\n'),
  positionals: ['ID'],
  flags: { email: { help: 'email, unique within the tenant', required: 'EMAIL' } },
  examples: [
    'portcullis users rename ID --email ada@example.com',
    'portcullis users rename ID --email ada@example.com --json',
  ],
  async run(input) {
    const id = uuid('ID', input.positionals[0]);
    const { email } = checked(renaming, { email: text(input.flags, 'email') });
    const db = await openReading(input, STOP_FIRST);
    const absent = `there is no user ${id}`;
    const user = await orCommandError(absent, renameUser(db, await nodeOf(db, 'users', id, absent), id, email));
    return input.answer({ id: user.id, email: user.email }, `User ${user.id} is ${printable(user.email)}.\n`);
  },
};
