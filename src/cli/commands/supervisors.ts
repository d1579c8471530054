import { randomBytes } from 'node:crypto';
import { OPERATOR } from '../../access/administration/administration.ts';
import { passwordInput, supervisorInput } from '../../access/administration/supervisor.input.ts';
import { ROLE_NAMES } from '../../access/identity/permissions.rules.ts';
import type { SupervisorRow } from '../../access/supervisors/supervisors.service.ts';
import { isoFromPg } from '../../lib/instants.ts';
import { type Command, type CommandInput, UsageError } from '../kit/command.ts';
import { checked, text, uuid } from '../kit/flags.ts';
import { openAdministration } from '../kit/open-administration.ts';
import { nodeOf, orCommandError } from '../kit/open-database.ts';
import { printable } from '../kit/progress.ts';

/** A supervisor in the REST names, without the password. */
function supervisorView(row: SupervisorRow) {
  return { ...row, created_at: isoFromPg(row.created_at), updated_at: isoFromPg(row.updated_at) };
}

const GENERATED_BYTES = 18;

/** A password, and whether it was made here: then it is to be shown, once. */
interface GivenPassword {
  password: string;
  isGenerated: boolean;
}

/**
 * The password on the first line of the standard input, or one that is made here where there is none. Never a flag:
 * others on the machine see those.
 * @throws UsageError for an empty line.
 */
async function givenPassword({ readLine }: Pick<CommandInput, 'readLine'>): Promise<GivenPassword> {
  const line = await readLine();
  if (line === undefined) return { password: randomBytes(GENERATED_BYTES).toString('base64url'), isGenerated: true };
  if (line === '') throw new UsageError('the standard input begins with an empty line: pipe the password, or nothing');
  return { password: line, isGenerated: false };
}

/** The answer of a supervisor whose password was just set: the password is shown only where it was made here. */
function withPassword(row: SupervisorRow, { password, isGenerated }: GivenPassword): [object, string] {
  const lines = [`supervisor  ${row.id}`, `username    ${printable(row.username)}`, `role        ${row.role}`];
  if (isGenerated) lines.push(`password    ${password}`, 'The password is shown this once: only its hash is kept.');
  const document = { ...supervisorView(row), ...(isGenerated ? { password } : {}) };
  return [document, lines.map((line) => `${line}\n`).join('')];
}

const FLAG_OF = { username: '--username', role: '--role', password: 'the password' };

/** `portcullis supervisor create`: a person who logs in to a node. */
export const supervisorCreate: Command = {
  name: 'supervisor create',
  summary: 'create a supervisor of a node',
  description: [
    'Creates a supervisor of a node. The password is the first line of what is piped in; without one it',
    'is made here and shown this once. It is never a flag: others on the machine could read it there.',
  ].join('\n'),
  flags: {
    node: { help: 'the node that the supervisor is of', required: 'ID' },
    username: { help: 'the name to log in with: one of its kind on the node, in any case of its letters' },
    name: { help: 'the same as --username' },
    role: { help: 'admin, operator or viewer', required: 'ROLE', choices: ROLE_NAMES },
  },
  examples: [
    'portcullis supervisor create --node ID --username ada --role operator',
    'portcullis supervisor create --node ID --username ada --role admin < password.txt',
  ],
  async run(input) {
    const { flags } = input;
    const nodeId = uuid('--node', text(flags, 'node'));
    const username = usernameOf(text(flags, 'username'), text(flags, 'name'));
    const given = await givenPassword(input);
    const members = { username, role: text(flags, 'role'), password: given.password };
    const supervisor = checked(supervisorInput, members, FLAG_OF);
    const { supervisorAdministration } = await openAdministration(input, 'mutation createSupervisor');
    const created = supervisorAdministration.create(nodeId, OPERATOR, supervisor);
    return input.answer(...withPassword(await orCommandError(`there is no node ${nodeId}`, created), given));
  },
};

function usernameOf(username: string | undefined, name: string | undefined): string {
  if (username !== undefined && name !== undefined)
    throw new UsageError('--username and --name are one: give one of them');
  const given = username ?? name;
  if (given === undefined) throw new UsageError('without --username: wanted --username NAME');
  return given;
}

type Administration = Awaited<ReturnType<typeof openAdministration>>['supervisorAdministration'];

/** Changes the supervisor that the first positional names; `operation` is the mutation of GraphQL that does the same. */
async function change(
  input: CommandInput,
  operation: string,
  work: (supervisors: Administration, nodeId: string, id: string) => Promise<SupervisorRow>,
): Promise<SupervisorRow> {
  const id = uuid('ID', input.positionals[0]);
  const { supervisorAdministration, db } = await openAdministration(input, `mutation ${operation}`);
  const absent = `there is no supervisor ${id}`;
  return orCommandError(absent, work(supervisorAdministration, await nodeOf(db, 'supervisors', id, absent), id));
}

/** `portcullis supervisor disable`: the end of a supervisor and of the sessions. */
export const supervisorDisable: Command = {
  name: 'supervisor disable',
  summary: 'disable a supervisor and end the sessions',
  description: [
    'Disables a supervisor: no login and no refresh any more, and the sessions end, on running servers',
    'within a second. The last active admin of a node stays.',
  ].join('\n'),
  positionals: ['ID'],
  examples: ['portcullis supervisor disable ID', 'portcullis supervisor disable ID --json'],
  async run(input) {
    const supervisor = await change(input, 'setSupervisorStatus', (supervisors, nodeId, id) =>
      supervisors.setStatus(nodeId, OPERATOR, id, 'disabled'),
    );
    return input.answer(supervisorView(supervisor), `Supervisor ${supervisor.id} is disabled.\n`);
  },
};

/** `portcullis supervisor set-password`: another password; the sessions so far end. */
export const supervisorSetPassword: Command = {
  name: 'supervisor set-password',
  summary: 'set the password of a supervisor and end the sessions',
  description: [
    'Sets the password of a supervisor; the sessions so far end, on running servers within a second. The',
    'password is the first line of what is piped in; without one it is made here and shown this once.',
  ].join('\n'),
  positionals: ['ID'],
  examples: ['portcullis supervisor set-password ID', 'portcullis supervisor set-password ID < password.txt'],
  async run(input) {
    uuid('ID', input.positionals[0]);
    const given = await givenPassword(input);
    const { password } = checked(passwordInput, { password: given.password }, { password: 'the password' });
    const supervisor = await change(input, 'setSupervisorPassword', (supervisors, nodeId, id) =>
      supervisors.setPassword(nodeId, OPERATOR, id, password),
    );
    return input.answer(...withPassword(supervisor, given));
  },
};

/** `portcullis supervisor unlock`: the end of a lock. */
export const supervisorUnlock: Command = {
  name: 'supervisor unlock',
  summary: 'let a supervisor log in again after too many failed logins',
  description: [
    'Forgets the failed logins of a supervisor: five of them in fifteen minutes lock a username for',
    'fifteen minutes. The sessions stay.',
  ].join('\n'),
  positionals: ['ID'],
  examples: ['portcullis supervisor unlock ID', 'portcullis supervisor unlock ID --json'],
  async run(input) {
    const supervisor = await change(input, 'unlockSupervisor', (supervisors, nodeId, id) =>
      supervisors.unlock(nodeId, OPERATOR, id),
    );
    return input.answer(supervisorView(supervisor), `Supervisor ${supervisor.id} is unlocked.\n`);
  },
};
