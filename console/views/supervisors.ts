import type { ComponentChildren as Content } from 'preact';
import { useState } from 'preact/hooks';
import { mutate } from '../api.ts';
import type { SupervisorPartsFragment as Supervisor } from '../generated/graphql.ts';
import {
  CreateSupervisorDocument,
  RevokeSessionsDocument,
  SetSupervisorPasswordDocument,
  SetSupervisorRoleDocument,
  SetSupervisorStatusDocument,
  SupervisorsDocument,
  UnlockSupervisorDocument,
} from '../generated/graphql.ts';
import { html } from '../html.ts';
import { Activity } from '../kit/activity.ts';
import { AttemptsLine, useAttempts } from '../kit/attempts.ts';
import { Form, Select, useForm } from '../kit/form.ts';
import { type Column, factsOf } from '../kit/list.ts';
import { Confirm, ConfirmButton } from '../kit/overlay.ts';
import { FailureBox, may } from '../kit/page.ts';
import { type Done, Register } from '../kit/register.ts';
import { Badge, Facts, Time, words } from '../kit/text.ts';
import { linkTo } from '../router.ts';
import { viewer } from '../session.ts';

const ROLES = Object.entries({
  viewer: 'Viewer: reads',
  operator: 'Operator: reads and changes',
  admin: 'Admin: may do everything',
});
const NEW_PASSWORD = { type: 'password', autocomplete: 'new-password', hint: 'At least 8 characters. The person can change it after signing in.' };

const COLUMNS: readonly Column<Supervisor>[] = [
  { title: 'Role', cell: ({ role }) => words(role) },
  {
    title: 'Status',
    cell: ({ status, lockedUntil }) =>
      status === 'ACTIVE' && lockedUntil
        ? html`<${Badge} tone="bad">Locked<//>`
        : html`<${Badge} tone=${status === 'ACTIVE' ? 'good' : ''}>${words(status)}<//>`,
  },
  { title: 'Created', cell: ({ createdAt }) => html`<${Time} at=${createdAt} />` },
];

export function show(id?: string) {
  const sheet = (of: Supervisor | undefined, done: Done<Supervisor>) =>
    of ? html`<${SupervisorSheet} of=${of} done=${done} />` : html`<${NewSupervisor} done=${done} />`;
  return html`<${Register} id=${id} title="Supervisors" noun="supervisor" icon="supervisors" empty="No supervisors yet."
    operation=${SupervisorsDocument} nameOf=${({ username }: Supervisor) => username} columns=${COLUMNS} sheet=${sheet} />`;
}

/** What is asked before somebody gets every permission. */
const toAdmin = (username: string, before?: string) => ({
  title: `Make ${username} an admin?`,
  children: html`<p>${before === undefined ? '' : `Now: ${before}. `}An admin may do everything: change clients and supervisors, read the audit, and erase users.</p>`,
});

function NewSupervisor({ done }: { done: Done<Supervisor> }) {
  const { given, setGiven, input, action } = useForm({ username: '', password: '', role: 'operator' });
  const [isAsking, setAsking] = useState(false);
  const create = async () => done(`${(await mutate(CreateSupervisorDocument, { input: given })).username} created.`);
  const submit = async () => (given.role === 'admin' ? setAsking(true) : create());
  return html`${isAsking && html`<${Confirm} ...${toAdmin(given.username)} verb="Create an admin" act=${create} onClose=${() => setAsking(false)} />`}
    <${Form} ...${action} verb="Create the supervisor" act=${submit}>
    ${input('username', 'Username', { maxlength: 255, autocapitalize: 'none' })}${input('password', 'First password', NEW_PASSWORD)}
    <${Select} label="Role" value=${given.role} options=${ROLES} onChange=${(role: string) => setGiven({ ...given, role })} /><//>`;
}

