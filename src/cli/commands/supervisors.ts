import { randomBytes } from 'node:crypto';
import { OPERATOR } from '../../access/administration/administration.ts';
import type { SupervisorRow } from '../../access/supervisors/supervisors.service.ts';
import { passwordInput, supervisorInput, usernameInput } from '../../features/supervisors/supervisor.input.ts';
import { objectInput } from '../../lib/input.ts';
import { isoFromPg } from '../../lib/instants.ts';
import { type CommandBody, type CommandInput, printable, UsageError } from '../kit/command.ts';
import { checked, text, uuid } from '../kit/flags.ts';
import { changed, openAdministration, orCommandError } from '../kit/open-services.ts';
import { changeCommand, listCommand, statusCommand } from '../kit/row-commands.ts';

/** Returns a supervisor in the REST names, without the password. */
function supervisorView(row: SupervisorRow) {
  return { ...row, created_at: isoFromPg(row.created_at), updated_at: isoFromPg(row.updated_at) };
}

const GENERATED_BYTES = 18;

/**
 * Returns the password from the first line of the standard input, or a generated one, which is then printed once, if
 * nothing is piped in. Passwords are never flags, because other users of the machine can see those.
 * @throws UsageError for an empty line.
 */
async function readPassword({ readLine }: Pick<CommandInput, 'readLine'>) {
  const line = await readLine();
  if (line === undefined) return { password: randomBytes(GENERATED_BYTES).toString('base64url'), isGenerated: true };
  if (line === '') throw new UsageError('standard input begins with an empty line: pipe the password, or nothing');
  return { password: line, isGenerated: false };
}

/**
 * Returns the JSON document and the text for a supervisor whose password was just set; they contain the password only
 * if it was generated.
 */
function withPassword(
  row: SupervisorRow,
  { password, isGenerated }: Awaited<ReturnType<typeof readPassword>>,
): [object, string] {
  const lines = [`supervisor  ${row.id}`, `username    ${printable(row.username)}`, `role        ${row.role}`];
  if (isGenerated) lines.push(`password    ${password}`, 'The password is shown only once; only its hash is stored.');
  const document = { ...supervisorView(row), ...(isGenerated ? { password } : {}) };
  return [document, lines.map((line) => `${line}\n`).join('')];
}

/** `portcullis supervisor create`: creates a supervisor of a tenant. */
export const supervisorCreate: CommandBody = {
  description: [
    'Creates a supervisor. The password is the first line of standard input; without one, a password is',
    'generated and shown only once. It is never a flag, because other users of the machine could read it.',
  ].join(' '),
  flags: {
    node: { help: 'id of the tenant (node) that the supervisor belongs to', required: 'ID' },
    username: { help: 'login name, unique within the tenant; letter case and invisible characters do not count' },
    name: { help: 'same as --username' },
    role: { help: 'admin, operator or viewer', required: 'ROLE' },
  },
  examples: [
    'portcullis supervisor create --node ID --username ada --role operator',
    'portcullis supervisor create --node ID --username ada --role admin < password.txt',
  ],
  async run(input) {
    const { flags } = input;
    const nodeId = uuid('--node', text(flags, 'node'));
    const username = usernameOf(text(flags, 'username'), text(flags, 'name'));
    const newPassword = await readPassword(input);
    const members = { username, role: text(flags, 'role'), password: newPassword.password };
    const supervisor = checked(supervisorInput, members, { password: 'the password' });
    const { supervisorAdministration, record } = await openAdministration(input);
    await record(flags, { nodeId });
    const created = supervisorAdministration.create(nodeId, OPERATOR, supervisor);
    return input.answer(...withPassword(await orCommandError(`there is no node ${nodeId}`, created), newPassword));
  },
};

function usernameOf(username: string | undefined, name: string | undefined): string {
  if (username !== undefined && name !== undefined)
    throw new UsageError('--username and --name are the same flag: give only one');
  const chosenName = username ?? name;
  if (chosenName === undefined) throw new UsageError('missing --username NAME');
  return chosenName;
}

/** `portcullis supervisor list`: prints the supervisors of one tenant or of all. */
export const supervisorList = listCommand({
  name: 'supervisors',
  description:
    'Lists supervisors, active or not, oldest first within each tenant. Passwords are not stored and cannot be shown.',
  pages: ({ supervisorPages }) => supervisorPages,
  head: `${'SUPERVISOR'.padEnd(36)}  ${'NODE'.padEnd(36)}  STATUS    ROLE      USERNAME\n`,
  view: supervisorView,
  line: ({ id, node_id: nodeId, status, role, username }) =>
    `${id}  ${nodeId}  ${status.padEnd('disabled'.length)}  ${role.padEnd('operator'.length)}  ${printable(username)}\n`,
});

/** `portcullis supervisor disable`: disables a supervisor and revokes the sessions. */
export const supervisorDisable = statusCommand(
  {
    noun: 'supervisor',
    description: [
      'Disables a supervisor, who can no longer log in, and revokes their sessions. Running processes follow within a second.',
      'The last active admin of a tenant cannot be disabled.',
    ].join(' '),
    change: async ({ supervisorAdministration }, nodeId, id) =>
      supervisorView(await supervisorAdministration.setStatus(nodeId, OPERATOR, id, 'disabled')),
  },
  'disabled',
);

/** `portcullis supervisor enable`: lets a supervisor log in again. */
export const supervisorEnable = statusCommand(
  {
    noun: 'supervisor',
    description:
      'Enables a supervisor, who can log in again with the same password and role. Sessions that were revoked stay revoked.',
    change: async ({ supervisorAdministration }, nodeId, id) =>
      supervisorView(await supervisorAdministration.setStatus(nodeId, OPERATOR, id, 'active')),
  },
  'active',
);

/** `portcullis supervisor set-password`: sets another password and revokes the sessions. */
export const supervisorSetPassword: CommandBody = {
  description: [
    'Sets the password of a supervisor and revokes their sessions. Running processes follow within a second. The password is',
    'the first line of standard input; without one, a password is generated and shown only once.',
  ].join(' '),
  positionals: ['ID'],
  examples: ['portcullis supervisor set-password ID', 'portcullis supervisor set-password ID < password.txt'],
  async run(input) {
    const id = uuid('ID', input.positionals[0]);
    const newPassword = await readPassword(input);
    const { password } = checked(passwordInput, { password: newPassword.password }, { password: 'the password' });
    const supervisor = await changed(input, 'supervisor', id, ({ supervisorAdministration }, nodeId) =>
      supervisorAdministration.setPassword(nodeId, OPERATOR, id, password),
    );
    return input.answer(...withPassword(supervisor, newPassword));
  },
};

/** `portcullis supervisor unlock`: ends the lockout of a supervisor's username. */
export const supervisorUnlock = changeCommand({
  noun: 'supervisor',
  description: [
    'Unlocks a supervisor. Five failed logins within fifteen minutes lock a username for fifteen minutes. Sessions are',
    'not affected.',
  ].join(' '),
  examples: ['portcullis supervisor unlock ID', 'portcullis supervisor unlock ID --json'],
  readFlags: () => undefined,
  change: async ({ supervisorAdministration }, nodeId, id) =>
    supervisorView(await supervisorAdministration.unlock(nodeId, OPERATOR, id)),
  now: () => 'unlocked',
});

const usernameFlag = objectInput({ username: usernameInput });

/** `portcullis supervisor rename`: gives a supervisor another username. */
export const supervisorRename = changeCommand({
  noun: 'supervisor',
  description: [
    'Gives a supervisor another username and revokes their sessions. It resolves a clash that portcullis clashes lists: usernames',
    'of earlier releases that count as one. Password, role and status stay. Failed logins count for the username that they named:',
    'those of the former one, and a lockout by them, do not follow.',
  ].join(' '),
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