/** The lock of a person, and a past one for a day: what has caused it, and how to end it. */
function Lock({ of: { id, lockedUntil }, button }: { of: Supervisor; button: Content }) {
  const { data } = useAttempts(may('audit:read') ? id : undefined);
  if (!lockedUntil && !data) return null;
  const past = !lockedUntil && data?.lockedUntil;
  return html`<div class=${lockedUntil ? 'warning' : 'note'}>
    ${lockedUntil && html`<p><b>Locked until <${Time} at=${lockedUntil} isAbsolute /></b> after wrong passwords.</p>`}
    ${past && html`<p><b>Not locked any more.</b> The last lock ${past > new Date().toISOString() ? 'would have lasted' : 'lasted, unless somebody unlocked it before,'} until <${Time} at=${past} isAbsolute />.</p>`}
    ${data && html`<p><${AttemptsLine} subject=${id} of=${data} /></p>`}
    ${button && html`<p class="actions">${button}</p>`}
  </div>`;
}

function SupervisorSheet({ of, done }: { of: Supervisor; done: Done<Supervisor> }) {
  const { id, username, lockedUntil } = of;
  const { given, setGiven, input, action } = useForm({ password: '', role: of.role });
  const { password, role } = given;
  const saying = (said: string, change: () => Promise<Supervisor>) => async () => done(said, await change());
  const setStatus = (status: Supervisor['status']) =>
    saying(`${username} is ${status.toLowerCase()}.`, () => mutate(SetSupervisorStatusDocument, { id, status }));
  const endSessions = saying(`The sessions of ${username} have ended.`, () => mutate(RevokeSessionsDocument, { id }));
  const unlock = saying(`${username} is unlocked.`, () => mutate(UnlockSupervisorDocument, { id }));
  const setRole = saying(`The role of ${username} is now ${role}.`, () => mutate(SetSupervisorRoleDocument, { id, role }));
  const setPassword = saying(`The password of ${username} is set.`, () => mutate(SetSupervisorPasswordDocument, { id, password }));
  const button = (text: string, act: () => Promise<unknown>, isReady = true, name = '') =>
    html`<button type="button" class=${name} disabled=${action.isBusy || !isReady} onClick=${() => action.run(act)}>${text}</button>`;
  return html`<${Facts} of=${[...factsOf(COLUMNS, of), ['Audit', may('audit:read') && html`<a href=${linkTo(['audit'], { subject: id })}>Requests and sign-ins</a>`]]} />
    <${Lock} of=${of} button=${lockedUntil && button('Unlock', unlock, true, 'primary')} />
    <p class="muted">A change of the role or the password ends ${username === viewer.value?.username ? 'your sessions, this one too' : `the sessions of ${username}`}.</p>
    <div class="stack">
      <div class="beside"><${Select} label="Role" value=${role} options=${ROLES} onChange=${(role: string) => setGiven({ ...given, role })} />
      ${
        role === 'admin' && role !== of.role
          ? html`<${ConfirmButton} ...${toAdmin(username, ROLES.find(([name]) => name === of.role)?.[1])} verb="Change the role" act=${setRole} />`
          : button('Change the role', setRole, role !== of.role)
      }</div>
      <div class="beside">${input('password', 'New password', NEW_PASSWORD)}${button('Set the password', setPassword, password !== '')}</div>
    </div>
    <${FailureBox} failure=${action.failure} />
    ${may('audit:read') && html`<p class="actions"><a href=${linkTo(['audit'], { subject: id, exports: 'shown' })}>Export the requests of ${username}</a></p>`}
    <p class="actions end">
      <${ConfirmButton} title=${`End the sessions of ${username}?`} verb="End the sessions" act=${endSessions}><p>${username} is signed out everywhere, and may sign in again.</p><//>
      ${
        of.status === 'ACTIVE'
          ? html`<${ConfirmButton} title=${`Disable ${username}?`} verb="Disable the supervisor" act=${setStatus('DISABLED')}>
            <p>All sessions end now, and ${username} cannot sign in until enabled.</p><//>`
          : button('Enable the supervisor', setStatus('ACTIVE'))
      }</p>
    <${Activity} of="supervisor" id=${id} />`;
}
